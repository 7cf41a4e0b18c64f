package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// decodedName is the name of the layer with the decoded output.
const decodedName = "decoded output"

// withBatchAxis adds a batch axis of size 1 to the input of a graph that takes a single image of c x h
// x w or a single waveform of n values. It also adds one to the outputs, unless the number of their
// values varies from image to image, as that of the boxes of a torchvision detector does. Tensors
// other than these outputs then have names that start with "sample/".
func withBatchAxis(graph *onnx.Model, o Options) (*onnx.Model, error) {
	var single *onnx.ValueInfo
	for i, in := range portsOf(graph.Inputs()) {
		if o.Input != "" && o.Input != in.Name {
			continue
		}
		image := in.Type == engine.Float || in.Type == engine.Double || in.Type == engine.Uint8
		waveform := o.wantsAudio() && in.Type != engine.Uint8
		switch {
		case !image:
		case len(in.Shape) == 4, waveform && audioLayout(in) != "":
			return graph, nil
		case single == nil && (len(in.Shape) == 3 && in.Shape[0].Size == 3 || waveform && len(in.Shape) == 1 && isLong(in.Shape[0])):
			single = &graph.Inputs()[i]
		}
	}
	if single == nil {
		return graph, nil
	}
	outputs := graph.Outputs()
	varies := func(out onnx.ValueInfo) bool {
		return out.Shape == nil || slices.ContainsFunc(out.Shape, func(d onnx.Dim) bool { return d.Size < 0 })
	}
	batched := len(single.Shape) == 1 || !slices.ContainsFunc(outputs, varies)
	b := onnx.NewBuilder(graph.Opset())
	inner := b
	if batched {
		inner = b.Scope("sample")
	}
	inputs := map[string]onnx.Value{}
	for _, in := range graph.Inputs() {
		if in.Name != single.Name {
			inputs[in.Name] = b.InputInfo(in)
			continue
		}
		in.Shape = slices.Concat([]onnx.Dim{{Size: 1}}, in.Shape)
		inputs[in.Name] = b.Squeeze(b.InputInfo(in), 0)
	}
	for i, v := range inner.Include(graph, inputs) {
		if batched {
			v = b.Unsqueeze(v, 0)
			if outputs[i].Shape != nil {
				outputs[i].Shape = slices.Concat([]onnx.Dim{{Size: 1}}, outputs[i].Shape)
			}
		}
		b.OutputInfo(outputs[i], v)
	}
	out, err := b.Model()
	if err != nil {
		return nil, err
	}
	return out.WithMetadataOf(graph), nil
}

// findDecoder sets the decoder if an output has values for positions in the image. The model then
// takes one image at a time if this output has no batch axis. It counts as a model without class
// scores if that output was chosen or is that of the scores. shapes are those of one sample.
func (m *Model) findDecoder(shapes map[string][]int, axes map[string]tensor.Axes) error {
	set := m.options.Decode.IsSet()
	if m.TakesAudio() || m.TakesArrays() {
		if set {
			return settingError(errors.New("only a model of images has an output with a place in an image"), "output")
		}
		return nil
	}
	if m.source == nil {
		if set {
			return settingError(errors.New("only the outputs of an ONNX graph are decoded"), "output")
		}
		return nil
	}
	about := output.About{Scored: m.scores.classes > 0, Height: m.input.height, Width: m.input.width, Channels: m.input.channels, Metadata: m.Graph().Metadata}
	for _, p := range m.Graph().Outputs() {
		about.Ports = append(about.Ports, output.Port{Name: p.Name, Type: p.Type, Sizes: p.Sizes(), Sample: shapes[p.Name], Axes: axes[p.Name],
			Probed: m.probed[p.Name], After: headOf(m.Graph(), p.Name).after})
	}
	config, err := readConfig(m.name)
	if err == nil {
		about.Names, _ = config.labels() // ClassNames reports the error
		about.Depth = strings.Contains(strings.Join(config.Architectures, " "), "DepthEstimation")
	}
	if m.decoder, err = output.Find(about, m.options.Decode); err != nil {
		return settingError(err, "output")
	}
	if m.decoder != nil && m.decoder.Unbatched {
		if m.batch > 1 {
			return fmt.Errorf("the outputs %q have no axis for the batch, and the model takes %d images at a time", m.decoder.Format.Outputs, m.batch)
		}
		m.batch = 1
	}
	if m.decoder != nil && (set || slices.Contains(m.decoder.Format.Outputs, m.scores.output)) {
		m.scores.kind, m.scores.classes = none, 0
	}
	return nil
}

// Decoded returns the format of the decoded output, if any, and whether it was inferred.
func (m *Model) Decoded() (format *decoded.Format, guessed bool) {
	if m.decoder == nil {
		return nil, false
	}
	return &m.decoder.Format, m.decoder.Guessed
}

// DecodedLayer returns the decoded output as a layer for NewSession. The session removes weak and
// overlapping boxes from it (decoded.Format.Complete).
func (m *Model) DecodedLayer() tensor.Layer {
	return tensor.Layer{Name: decodedName, Depth: -1, Shape: m.decoder.Format.Shape()}
}

func (s *Session) complete(buf *Buffers) {
	i := slices.IndexFunc(s.outputs, func(o engine.Output) bool { return o.Name == decodedName })
	if i < 0 {
		return
	}
	for k := range buf.n {
		s.model.decoder.Format.Complete(buf.outputs[i].At(k).Data)
	}
}
