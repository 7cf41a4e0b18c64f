package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// inferShapes runs the model on dummy inputs to determine the shapes of its tensors and whether
// their first axis is the batch. It sets the layers (tensors that can be measured), the arrangement
// of their tokens in the image, the number of classes, the decoder (of outputs such as boxes or
// class maps) and the number of images in a run, if that is fixed. axes are the axes of the
// tensors, by name.
func (m *Model) inferShapes(ctx context.Context, axes map[string]tensor.Axes) error {
	all := m.dependentLayers()
	for i := range all {
		all[i].Axes = axes[all[i].Name]
	}
	shapes, err := m.sampleShapes(ctx, all)
	if err != nil {
		return err
	}
	if err := m.scores.setClasses(shapes[m.scores.output], m.options.Scores != ""); err != nil {
		return err
	}
	if err := m.findDecoder(shapes, axes); err != nil {
		return err
	}
	for _, l := range all {
		if shape := shapes[l.Name]; shape != nil {
			m.largestLayer = max(m.largestLayer, int64(tensor.Size(shape)))
			m.totalElements += int64(tensor.Size(shape))
		}
	}
	if m.layers, err = m.selectLayers(all, shapes); err != nil {
		return err
	}
	return m.setTokens(m.layers, shapes)
}

// dependentLayers returns the layers of the graph that depend on the image, and not only on
// m.constants, inputs that have the same values in every run.
func (m *Model) dependentLayers() []tensor.Layer {
	all := m.graph.Layers()
	if len(m.constants) == 0 {
		return all
	}
	dependent := map[string]bool{}
	for _, name := range m.input.names() {
		dependent[name] = true
	}
	for _, n := range m.graph.Nodes() {
		if slices.ContainsFunc(onnx.Reads(n), func(name string) bool { return dependent[name] }) {
			for _, out := range n.Output {
				dependent[out] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(l tensor.Layer) bool { return !dependent[l.Name] })
}

// selectLayers returns the layers that the patterns of the options choose, with their shapes. Its
// errors name the pattern by its path in the options (settingError, layerPath).
func (m *Model) selectLayers(all []tensor.Layer, shapes map[string][]int) ([]tensor.Layer, error) {
	chosen := map[string]bool{}
	for i, pattern := range m.options.Layers {
		matched, err := m.graph.Select(pattern)
		if err != nil {
			return nil, settingError(err, layerPath(i)...)
		}
		usable := 0
		for _, l := range matched {
			ok := shapes[l.Name] != nil
			if !ok && l.Name == pattern {
				return nil, settingError(fmt.Errorf("layer %q cannot be measured: its first axis is not the batch, or it does not depend on the image", l.Name), layerPath(i)...)
			}
			chosen[l.Name] = chosen[l.Name] || ok
			if ok {
				usable++
			}
		}
		if usable == 0 {
			return nil, settingError(fmt.Errorf("layers %q: none of the %d that match has the batch as its first axis and depends on the image", pattern, len(matched)), layerPath(i)...)
		}
	}
	var layers []tensor.Layer
	for _, l := range all {
		if chosen[l.Name] {
			l.Shape = shapes[l.Name]
			layers = append(layers, l)
		}
	}
	return layers, nil
}

// sampleShapes returns the shapes of the layers and of the outputs for one sample. Tensors that are
// empty, or whose first axis is not the batch, are left out. If a model declares a batch of any
// size (m.batch is 0) but fails with two images, m.batch is set to one image.
func (m *Model) sampleShapes(ctx context.Context, layers []tensor.Layer) (map[string][]int, error) {
	names := onnx.Names(layers)
	for _, name := range append(m.readableOutputs(), m.scores.output) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	p, err := m.newShapeReader(names)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if m.batch > 0 {
		shapes, err := p.shapes(ctx, m.batch)
		if err != nil {
			return nil, err
		}
		return perSample(names, shapes, shapes, m.batch, m.batch), nil
	}
	one, err := p.shapes(ctx, 1)
	if err != nil {
		return nil, err
	}
	two, err := p.shapes(ctx, 2)
	var expired *ort.TimeoutError
	switch {
	case ctx.Err() != nil, errors.As(err, &expired):
		return nil, err
	case err != nil:
		m.batch = 1
		return perSample(names, one, one, 1, 1), nil
	}
	return perSample(names, one, two, 1, 2), nil
}

// perSample returns the shapes for one sample. a and b are the shapes in runs of two batch sizes. A
// tensor has a shape if its first axis is the batch size in both runs, and its other axes are
// equal.
func perSample(names []string, a, b [][]int, sizeA, sizeB int) map[string][]int {
	shapes := map[string][]int{}
	for i, name := range names {
		if len(a[i]) == 0 || len(b[i]) == 0 || a[i][0] != sizeA || b[i][0] != sizeB {
			continue
		}
		if slices.Equal(a[i][1:], b[i][1:]) && tensor.Size(a[i]) > 0 {
			shapes[name] = a[i][1:]
		}
	}
	return shapes
}

// A shapeReader runs the graph and returns the shapes of tensors, without copying activations. It
// runs every node as it is, since the engine (ONNX Runtime), when it optimises a graph, returns
// declared shapes without computing the tensors.
type shapeReader struct {
	model   *Model
	session *ort.Session
	full    *onnx.Model // the graph, if the session has its cheap copy by rewrite.ShapesOnly; else nil
	sources []string    // tensors whose shapes the session returns
	source  []int       // for each tensor, the index of the source that has the same shape
}

func (p *shapeReader) close() { p.session.Close() }

func (m *Model) newShapeReader(names []string) (*shapeReader, error) {
	p := &shapeReader{model: m}
	// index is that of each source in p.sources; equal has earlier tensors of the same shape.
	index, equal := map[string]int{}, shapeSources(m.graph)
	for _, name := range names {
		source := cmp.Or(equal[name], name)
		if _, ok := index[source]; !ok {
			index[source] = len(p.sources)
			p.sources = append(p.sources, source)
		}
		p.source = append(p.source, index[source])
	}
	b := onnx.Extend(m.graph)
	output := "shapes of the layers"
	b.Output(output, joinShapes(b, p.sources))
	graph, err := b.Model()
	if err != nil {
		return nil, err
	}
	if graph, err = rewrite.WithOutputs(graph, []string{output}); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(graph.Nodes(), shapeByValues) {
		if p.session, err = m.newSession(rewrite.ShapesOnly(graph), m.shapeOptions()); err == nil {
			p.full = graph
			return p, nil
		}
	}
	// Shapes depend on the values of weights, or the engine does not open the ShapesOnly graph.
	if p.session, err = m.newSession(graph, m.shapeOptions()); err != nil {
		return nil, err
	}
	return p, nil
}

// joinedShapes is the number of tensors whose shapes one node joins.
const joinedShapes = 128

// joinShapes adds nodes that concatenate the shapes of tensors, each followed by -1, and returns
// their result. The shapes are not outputs of their own, because the engine looks up every tensor
// in a list of all outputs. Of the nodes that can be computed next, the engine computes the last
// one first. So with this order of nodes it frees an activation once its shape is known; with the
// opposite order it would hold all activations.
func joinShapes(b *onnx.Builder, names []string) onnx.Value {
	end := b.Ints(-1)
	groups := slices.Collect(slices.Chunk(names, joinedShapes))
	joined := make([]onnx.Value, len(groups))
	for i, group := range slices.Backward(groups) {
		parts := make([]onnx.Value, 2*len(group))
		for j, name := range slices.Backward(group) {
			parts[2*j], parts[2*j+1] = b.Shape(onnx.Value(name)), end
		}
		joined[i] = b.Concat(0, parts...)
	}
	return b.Concat(0, joined...)
}

// shapeByValues reports whether the shapes of a node's outputs may depend on the values of weights.
func shapeByValues(n *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "NonZero", "NonMaxSuppression", "Unique", "Compress", "If", "Loop", "Scan":
		return true
	}
	return false
}

// shapeOptions returns the options of sessions that read shapes, on the CPU: shapes do not depend
// on the device.
func (m *Model) shapeOptions() ort.Options {
	// Verbatim: no optimisation. Spin: threads wait for work in a busy loop.
	return ort.Options{Threads: m.options.Threads, Verbatim: true, Spin: m.options.Spin}
}

// newSession opens a session of the engine. Its errors are passed through explainError.
func (m *Model) newSession(graph *onnx.Model, o ort.Options) (*ort.Session, error) {
	s, err := m.rt.NewSession(graph, o)
	if err != nil {
		return nil, explainError(err)
	}
	return s, nil
}

var (
	unknownOp = regexp.MustCompile(`(?:No Op registered for|Fatal error:) ([^\s()]+)(?: with domain_version of|\(.*\) is not a registered function/op)`)
	newOpset  = regexp.MustCompile(`Opset (\d+) is under development.* domain (\S+) is till opset (\d+)`)
)

// explainError rewords those errors of the engine that a user can act on.
func explainError(err error) error {
	text := err.Error()
	if m := unknownOp.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("the engine does not support an operator of the model: %s", m[1])
	}
	if m := newOpset.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("the model uses opset %s of %s, and this ONNX Runtime supports up to %s: export it for a supported opset, or set --onnxruntime to a newer library", m[1], m[2], m[3])
	}
	return err
}

