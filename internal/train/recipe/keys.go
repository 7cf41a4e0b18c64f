package recipe

import (
	"reflect"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/transform"
)

// Validation is the value of a key of a training file: a fraction of the data, or separate data. In
// the structs below, the tags of fields name the keys of a YAML mapping, and short marks the field
// that may be written alone, in place of the mapping.
type Validation struct {
	Share float64
	Data  *spec.Data

	given bool // whether the file has the key
}

// DecodeNode implements config.Decoder.
func (v *Validation) DecodeNode(n *config.Node) error {
	v.given = true
	if n.Kind == config.Map {
		v.Data = new(spec.Data)
		return config.Decode(n, v.Data)
	}
	share, err := n.Number()
	if err == nil && !(share > 0 && share < 1) {
		err = n.Errorf("validation must be a fraction between 0 and 1, or a data entry")
	}
	v.Share = share
	return err
}

// JSONSchema implements config.Schemer.
func (Validation) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
		map[string]any{"$ref": "#/properties/data"},
	}}
}

// Network is one kind of network: one field is set.
type Network struct {
	ConvNet *train.ConvNet `key:"convnet" doc:"plain convolutions with BatchNormalization, for images, spectrograms and signals"`
	ResNet  *resNetKeys    `key:"resnet" doc:"residual blocks, for small images"`
	VGG     *train.VGG     `key:"vgg" json:",omitempty" doc:"VGG with BatchNormalization, as usual for CIFAR"`
	Segment *segmentKeys   `key:"segmenter" json:",omitempty" doc:"the stages of a resnet with a decoder: a class for each pixel"`
	MLP     *mlpKeys       `key:"mlp" doc:"fully connected layers"`
	ONNX    *onnxKeys      `key:"onnx" doc:"a model to train further"`

	Autoencoder *autoencoderKeys `key:"autoencoder" json:",omitempty" doc:"a stack of autoencoders, trained layer by layer without labels"`
	CDBN        *cdbnKeys        `key:"cdbn" json:",omitempty" doc:"a convolutional deep belief network, trained layer by layer without labels"`
}

type autoencoderKeys struct {
	Layers []autoencoderLayerKeys `key:"layers,required" doc:"layers, in order from the input"`
}

type autoencoderLayerKeys struct {
	Units  int     `key:"units,required" min:"1" doc:"number of units"`
	Decay  float64 `key:"decay" min:"0" doc:"weight decay of encoder and decoder"`
	Target float64 `key:"target" doc:"target mean activation of units, between -1 and 1"`
	Weight float64 `key:"weight" min:"0" doc:"weight of the sparsity penalty"`
}

type cdbnKeys struct {
	Layers []cdbnLayerKeys `key:"layers,required" doc:"layers, in order from the input"`
	Filter int             `key:"filter" default:"10" min:"1" doc:"side of a filter"`
	Block  int             `key:"block" default:"2" min:"1" doc:"side of a block of probabilistic max-pooling"`
}

type cdbnLayerKeys struct {
	Units  int     `key:"units,required" min:"1" doc:"groups of units, each with a filter"`
	Decay  float64 `key:"decay" min:"0" doc:"weight decay of the filters"`
	Target float64 `key:"target" default:"0.005" min:"0" doc:"target mean activation of units"`
	Weight float64 `key:"weight" default:"5" min:"0" doc:"weight of the sparsity penalty"`
	Scale  float64 `key:"rate-scale" default:"1" min:"0" doc:"factor of the learning rate for this layer"`
}

// layerwise reports whether the network is trained layer by layer, without labels.
func (k *Network) layerwise() bool { return k.Autoencoder != nil || k.CDBN != nil }

type resNetKeys struct {
	stageKeys
	Dropout float64 `key:"dropout" min:"0" doc:"dropout probability before the last layer"`
}

type stageKeys struct {
	Depth  int    `key:"depth" min:"1" doc:"a published depth, in place of widths, blocks and block: 18 or 34 (four stages), 50, 101 or 152 (four stages of bottlenecks), or 20, 32, 44, 56, 110 (three stages)"`
	Width  int    `key:"width" min:"1" max:"4096" doc:"with depth: channels of the first stage; default: 64 with four stages, else 16"`
	Widths []int  `key:"widths" doc:"channels of each stage; default: 16, 32, 64"`
	Blocks []int  `key:"blocks" doc:"blocks of each stage, or of all; default: 3"`
	Block  string `key:"block" enum:"basic|bottleneck" doc:"convolutions of a block: two of 3 x 3 (basic, the default), or 1 x 1, 3 x 3 and 1 x 1, the last with 4 times the channels (bottleneck)"`
	Stem   string `key:"stem" enum:"cifar|imagenet" default:"cifar" doc:"what comes before the stages: one convolution of 3 x 3 (cifar), or one of 7 x 7 and a maximum, which make the sides a quarter (imagenet)"`
}

