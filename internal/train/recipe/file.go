package recipe

import (
	"fmt"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
)

// A File is a training file, which says how to train a network, as a study says what to measure.
// Its keys are a public contract; see docs/reference/training-file.md. A segmenter is a network for
// the class of each pixel, and cdbn a convolutional deep belief network. The names of the fields
// and their json tags are part of the hash that identifies a training (see the method identity), so
// they stay.
type File struct {
	Name        string           `key:"name,required" doc:"name of the training"`
	Seed        uint64           `key:"seed" default:"1" doc:"seed of the weights, the order of samples, the split, dropout and augmentation"`
	Data        spec.Data        `key:"data,required" doc:"training data: an entry as in a study"`
	Validation  Validation       `key:"validation" doc:"fraction of the data that is held out to validate each epoch, or a separate data entry"`
	Test        *spec.Data       `key:"test" doc:"data on which the final network is tested"`
	Target      string           `key:"target" doc:"factor of variation to predict; or mask, the class of each pixel, or presence, the classes that the mask has; default: the classes, of a segmenter the mask"`
	Tasks       []taskKeys       `key:"tasks" json:",omitempty" doc:"further targets with a weight each: of a segmenter, each by a linear layer on its encoder; of an onnx network, each by an output"`
	MaskClasses int              `key:"mask-classes" json:",omitempty" min:"2" max:"65535" doc:"number of classes of masks, with the background; default: that of the data (shapes with figures or texture, coco with masks), or of the onnx network"`
	Network     Network          `key:"network,required" doc:"network: convnet, resnet, vgg, segmenter, mlp, onnx, autoencoder or cdbn"`
	Preprocess  spec.Preprocess  `key:"preprocess" doc:"size, mean and deviation, as in a study. They become part of a network that is built here"`
	Augment     Augment          `key:"augment" doc:"transformations of each sample, applied in order and drawn anew in every epoch"`
	Loss        string           `key:"loss" enum:"cross-entropy|position-cross-entropy|squared-error|binary-cross-entropy|cosine-distance" doc:"default: cross-entropy for classes, position-cross-entropy for masks, binary-cross-entropy for presence, squared-error for a factor"`
	LabelNoise  float64          `key:"label-noise" json:",omitempty" min:"0" max:"1" doc:"probability with which the label of a training sample is replaced by another class"`
	Mixup       float64          `key:"mixup" json:",omitempty" min:"0" max:"100" doc:"train on mixtures of two samples, with weights from Beta(mixup, mixup); such as 0.2"`
	Adversarial *adversarialKeys `key:"adversarial" json:",omitempty" doc:"train on adversarial examples, searched anew in each step"`
	Optimiser   Optimiser        `key:"optimiser,required" doc:"sgd, adam or adamw"`
	Schedule    Schedule         `key:"schedule" doc:"schedule of the learning rate: constant, cosine or steps"`
	Epochs      int              `key:"epochs,required" min:"1" max:"100000" doc:"largest number of passes over the data"`
	Batch       int              `key:"batch" default:"64" min:"1" doc:"samples in a training step"`
	Clip        float64          `key:"clip" min:"0" doc:"largest norm of all gradients together; larger ones are scaled down"`
	Patience    int              `key:"patience" min:"0" doc:"number of epochs without a smaller validation loss after which training stops; 0: never"`
	Rollback    *rollbackKeys    `key:"take-back" json:"Back,omitempty" doc:"undo epochs that increase the loss on the validation samples, and reduce the rate"`
	Keep        string           `key:"keep" enum:"best|last" default:"best" doc:"epoch whose network is saved: that with the smallest validation loss, or the last"`
	Vary        Vary             `key:"vary" json:"-" doc:"keys of this file with several values each; every combination is a training: {seed: [1, 2, 3], optimiser.sgd.rate: [0.1, 0.01]}; or a list of such mappings"`
	Scales      config.Scales    `key:"scales" json:"-" doc:"keys of this file that have other values at a scale, with dots between nested keys: {paper: {epochs: 200, network.resnet.width: 64}}. The variable SCALE names the scale"`
	Save        int              `key:"save-every" min:"0" doc:"write the network as an ONNX model after the first epoch and then every N epochs"`

	path string       // of the file, for errors and relative paths
	node *config.Node // the file, for errors with lines
	text []byte       // training.yaml of the output folder

	run       string            // folder of one of the trainings of the key vary; "" without the key
	tags      map[string]string // names of the values of varied keys
	trainings []*File           // all trainings of vary; nil without
}

// Load reads a training file. ${NAME} in the file is replaced from vars, then from the environment.
func Load(path string, vars map[string]string) (*File, error) {
	data, err := config.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the training file: %w", err)
	}
	return Parse(path, data, vars)
}

// Parse parses a training file. Relative paths start at the folder of path, which errors name. Of a
// file with the key vary it returns the first training.
func Parse(path string, data []byte, vars map[string]string) (*File, error) {
	node, err := config.ParseScaled(path, data, vars)
	if err != nil {
		return nil, err
	}
	if node.Get("vary") != nil {
		return parseVaried(path, node)
	}
	return parseNode(path, node, data)
}

// parseNode parses the settings of one training. text becomes training.yaml in its output folder.
func parseNode(path string, node *config.Node, text []byte) (*File, error) {
	f := &File{path: path, node: node, text: text}
	if err := config.Decode(node, f); err != nil {
		return nil, err
	}
	for _, d := range []*spec.Data{&f.Data, f.Validation.Data, f.Test} {
		if d == nil {
			continue
		}
		if err := d.Decode(catalog.Data()); err != nil {
			return nil, err
		}
	}
	return f, f.check()
}

func (f *File) check() error {
	validated := f.Validation.given
	switch {
	case f.Mixup > 0 && f.Adversarial != nil:
		return f.node.Get("mixup").Errorf("mixup cannot be combined with adversarial")
	case f.LabelNoise > 0 && f.target() != "":
		return f.node.Get("label-noise").Errorf("label-noise needs classes, and the target is %q", f.target())
	case f.Patience > 0 && !validated:
		return f.node.Get("patience").Errorf("patience needs validation: set it to a fraction such as 0.1, or to a data entry")
	case f.Rollback != nil && !validated:
		return f.node.Get("take-back").Errorf("take-back needs validation: set it to a fraction such as 0.1, or to a data entry")
	case f.Rollback != nil && !(f.Rollback.Factor > 0 && f.Rollback.Factor < 1):
		return f.node.Get("take-back").Errorf("the factor of the rate is %g: it must lie between 0 and 1", f.Rollback.Factor)
	case f.Mixup > 0 && (f.target() == train.MaskTarget || len(f.Tasks) > 0):
		return f.node.Get("mixup").Errorf("mixup is for one target of a sample, not for masks or several tasks")
	}
	if err := f.Adversarial.check(f); err != nil {
		return err
	}
	if err := f.Network.check(f.node.Get("network")); err != nil {
		return err
	}
	if err := f.checkTargets(); err != nil {
		return err
	}
	if err := f.Optimiser.check(f.node.Get("optimiser")); err != nil {
		return err
	}
	if err := f.Schedule.check(f.node.Get("schedule")); err != nil {
		return err
	}
	return f.checkLayered() // keys of networks that are trained layer by layer, such as cdbn
}