// shapes returns the shapes of the tensors in a run of n black images. If a run of the ShapesOnly
// graph fails, it runs the model's own graph, whose error may differ.
func (p *shapeReader) shapes(ctx context.Context, n int) ([][]int, error) {
	shapes, err := p.run(ctx, n)
	if expired := (*ort.TimeoutError)(nil); err == nil || p.full == nil || ctx.Err() != nil || errors.As(err, &expired) {
		return shapes, err
	}
	session, openErr := p.model.newSession(p.full, p.model.shapeOptions())
	if openErr != nil {
		return nil, openErr
	}
	p.close()
	p.session, p.full = session, nil
	return p.run(ctx, n)
}

func (p *shapeReader) run(ctx context.Context, n int) ([][]int, error) {
	inputs, err := p.model.inputValues(p.session.Inputs(), n)
	defer closeAll(inputs)
	if err != nil {
		return nil, err
	}
	outputs := []*ort.Value{nil}
	defer closeAll(outputs)
	if err := p.session.Run(ctx, inputs, outputs); err != nil {
		what := "black images"
		if p.model.TakesArrays() {
			what = "samples of zeros"
		}
		return nil, fmt.Errorf("a run of %d %s of %s failed: %w", n, what, shapeText(p.model.input.shape()), err)
	}
	return p.split(ort.Data[int64](outputs[0]))
}