type segmentKeys struct {
	Decoder string `key:"decoder" enum:"unet|fcn" default:"unet" doc:"what the decoder reads: the encoder's maps of every size (unet), or only those of its last stage (fcn)"`
	Classes int    `key:"classes" min:"2" max:"65535" doc:"number of classes of pixels; default: that of the data (shapes with figures or texture, coco with masks)"`
	stageKeys
}

// taskKeys are a further task of a network, a target that it also learns to predict.
type taskKeys struct {
	Target string  `key:"target,required" short:"true" doc:"presence (the classes that the mask has), classes, or a factor"`
	Weight float64 `key:"weight" default:"1" min:"0" doc:"weight of its loss; the main loss has 1"`
	Output string  `key:"output" json:",omitempty" doc:"of an onnx network, the output for this target; default: the one with its name"`
}

type mlpKeys struct {
	Hidden []int `key:"hidden" short:"true" doc:"sizes of the hidden layers; none is one linear layer"`
}

type onnxKeys struct {
	File       string   `key:"file,required" short:"true" doc:"the model"`
	Output     string   `key:"output" doc:"output for the loss, if the model has several"`
	Parameters []string `key:"parameters" doc:"globs for the names of the weights to train; default: all"`
	Training   bool     `key:"training-mode" doc:"training mode: BatchNormalization uses batch statistics and Dropout is active; in the default, evaluation mode, both are frozen"`
}

// checkSingleKey returns an error unless n is a mapping with a single key. known lists the possible
// keys, for the error.
func checkSingleKey(n *config.Node, known ...string) error {
	if n.Kind != config.Map || len(n.Pairs) != 1 {
		return n.Errorf("write one of %s", strings.Join(known, ", "))
	}
	return nil
}

func (k *Network) check(n *config.Node) error {
	return checkSingleKey(n, "convnet", "resnet", "vgg", "segmenter", "mlp", "onnx", "autoencoder", "cdbn")
}

// Augment is the augmentation of training samples.
type Augment struct {
	Transform  transform.Transform   `json:"Law"` // the key that File.identity hashes; nil: no augmentation
	transforms []transform.Transform // the members of Transform
	steps      []any                 // their settings, for File.identity
}

// DecodeNode implements config.Decoder.
func (a *Augment) DecodeNode(n *config.Node) error {
	var list []spec.Transform
	if err := config.Decode(n, &list); err != nil {
		return err
	}
	var sequence transform.Sequence
	// As in a study, t.Cells has an element for each value of a list, and one for a range. t.On is
	// what t transforms, input or activations, and t.Per how often it is drawn.
	for i, t := range list {
		at := n
		if n.Kind == config.List {
			at = n.Items[i]
		}
		if err := t.Decode(transform.Kinds()); err != nil {
			return err
		}
		switch {
		case len(t.Cells) != 1:
			return at.Errorf("an augmentation draws from a range: write [low, high], not a list of values")
		case t.On != "input" || t.Per != "sample":
			return at.Errorf("an augmentation is drawn for each sample of the input: leave out per and on")
		}
		sequence, a.steps = append(sequence, t.Cells[0].Transform), append(a.steps, t.Cells[0].Canonical)
	}
	if a.transforms = sequence; len(sequence) > 0 {
		a.Transform = sequence
	}
	return nil
}

