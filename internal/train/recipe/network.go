package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A network is the graph to train, with the preprocessing of its samples.
type network struct {
	model *onnx.Model // nil for training layer by layer, where each layer has a loss of its own
	// exported is a network from a file without the spectrogram or the normalisation that model has
	// before it for training. It is written with the trained weights; nil: model is written.
	exported     *onnx.Model
	output       string           // the output that the loss is computed from, as in train.Spec
	parameters   []string         // names of the weights to train
	trainingMode bool             // as in train.Spec
	preprocess   model.Preprocess // preprocessing of samples before the network during training
	recorded     model.Preprocess // preprocessing of samples for the network that is written
}

// weights returns the initial model as bytes. For training layer by layer it is empty: settings and
// seed determine the weights.
func (n *network) weights() ([]byte, error) {
	if n.model == nil {
		return nil, nil
	}
	return n.model.Bytes()
}

// network builds the network that the training file f describes, or reads it from an ONNX file. p
// is the preprocessing that f gives; p.Frame says how samples are resized, cropped or resampled.
// f.node is the text of f as a tree, for errors with a position. Heads are further outputs.
// o.shape is that of a sample: channels x height x width, or channels x length for audio.
func (f *File) network(o *datasets, p model.Preprocess) (*network, error) {
	if f.Adversarial != nil && len(o.shape) == 2 {
		return nil, f.node.Get("adversarial").Errorf("adversarial examples are images, and the samples are audio")
	}
	if f.Network.ONNX != nil {
		n, err := f.readNetwork(o, p)
		if err == nil {
			err = f.checkOutputs(o, n)
		}
		return n, err
	}
	outputs, err := f.outputs(o, f.target())
	if err != nil {
		return nil, err
	}
	shape, err := f.features(o.shape, &p)
	if err != nil {
		return nil, err
	}
	heads, err := f.heads(o)
	if err != nil {
		return nil, err
	}
	bare, err := f.build(shape, outputs, heads)
	if err != nil {
		return nil, f.node.Get("network").Errorf("%w", err)
	}
	n := &network{trainingMode: true, preprocess: model.Preprocess{Frame: p.Frame}, recorded: model.Preprocess{Frame: p.Frame}}
	for _, w := range bare.Weights() {
		if len(w.Shape) > 0 && !isStatistic(w.Name) { // no scalars, such as the ratio of Dropout
			n.parameters = append(n.parameters, w.Name)
		}
	}
	names := []string{"logits"}
	for _, h := range heads {
		names = append(names, h.Name)
	}
	if n.model, err = train.WithPreprocessing(p, o.shape, bare, names...); err != nil {
		return nil, cmp.Or(f.node.Get("preprocess"), f.node).Errorf("%w", err)
	}
	if len(heads) > 0 {
		n.output = "logits"
	}
	return n, nil
}

// features returns the input shape of a network that is built here, for samples of the given shape.
// With a spectrogram (p.Features, whose defaults it sets in p) this is mel bands x frames: the
// bands are channels, so that convolutions are over time.
func (f *File) features(shape []int, p *model.Preprocess) ([]int, error) {
	if p.Features == nil {
		return shape, nil
	}
	at := f.node.Get("preprocess")
	if len(shape) != 2 {
		return nil, at.Errorf("features need audio, and the samples are images")
	}
	s := *p.Features
	if s.Rate = cmp.Or(s.Rate, p.Frame.Rate); s.Rate == 0 {
		return nil, at.Errorf("features need the sample rate: write rate: 8000, for example")
	}
	s = s.Defaults()
	if err := s.Check(); err != nil {
		return nil, at.Errorf("%w", err)
	}
	p.Features = &s
	return []int{s.Rows(), s.Frames(shape[1])}, nil
}

// isStatistic reports whether a weight of a network that is built here is a running mean or
// variance of a BatchNormalization.
func isStatistic(name string) bool {
	return strings.HasSuffix(name, ".mean") || strings.HasSuffix(name, ".variance")
}