// split returns the shapes of the tensors from the joined shapes of their sources.
func (p *shapeReader) split(joined []int64) ([][]int, error) {
	read := make([][]int, 1, len(p.sources)+1)
	for _, d := range joined {
		if last := len(read) - 1; d >= 0 {
			read[last] = append(read[last], int(d))
		} else {
			read = append(read, nil)
		}
	}
	if len(read) != len(p.sources)+1 {
		return nil, fmt.Errorf("the engine returned %d shapes of %d tensors", len(read)-1, len(p.sources))
	}
	shapes := make([][]int, len(p.source))
	for i, source := range p.source {
		shapes[i] = read[source]
	}
	return shapes, nil
}

// inputValues returns tensors for the named inputs and n samples (images or arrays). The inputs for
// samples are zero, and other inputs have their constant values. With an error it returns the
// tensors made so far, which the caller must close too.
func (m *Model) inputValues(names []string, n int) ([]*ort.Value, error) {
	var values []*ort.Value
	for _, name := range names {
		var v *ort.Value
		var err error
		if typ, shape, ok := m.input.typeAndShape(name, n); ok {
			v, err = m.rt.NewValue(typ, shape...)
		} else if i := slices.IndexFunc(m.constants, func(f constantInput) bool { return f.info.Name == name }); i >= 0 {
			v, err = m.constants[i].value(m.rt, n)
		} else {
			err = fmt.Errorf("the graph has an unexpected input %q", name)
		}
		if err != nil {
			return values, err
		}
		values = append(values, v)
	}
	return values, nil
}

func closeAll(values []*ort.Value) {
	for _, v := range values {
		v.Close()
	}
}
