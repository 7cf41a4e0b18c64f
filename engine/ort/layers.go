package ort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Layers implements engine.Network. It runs the network on inputs of zeros.
func (n *Network) Layers(ctx context.Context, s engine.Setup) (*engine.Layers, error) {
	axes, err := infer.Axes(n.graph, s.Axes)
	if err != nil {
		return nil, &engine.AxesError{Err: err}
	}
	out := &engine.Layers{All: n.dependentLayers(s), Outputs: map[string][]int{}, Axes: map[string]tensor.Axes{}, Batch: s.Batch}
	shapes, err := n.sampleShapes(ctx, s, out)
	if err != nil {
		return nil, err
	}
	for i := range out.All {
		l := &out.All[i]
		l.Axes, l.Shape = axes[l.Name], shapes[l.Name]
	}
	for _, p := range n.graph.Outputs() {
		out.Axes[p.Name] = axes[p.Name]
		if shape := shapes[p.Name]; shape != nil {
			out.Outputs[p.Name] = shape
		}
	}
	return out, nil
}

// dependentLayers returns the layers that depend on the samples.
func (n *Network) dependentLayers(s engine.Setup) []tensor.Layer {
	all := n.graph.Layers()
	if len(s.Samples) == len(n.graph.Inputs()) {
		return all
	}
	dependent := map[string]bool{}
	for _, name := range s.Samples {
		dependent[name] = true
	}
	for _, node := range n.graph.Nodes() {
		if slices.ContainsFunc(onnx.Reads(node), func(name string) bool { return dependent[name] }) {
			for _, out := range node.Output {
				dependent[out] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(l tensor.Layer) bool { return !dependent[l.Name] })
}

// sampleShapes returns the shapes of the layers and of the outputs for one sample. Tensors that are
// empty, or whose first axis is not the batch, are left out. If the batch may have any size, but a
// run of two samples fails, it sets out.Batch to 1.
func (n *Network) sampleShapes(ctx context.Context, s engine.Setup, out *engine.Layers) (map[string][]int, error) {
	names := onnx.Names(out.All)
	for _, p := range n.graph.Outputs() {
		if readable(p.Type) && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	p, err := n.newShapeReader(s.Feed, names)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if s.Batch > 0 {
		shapes, err := p.shapes(ctx, s.Batch)
		if err != nil {
			return nil, err
		}
		return perSample(names, shapes, shapes, s.Batch, s.Batch), nil
	}
	one, err := p.shapes(ctx, 1)
	if err != nil {
		return nil, err
	}
	two, err := p.shapes(ctx, 2)
	var expired *TimeoutError
	switch {
	case ctx.Err() != nil, errors.As(err, &expired):
		return nil, err
	case err != nil:
		out.Batch = 1
		return perSample(names, one, one, 1, 1), nil
	}
	return perSample(names, one, two, 1, 2), nil
}

func readable(t onnx.Type) bool {
	return slices.Contains([]onnx.Type{onnx.Float, onnx.Double, onnx.Int64, onnx.Int32, onnx.Uint8, onnx.Int8, onnx.Bool}, t)
}

// perSample returns the shapes for one sample, from those of runs of two batch sizes: of the
// tensors whose first axis is the batch size in both, and whose other axes are equal.
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
// runs every node as it is: a graph that ONNX Runtime has optimised returns declared shapes without
// computing the tensors.
type shapeReader struct {
	network *Network
	feed    engine.Feed
	session *Session
	full    *onnx.Model // the graph, if the session has its cheap copy by rewrite.ShapesOnly; else nil
	sources []string    // tensors whose shapes the session returns
	source  []int       // for each tensor, the index of the source that has the same shape
}

func (p *shapeReader) close() { p.session.Close() }

func (n *Network) newShapeReader(feed engine.Feed, names []string) (*shapeReader, error) {
	p := &shapeReader{network: n, feed: feed}
	// index is that of each source in p.sources; equal has earlier tensors of the same shape.
	index, equal := map[string]int{}, shapeSources(n.graph)
	for _, name := range names {
		source := cmp.Or(equal[name], name)
		if _, ok := index[source]; !ok {
			index[source] = len(p.sources)
			p.sources = append(p.sources, source)
		}
		p.source = append(p.source, index[source])
	}
	b := onnx.Extend(n.graph)
	output := "shapes of the layers"
	b.Output(output, joinShapes(b, p.sources))
	graph, err := b.Model()
	if err != nil {
		return nil, err
	}
	if graph, err = rewrite.WithOutputs(graph, []string{output}); err != nil {
		return nil, err
	}
	byValues := []string{"NonZero", "NonMaxSuppression", "Unique", "Compress", "If", "Loop", "Scan"}
	if !slices.ContainsFunc(graph.Nodes(), func(n *pb.NodeProto) bool {
		return slices.Contains(byValues, n.GetOpType())
	}) {
		if p.session, err = n.newSession(rewrite.ShapesOnly(graph), n.shapeOptions()); err == nil {
			p.full = graph
			return p, nil
		}
	}
	// Shapes depend on the values of weights, or the engine does not open the ShapesOnly graph.
	if p.session, err = n.newSession(graph, n.shapeOptions()); err != nil {
		return nil, err
	}
	return p, nil
}

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

// Shapes do not depend on the device, so these sessions run on the CPU.
func (n *Network) shapeOptions() Options {
	return Options{Threads: n.options.Threads, Verbatim: true, Spin: n.options.Spin}
}

func (n *Network) newSession(graph *onnx.Model, o Options) (*Session, error) {
	s, err := n.runtime.NewSession(graph, o)
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

// shapes returns the shapes of the tensors in a run of n samples of zeros. If a run of the
// ShapesOnly graph fails, it runs the model's own graph, whose error may differ.
func (p *shapeReader) shapes(ctx context.Context, n int) ([][]int, error) {
	shapes, err := p.run(ctx, n)
	if expired := (*TimeoutError)(nil); err == nil || p.full == nil || ctx.Err() != nil || errors.As(err, &expired) {
		return shapes, err
	}
	session, openErr := p.network.newSession(p.full, p.network.shapeOptions())
	if openErr != nil {
		return nil, openErr
	}
	p.close()
	p.session, p.full = session, nil
	return p.run(ctx, n)
}

func (p *shapeReader) run(ctx context.Context, n int) ([][]int, error) {
	s := arraySession{p.session}
	var inputs []*engine.Array
	defer func() {
		for _, a := range inputs {
			a.Close()
		}
	}()
	for _, name := range s.Inputs() {
		a, err := p.feed(name, n)
		if err == nil {
			inputs = append(inputs, a)
			err = s.Bind(a)
		}
		if err != nil {
			return nil, err
		}
	}
	outputs := []*Value{nil}
	if err := p.session.Run(ctx, valuesOf(inputs), outputs); err != nil {
		return nil, fmt.Errorf("a run on zeros of %s failed: %w", shapesText(inputs), err)
	}
	defer outputs[0].Close()
	return p.split(Data[int64](outputs[0]))
}

func shapesText(arrays []*engine.Array) string {
	texts := make([]string, len(arrays))
	for i, a := range arrays {
		texts[i] = strings.ReplaceAll(strings.Trim(fmt.Sprint(a.Shape), "[]"), " ", " x ")
	}
	return strings.Join(texts, ", ")
}

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
