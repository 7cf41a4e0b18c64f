//go:build cgo

package grad_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// oracleMinOpset is the oldest operator set that can be rewritten.
const oracleMinOpset = 11

// inFloat64 rewrites a float32 graph to compute in float64 where rounding errors could change the
// result considerably: the named tensors, the inputs of discontinuous operators (comparisons,
// signs, positions of maxima), and all that these are computed from. A relu whose input is within
// rounding of 0 may be on or off, and a gradient jumps with it. Everything else stays in float32:
//
//	g, err := grad.Add(m, grad.Options{}) // activations and gradients
//	g, err = inFloat64(g, "y")            // activations in float64, gradients in float32
//
// The result has the inputs and outputs of the given model, with their types, and consists of
// standard operators. ONNX Runtime lacks float64 CPU kernels for many operators. Those of them that
// the test networks use are replaced by other operators: a convolution becomes a matrix product,
// for example. The rest are computed in float32. A model of an operator set before oracleMinOpset
// is an error, and so is a malformed node.
func inFloat64(m *onnx.Model, tensors ...string) (*onnx.Model, error) {
	if m.Opset() < oracleMinOpset {
		return nil, fmt.Errorf("computing in float64 needs opset %d or later, and the model has %d", oracleMinOpset, m.Opset())
	}
	b := onnx.Extend(m) // a builder that starts with the nodes of m
	if b.Apply(rewrite.Inline); b.Err() != nil {
		return nil, fmt.Errorf("computing in float64: %w", b.Err())
	}
	w := &writer{
		Builder: b.Scope("double"), static: infer.Analyze(b.Snapshot()), needed: withAncestors(b.Nodes(), tensors),
		doubles: map[string]onnx.Value{}, numbers: map[float64]onnx.Value{},
	}
	b.Rewrite(w.write)
	var outputs []string
	for _, v := range b.Outputs() {
		outputs = append(outputs, string(v))
	}
	all, err := b.Model()
	if w.err != nil {
		err = w.err
	}
	if err != nil {
		return nil, fmt.Errorf("computing in float64: %w", err)
	}
	return rewrite.WithOutputs(all, outputs)
}

// A writer replaces nodes by float64 ones. Each tensor keeps its name and type as a Cast of its
// float64 counterpart.
type writer struct {
	*onnx.Builder
	static  *infer.Info            // the types of tensors
	needed  map[string]bool        // tensors that are computed in float64 if they are float32
	doubles map[string]onnx.Value  // the float64 counterparts of tensors
	numbers map[float64]onnx.Value // the float64 constants that num has added
	err     error                  // the first error of a node
}

// discontinuous are operators whose result jumps where their input changes a little.
var discontinuous = set("Greater GreaterOrEqual Less LessOrEqual Equal Sign ArgMax ArgMin Hardmax TopK Floor Ceil Round")

// shapeOnly are operators that read the shape of their input, but not its elements.
var shapeOnly = set("Shape Size")

// withAncestors returns the given tensors, the outputs of discontinuous operators, and all that
// these are computed from.
func withAncestors(nodes []*pb.NodeProto, tensors []string) map[string]bool {
	needed := map[string]bool{}
	add := func(names []string) {
		for _, name := range names {
			needed[name] = true
		}
	}
	add(tensors)
	for _, n := range slices.Backward(nodes) {
		if !discontinuous[n.GetOpType()] && !slices.ContainsFunc(n.Output, func(name string) bool { return needed[name] }) {
			continue
		}
		add(n.Output)
		if !shapeOnly[n.GetOpType()] {
			add(n.Input)
		}
	}
	return needed
}

func (w *writer) isFloat32(name string) bool { return w.static.Type(name) == onnx.Float }

// write returns what replaces the outputs of a node: float32 casts of the float64 results. It
// returns nothing where the node stays.
func (w *writer) write(n *pb.NodeProto) []onnx.Value {
	switch {
	case !onnx.IsStandard(n) || len(n.Input) == 0:
		return nil
	case shapeOnly[n.GetOpType()]:
		x := w.doubles[n.Input[0]]
		if x == "" {
			return nil
		}
		return []onnx.Value{w.Op(n.GetOpType(), onnx.AttrsOf(n), x)}
	case !slices.ContainsFunc(n.Output, func(name string) bool { return w.needed[name] }),
		!slices.ContainsFunc(slices.Concat(n.Input, n.Output), w.isFloat32):
		return nil
	}
	values := w.inFloat64(n)
	if len(values) < len(n.Output) || len(values) == 0 || values[0] == "" {
		return nil
	}
	results := slices.Clone(values)
	for i, name := range n.Output {
		if name != "" && w.isFloat32(name) {
			w.doubles[name] = values[i]
			results[i] = w.Cast(values[i], onnx.Float)
		}
	}
	return results
}

// inFloat64 computes the outputs of a node in float64. It returns nothing where that is not
// possible. By operator, rewrites has the functions that compute it by other operators, and native
// tells which have a float64 kernel. A malformed node, which lacks an input for example, makes it
// panic with an index out of range; that becomes an error.
func (w *writer) inFloat64(n *pb.NodeProto) (values []onnx.Value) {
	defer func() {
		if e := recover(); e != nil && w.err == nil {
			w.err = fmt.Errorf("%s: malformed node: check its axes, lists and shapes (%v)", onnx.Label(n), e)
		}
	}()
	if write := rewrites[n.GetOpType()]; write != nil {
		return []onnx.Value{write(w, n)}
	}
	if !native[n.GetOpType()] { // ONNX Runtime has no float64 CPU kernel
		return nil
	}
	attrs := onnx.AttrsOf(n)
	if n.GetOpType() == "Cast" && onnx.AttrInt(n, "to", 0) == int(onnx.Float) {
		attrs["to"] = onnx.Double
	}
	inputs := make([]onnx.Value, len(n.Input))
	for i := range inputs {
		inputs[i] = w.x(n, i)
	}
	return w.Ops(n.GetOpType(), len(n.Output), attrs, inputs...)
}

// x is the i-th input of a node, in float64 if it is a float32 one. It is empty where the input is
// absent.
func (w *writer) x(n *pb.NodeProto, i int) onnx.Value {
	if i >= len(n.Input) || n.Input[i] == "" {
		return ""
	}
	name := n.Input[i]
	if !w.isFloat32(name) {
		return onnx.Value(name)
	}
	if w.doubles[name] == "" {
		w.doubles[name] = w.Cast(onnx.Value(name), onnx.Double)
	}
	return w.doubles[name]
}

// num is a float64 constant of rank 0.
func (w *writer) num(v float64) onnx.Value {
	if w.numbers[v] == "" {
		t := int32(onnx.Double)
		w.numbers[v] = w.Initializer(&pb.TensorProto{DataType: &t, RawData: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))})
	}
	return w.numbers[v]
}