func (f *File) build(shape []int, outputs int, heads []train.Head) (*onnx.Model, error) {
	switch k := f.Network; {
	case k.ConvNet != nil:
		n := *k.ConvNet
		n.Shape, n.Classes, n.Seed = shape, outputs, f.Seed
		return n.Build()
	case k.ResNet != nil:
		r, err := k.ResNet.stages()
		if err != nil {
			return nil, err
		}
		r.Shape, r.Classes, r.Dropout, r.Seed = shape, outputs, k.ResNet.Dropout, f.Seed
		return r.Build()
	case k.Segment != nil:
		r, err := k.Segment.stages()
		if err != nil {
			return nil, err
		}
		r.Shape, r.Seed = shape, f.Seed
		return train.Segmenter{Encoder: r, Decoder: k.Segment.Decoder, Classes: outputs, Heads: heads}.Build()
	case k.VGG != nil:
		n := *k.VGG
		n.Shape, n.Classes, n.Seed = shape, outputs, f.Seed
		return n.Build()
	}
	return train.FlattenedMLP{Shape: shape, Outputs: outputs, Hidden: f.Network.MLP.Hidden, Seed: f.Seed}.Build()
}

func (k *stageKeys) stages() (r train.ResNet, err error) {
	switch {
	case k.Depth == 0 && k.Width > 0:
		return r, errors.New("width needs depth: without it set widths")
	case k.Depth == 0:
		r = train.ResNet{Widths: k.Widths, Blocks: k.Blocks, Bottleneck: k.Block == "bottleneck"}
	case len(k.Widths) > 0 || len(k.Blocks) > 0 || k.Block != "":
		return r, errors.New("depth sets the stages: leave out widths, blocks and block")
	default:
		r, err = train.StandardResNet(k.Depth, k.Width)
	}
	r.Stem = train.Stem(k.Stem)
	return r, err
}

// readNetwork reads an ONNX model. Values of type float16 or bfloat16 become float32.
func (f *File) readNetwork(o *datasets, p model.Preprocess) (*network, error) {
	k, at := f.Network.ONNX, f.node.Get("network").Get("onnx")
	m, err := rewrite.ReadFloat32(f.resolve(k.File))
	if err != nil {
		return nil, at.Errorf("%w", err)
	}
	n := &network{model: m, output: k.Output, trainingMode: k.Training, preprocess: p, recorded: p}
	for _, glob := range k.Parameters {
		found := false
		for _, w := range m.Weights() {
			ok, err := path.Match(glob, w.Name)
			if err != nil {
				return nil, at.Get("parameters").Errorf("%q is not a glob: %w", glob, err)
			}
			if ok {
				n.parameters, found = append(n.parameters, w.Name), true
			}
		}
		if !found {
			return nil, at.Get("parameters").Errorf("no weights match %q; the weights are %s", glob, firstNames(m.Weights()))
		}
	}
	if p.Features != nil {
		if err := n.prependFeatures(o.shape, p); err != nil {
			return nil, f.node.Get("preprocess").Errorf("%w", err)
		}
	}
	if f.Adversarial != nil && p.Features == nil {
		if err := n.prependNormalisation(o.shape, p); err != nil {
			return nil, f.node.Get("preprocess").Errorf("%w", err)
		}
	}
	return n, nil
}

// prependNormalisation makes the normalisation by mean and standard deviation a part of the network
// for training, since adversarial examples are images with values in [0, 1].
func (n *network) prependNormalisation(shape []int, p model.Preprocess) (err error) {
	n.exported = n.model
	if len(n.parameters) == 0 {
		if n.parameters, err = train.Parameters(n.exported, n.output); err != nil { // without the constants of the normalisation
			return err
		}
	}
	n.preprocess = model.Preprocess{Frame: p.Frame}
	n.model, err = train.WithPreprocessing(p, shape, n.exported)
	return err
}

func (n *network) prependFeatures(shape []int, p model.Preprocess) (err error) {
	if len(shape) != 2 {
		return errors.New("features need audio, and the samples are images")
	}
	n.exported = n.model
	if len(n.parameters) == 0 {
		if n.parameters, err = train.Parameters(n.exported, n.output); err != nil { // without the constants of the spectrogram
			return err
		}
	}
	n.model, err = model.WithFeatures(n.exported, p, shape[1])
	return err
}

// trained returns the network to write, with trained weights: exported, or else model.
func (n *network) trained(t *train.Trainer) (*onnx.Model, error) {
	if n.exported == nil {
		return t.Model()
	}
	return rewrite.WithWeights(n.exported, t.Weights())
}

func firstNames(weights []onnx.ValueInfo) string {
	var names []string
	for _, w := range weights {
		if len(names) == 5 {
			names = append(names, fmt.Sprintf("and %d more", len(weights)-5))
			break
		}
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}
