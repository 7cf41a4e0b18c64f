package accel

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/pb"
)

type batchNorms struct {
	*graph
	opset   int            // version of the standard operators, see gradientPattern
	readers map[string]int // number of nodes that read a tensor, plus 1 for an output
	// Outputs of sums and ReLUs, to the output of the native operator that includes them.
	merged map[string]string
	// Nodes with native operators, by the first tensor that they replace.
	native map[string]nativeNode
	masked map[string]bool // tensors: gradients of ReLUs that a native operator includes
}

// rewriteBatchNorm replaces BatchNormalization in training mode as package train writes it, with a
// following sum and ReLU, and their gradients, by native operators. It reports whether it has
// replaced any.
func rewriteBatchNorm(b *onnx.Builder, outputs []string) bool {
	nodes := b.Nodes()
	r := &batchNorms{newGraph(b), b.Opset(), countReaders(nodes, outputs), map[string]string{}, map[string]nativeNode{}, map[string]bool{}}
	for _, n := range nodes {
		if r.isTraining(n) {
			r.native[n.Output[0]] = nativeNode{batchNorm, onnx.Attrs{"epsilon": onnx.AttrFloat(n, "epsilon", 1e-5), "relu": 0}, n.Input[:3], n.Output}
		}
	}
	if len(r.native) == 0 {
		return false
	}
	for _, n := range nodes {
		r.merge(n)
		r.gradient(n)
	}
	results := map[string]onnx.Value{}
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if len(n.Output) == 0 {
			return nil
		}
		if y, ok := r.merged[n.Output[0]]; ok {
			return []onnx.Value{onnx.Value(y)}
		}
		if c, ok := r.native[n.Output[0]]; ok {
			for i, v := range c.write(b) {
				results[c.outputs[i]] = v
			}
		}
		if results[n.Output[0]] == "" {
			return nil
		}
		values := make([]onnx.Value, len(n.Output))
		for i, t := range n.Output {
			values[i] = results[t]
		}
		return values
	})
	return true
}

// isTraining reports whether n is a BatchNormalization of feature maps in training mode with
// momentum 0, so that its further outputs are the statistics of the batch.
func (r *batchNorms) isTraining(n *pb.NodeProto) bool {
	return n.GetOpType() == "BatchNormalization" && onnx.IsStandard(n) && len(n.Output) == 3 && !slices.Contains(n.Output, "") &&
		onnx.AttrInt(n, "training_mode", 0) == 1 && onnx.AttrFloat(n, "momentum", 0.9) == 0 &&
		len(r.static.Shape(n.Input[0])) >= 3 && r.static.Type(n.Input[0]) == onnx.Float
}

// merge includes node n in the native operator that it alone reads, if n is a sum or a ReLU.
func (r *batchNorms) merge(n *pb.NodeProto) {
	for k, t := range n.Input {
		y := t
		if before, ok := r.merged[t]; ok {
			y = before
		}
		c, ok := r.native[y]
		if !ok || c.op != batchNorm || r.readers[t] != 1 || c.attrs["relu"] != 0 {
			continue
		}
		switch {
		case isOp(n, "Relu"):
			c.attrs["relu"] = 1
		case isOp(n, "Add") && len(c.inputs) == 3 && slices.Equal(r.static.Shape(n.Input[1-k]), r.static.Shape(t)) && r.available(r.index[y], n.Input[1-k]):
			c.inputs = append(slices.Clone(c.inputs), n.Input[1-k])
		default:
			continue
		}
		r.native[y] = c
		delete(r.merged, t)
		r.merged[n.Output[0]] = y
		return
	}
}