func (a *Augment) check(n *config.Node, audio bool) error {
	for i, t := range a.transforms {
		at := n
		if n.Kind == config.List {
			at = n.Items[i]
		}
		switch {
		case audio && !transform.OnAudio(t):
			return at.Errorf("this transforms images, and the samples are audio")
		case !audio && !transform.OnImages(t):
			return at.Errorf("this transforms audio, and the samples are images")
		}
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (Augment) JSONSchema() map[string]any {
	item := spec.TransformSchema(transform.Kinds())
	return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": item}, item}}
}

// Optimiser is one kind of optimiser: one field is set.
type Optimiser struct {
	SGD   *train.SGD   `key:"sgd" doc:"stochastic gradient descent"`
	Adam  *train.Adam  `key:"adam" doc:"Adam with weight decay in the gradient (coupled)"`
	AdamW *train.AdamW `key:"adamw" doc:"Adam with decoupled weight decay"`
}

func (k *Optimiser) check(n *config.Node) error { return checkSingleKey(n, "sgd", "adam", "adamw") }

func (k *Optimiser) optimiser() train.Optimiser {
	switch {
	case k.SGD != nil:
		return *k.SGD
	case k.Adam != nil:
		return *k.Adam
	}
	return *k.AdamW
}

// adversarialKeys are the settings of training on adversarial examples, which are searched in a
// ball around each sample x.
type adversarialKeys struct {
	Defence  string  `key:"defence" enum:"at|trades|mart" default:"at" doc:"loss: at (on the adversarial examples), trades or mart (also their divergence from the samples)"`
	Norm     string  `key:"norm" enum:"l2|linf" default:"linf" doc:"norm of the ball"`
	Radius   float64 `key:"radius,required" doc:"radius of the ball, for images with values in [0, 1], such as 0.031"`
	Steps    int     `key:"steps" default:"7" min:"1" doc:"steps of a search"`
	StepSize float64 `key:"step-size" min:"0" doc:"length of a step (linf: change of a pixel); default: 2.5 radius / steps"`
	Random   bool    `key:"random-start" default:"true" doc:"start at a random point in the ball (trades and mart: near x), not at x"`
	Beta     float64 `key:"beta" default:"6" min:"0" doc:"weight of the divergence, of trades and mart"`
}

func (k *adversarialKeys) check(f *File) error {
	at := f.node.Get("adversarial")
	switch {
	case k == nil:
		return nil
	case !(k.Radius > 0):
		return at.Errorf("the radius is %g: it must be above 0", k.Radius)
	case f.Network.layerwise():
		return at.Errorf("a network that is trained layer by layer takes no adversarial examples")
	case f.Target != "" && k.Defence != string(train.AdversarialTraining):
		return at.Errorf("%s needs classes, and the target %q is a factor: use at", k.Defence, f.Target)
	case !k.Random && k.Defence != string(train.AdversarialTraining):
		return at.Errorf("%s cannot start at x, where the divergence has no gradient: leave out random-start", k.Defence)
	}
	return nil
}

func (k *adversarialKeys) settings() *train.Adversarial {
	if k == nil {
		return nil
	}
	return &train.Adversarial{Defence: train.Defence(k.Defence), Norm: k.Norm, Radius: k.Radius, Steps: k.Steps, StepSize: k.StepSize, AtX: !k.Random, Beta: k.Beta}
}

// rollbackKeys are the settings of rollback: an epoch that increases the objective is undone, and
// training goes on at a lower learning rate.
type rollbackKeys struct {
	Factor float64 `key:"factor,required" short:"true" doc:"factor by which the rate is multiplied after an epoch is undone, between 0 and 1"`
	By     string  `key:"by" enum:"objective|loss" default:"objective" doc:"what must not increase: the objective with penalties, or the validation loss alone"`
}

// options returns the factor, 0 without rollback, and whether epochs are compared by the loss
// alone.
func (k *rollbackKeys) options() (factor float64, byLoss bool) {
	if k == nil {
		return 0, false
	}
	return k.Factor, k.By == "loss"
}

// Schedule is the schedule of the learning rate: one field is set, or none for a constant rate.
type Schedule struct {
	Constant bool
	Cosine   *cosineKeys
	Steps    *stepsKeys
}

type scheduleKeys struct {
	Cosine *cosineKeys `key:"cosine" doc:"cosine annealing to 0"`
	Steps  *stepsKeys  `key:"steps" doc:"multiplied by a factor at some points"`
}

type cosineKeys struct {
	Warmup float64 `key:"warmup" min:"0" doc:"epochs of linear warm-up"`
}

type stepsKeys struct {
	Factor float64   `key:"factor" default:"0.1" doc:"factor of the rate"`
	At     []float64 `key:"at,required" doc:"fractions of the training, such as 0.5 and 0.75"`
}

// DecodeNode implements config.Decoder.
func (s *Schedule) DecodeNode(n *config.Node) error {
	if n.Kind == config.String {
		switch n.Text {
		case "constant":
			s.Constant = true
		case "cosine":
			s.Cosine = &cosineKeys{}
		default:
			return n.Unknown("schedule", []string{"constant", "cosine", "steps"})
		}
		return nil
	}
	var k scheduleKeys
	if err := config.Decode(n, &k); err != nil {
		return err
	}
	s.Cosine, s.Steps = k.Cosine, k.Steps
	return nil
}

// JSONSchema implements config.Schemer.
func (Schedule) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{config.Words([]string{"constant", "cosine"}), config.Schema(reflect.TypeFor[scheduleKeys]())}}
}

func (s *Schedule) check(n *config.Node) error {
	if n == nil || n.Kind == config.String {
		return nil
	}
	if err := checkSingleKey(n, "constant", "cosine", "steps"); err != nil {
		return err
	}
	if s.Steps != nil {
		for _, at := range s.Steps.At {
			if !(at > 0 && at < 1) {
				return n.Get("steps").Errorf("at is %g: it must lie between 0 and 1, as a fraction of the training", at)
			}
		}
	}
	return nil
}

// schedule returns the schedule; perEpoch is the number of steps of an epoch.
func (s *Schedule) schedule(perEpoch int) train.Schedule {
	switch {
	case s.Cosine != nil:
		return train.Cosine(int(s.Cosine.Warmup * float64(perEpoch)))
	case s.Steps != nil:
		return train.MultiStep(s.Steps.Factor, s.Steps.At...)
	}
	return train.Constant
}
