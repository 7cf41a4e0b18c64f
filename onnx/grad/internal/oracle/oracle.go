// Package oracle rewrites graphs of float32 so that they compute in float64 where rounding could
// change the result much. It is test support: the gradients of package grad are compared with those
// that it gives.
//
// A relu whose input is within rounding of 0 is on or off by chance, and a gradient jumps with it.
// In the model that InFloat64 returns, everything that decides (comparisons, signs, the places of
// maxima) is computed in float64, and so is all that it is computed from. Everything else stays in
// float32 and reads float32 casts:
//
//	g, err := grad.Add(m, grad.Options{})      // activations and gradients
//	g, err = oracle.InFloat64(g, "y")          // activations in float64, gradients in float32
//
// The result has the inputs and outputs of the given model, with their types, and consists of
// standard operators. ONNX Runtime lacks CPU kernels in float64 for many of them. So convolutions
// are written as matrix products, pools as sums, activations by what they are made of, and
// recurrent layers step by step. An operator for which there is neither is computed in float32.
package oracle

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

// MinOpset is the oldest operator set that can be rewritten.
const MinOpset = 11

// InFloat64 returns a model that computes in float64 the named tensors, everything that decides,
// and all that these are computed from.
func InFloat64(m *onnx.Model, of ...string) (*onnx.Model, error) {
	if m.Opset() < MinOpset {
		return nil, fmt.Errorf("computing in float64 needs opset %d or later, and the model has %d", MinOpset, m.Opset())
	}
	b := onnx.Extend(m)
	if b.Apply(rewrite.Inline); b.Err() != nil {
		return nil, fmt.Errorf("computing in float64: %w", b.Err())
	}
	w := &writer{Builder: b.Scope("double"), static: infer.Analyze(b.Snapshot()), wide: map[string]onnx.Value{}, numbers: map[float64]onnx.Value{}}
	w.wanted = w.before(b.Nodes(), of)
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

// A writer writes nodes anew. Each tensor keeps its name and its type; beside it is its wide form,
// in float64.
type writer struct {
	*onnx.Builder
	static  *infer.Info
	wanted  map[string]bool       // what is computed from wide forms, and has one if it is float32
	wide    map[string]onnx.Value // wide forms so far
	numbers map[float64]onnx.Value
	err     error
}

// decides are operators whose result jumps where their input changes a little.
var decides = map[string]bool{
	"Greater": true, "GreaterOrEqual": true, "Less": true, "LessOrEqual": true, "Equal": true, "Sign": true,
	"ArgMax": true, "ArgMin": true, "Hardmax": true, "TopK": true, "Floor": true, "Ceil": true, "Round": true,
}

// before are the tensors of, what nodes that decide make, and all that these are computed from.
func (w *writer) before(nodes []*pb.NodeProto, of []string) map[string]bool {
	wanted := map[string]bool{}
	for _, name := range of {
		wanted[name] = true
	}
	for _, n := range slices.Backward(nodes) {
		if !decides[n.GetOpType()] && !slices.ContainsFunc(n.Output, func(name string) bool { return wanted[name] }) {
			continue
		}
		for _, name := range n.Output {
			wanted[name] = true
		}
		if shapeOnly[n.GetOpType()] {
			continue
		}
		for _, name := range n.Input {
			wanted[name] = true
		}
	}
	return wanted
}

// shapeOnly are operators that read no elements.
var shapeOnly = map[string]bool{"Shape": true, "Size": true}

func (w *writer) single(name string) bool { return w.static.Type(name) == onnx.Float }

// write is what stands for the outputs of a node, under their names: casts of its wide form. It is
// nothing where the node stays.
func (w *writer) write(n *pb.NodeProto) []onnx.Value {
	op := n.GetOpType()
	switch {
	case n.GetDomain() != "" && n.GetDomain() != "ai.onnx" || len(n.Input) == 0:
		return nil
	case shapeOnly[op]:
		if w.wide[n.Input[0]] == "" {
			return nil
		}
		return []onnx.Value{w.Op(op, copied(n), w.wide[n.Input[0]])}
	case !slices.ContainsFunc(n.Output, func(name string) bool { return w.wanted[name] }),
		!slices.ContainsFunc(slices.Concat(n.Input, n.Output), w.single):
		return nil
	}
	values := w.form(n)
	if len(values) < len(n.Output) || len(values) == 0 || values[0] == "" {
		return nil
	}
	results := slices.Clone(values)
	for i, name := range n.Output {
		if name != "" && w.single(name) {
			w.wide[name] = values[i]
			results[i] = w.Cast(values[i], onnx.Float)
		}
	}
	return results
}

// form writes the wide form of a node; nothing where there is none. Forms take a node to be as its
// operator is defined; one that lacks an input, or has too few numbers in a list, makes them reach
// out of bounds.
func (w *writer) form(n *pb.NodeProto) (values []onnx.Value) {
	defer func() {
		if e := recover(); e != nil && w.err == nil {
			w.err = fmt.Errorf("%s: it is not as its operator is defined: check the axes, lists and shapes that it has (%v)", onnx.Label(n), e)
		}
	}()
	if write := forms[n.GetOpType()]; write != nil {
		return []onnx.Value{write(w, n)}
	}
	if recurrent[n.GetOpType()] {
		return w.recurrent(n)
	}
	if !native[n.GetOpType()] {
		return nil
	}
	attrs := copied(n)
	if to, ok := attrs["to"]; ok && to.(*pb.AttributeProto).GetI() == int64(onnx.Float) {
		attrs["to"] = onnx.Double
	}
	inputs := make([]onnx.Value, len(n.Input))
	for i := range inputs {
		inputs[i] = w.x(n, i)
	}
	return w.Ops(n.GetOpType(), len(n.Output), attrs, inputs...)
}

// copied are the attributes of a node.
func copied(n *pb.NodeProto) onnx.Attrs {
	attrs := onnx.Attrs{}
	for _, a := range n.Attribute {
		attrs[a.GetName()] = a
	}
	return attrs
}

// x is the i-th input of a node, wide if it is one of float32; empty where it is absent.
func (w *writer) x(n *pb.NodeProto, i int) onnx.Value {
	if i >= len(n.Input) || n.Input[i] == "" {
		return ""
	}
	name := n.Input[i]
	if !w.single(name) {
		return onnx.Value(name)
	}
	if w.wide[name] == "" {
		w.wide[name] = w.Cast(onnx.Value(name), onnx.Double)
	}
	return w.wide[name]
}

// num is a number in float64.
func (w *writer) num(v float64) onnx.Value {
	if w.numbers[v] == "" {
		w.numbers[v] = w.doubles([]int64{}, v)
	}
	return w.numbers[v]
}

// doubles is a constant in float64.
func (w *writer) doubles(shape []int64, values ...float64) onnx.Value {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	t := int32(onnx.Double)
	return w.Initializer(&pb.TensorProto{DataType: &t, Dims: shape, RawData: raw})
}