// gradient replaces the gradients of a BatchNormalization, if n is their last node.
func (r *batchNorms) gradient(n *pb.NodeProto) {
	if !isOp(n, "Add") {
		return
	}
	// One summand is affine in the input: a BatchNormalization with the mean of the batch, input 3.
	affine, ok := r.producer(n.Input[1], "BatchNormalization")
	if !ok {
		return
	}
	norm := r.producers[affine.Input[3]]
	if norm == nil || !r.isTraining(norm) {
		return
	}
	p, of, err := gradientPattern(norm, r.opset, r.static.Shape(norm.Input[0]))
	if err != nil {
		return // the standard operators stay
	}
	bound := map[string]string{of.x: norm.Input[0], of.scale: norm.Input[1], of.mean: norm.Output[1], of.variance: norm.Output[2]}
	if !r.matches(n.Output[0], p, of.dx, bound) {
		return
	}
	inputs := []string{bound[of.dy], bound[of.x], bound[of.scale], bound[of.mean], bound[of.variance]}
	outputs := []string{n.Output[0], bound[of.sum], bound[of.along]}
	if dy, mask, ok := r.includeMask(inputs[0]); ok {
		if r.readers[inputs[0]] > 3 { // three are nodes that are replaced
			outputs = append(outputs, inputs[0])
		}
		inputs = append(inputs, mask)
		inputs[0] = dy
	}
	first := slices.MinFunc(outputs, func(a, b string) int { return r.index[a] - r.index[b] })
	if r.available(r.index[first], inputs...) { // all inputs are computed before the node
		r.native[first] = nativeNode{batchNormGradient, onnx.Attrs{"epsilon": onnx.AttrFloat(norm, "epsilon", 1e-5)}, inputs, outputs}
	}
}

// includeMask marks t as included if it is the gradient of a ReLU that no native operator includes
// yet. It returns the gradient dy by the ReLU's output, and the tensor that is positive where t is
// dy.
func (r *batchNorms) includeMask(t string) (dy, mask string, ok bool) {
	n := r.producers[t]
	if n == nil || r.masked[t] {
		return "", "", false
	}
	dy, mask, ok = r.reluGradient(n)
	if !ok || !slices.Equal(r.static.Shape(mask), r.static.Shape(t)) || !slices.Equal(r.static.Shape(dy), r.static.Shape(t)) {
		return "", "", false
	}
	r.masked[t] = true
	return dy, r.maskSource(mask), true
}

// batchNormTensors are names of tensors of the gradients of a BatchNormalization y of x. dy and dx
// are the gradients with respect to y and x; sum and along are the sums of dy and of dy (x - mean)
// for each channel.
type batchNormTensors struct{ x, scale, mean, variance, dy, dx, sum, along string }

// gradientPattern returns a graph of the gradients of norm as package grad writes them.
func gradientPattern(norm *pb.NodeProto, opset int, shape []int) (*graph, batchNormTensors, error) {
	b := onnx.NewBuilder(opset).Sharing()
	x, dy := b.Input("x", onnx.Float, shape...), b.Input("dy", onnx.Float, shape...)
	var v [4]onnx.Value
	for i, name := range []string{"scale", "bias", "mean", "variance"} {
		v[i] = b.Input(name, onnx.Float, shape[1])
	}
	attrs := onnx.Attrs{"training_mode": 1, "momentum": 0.0, "epsilon": onnx.AttrFloat(norm, "epsilon", 1e-5)}
	y := b.Ops("BatchNormalization", 3, attrs, x, v[0], v[1], v[2], v[3])
	d, err := grad.Of(b, y[0], dy, x, v[0], v[1])
	if err != nil {
		return nil, batchNormTensors{}, err
	}
	p := newGraph(b)
	// The gradient with respect to scale is along / sqrt(variance + epsilon).
	along := p.producers[string(d[1])].Input[0]
	return p, batchNormTensors{string(x), string(v[0]), string(y[1]), string(y[2]), string(dy), string(d[0]), string(d[2]), along}, nil
}

// matches reports whether tensor t of the graph is computed as tensor like is in a pattern. bound
// maps tensors of the pattern to those that they must match; matches extends it. An input of the
// pattern that bound lacks matches any tensor.
func (g *graph) matches(t string, pattern *graph, like string, bound map[string]string) bool {
	if known, ok := bound[like]; ok {
		return known == t
	}
	bound[like] = t
	if want, ok := pattern.static.Values(like); ok {
		v, ok := g.static.Values(t)
		return ok && slices.Equal(v, want)
	}
	p, n := pattern.producers[like], g.producers[t]
	if p == nil {
		return true
	}
	if n == nil || !isOp(n, p.GetOpType()) || len(n.Input) != len(p.Input) ||
		!slices.EqualFunc(n.Attribute, p.Attribute, func(a, b *pb.AttributeProto) bool { return proto.Equal(a, b) }) {
		return false
	}
	for i := range n.Input {
		if !g.matches(n.Input[i], pattern, p.Input[i], bound) {
			return false
		}
	}
	return true
}
