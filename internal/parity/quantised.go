package parity

import (
	"strings"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A span is the range of a quantised tensor: multiples of Step from Low to High.
type span struct{ Low, High, Step float64 }

// A stand is a layer of the other model with the name by which it is matched. The dequantised
// tensor of a quantised one stands for it.
type stand struct {
	tensor.Layer
	name  string
	op    string   // of the node that computes the values, before they are quantised
	same  []string // further dequantised copies
	span  *span
	quant bool
}

// Form describes how a model computes: "float", or how it is quantised.
func Form(m *model.Model) string {
	g := networkOf(m)
	if len(g.nodes) == 0 {
		return "unknown"
	}
	has := map[string]bool{}
	for _, n := range g.nodes {
		op := n.GetOpType()
		if strings.HasPrefix(op, "QLinear") || op == "QGemm" {
			op = "QOperator"
		}
		has[op] = true
	}
	switch {
	case has["QOperator"]:
		return "quantised, as QOperator"
	case has["QuantizeLinear"]:
		return "quantised, as QDQ"
	case has["DynamicQuantizeLinear"]:
		return "quantised, dynamically"
	case has["DequantizeLinear"], has["MatMulNBits"]:
		return "float, with quantised weights"
	}
	return "float"
}

// quantInput is what onnxruntime's quantiser appends to a model's output that it quantises: the
// dequantised tensor keeps the name.
const quantInput = "_QuantizeLinear_Input"

// stands returns the layers of a model that can be matched, in order. Of a tensor that is quantised
// and dequantised, or rounded, there is one, the dequantised or rounded one.
func stands(layers []tensor.Layer, g *network) []stand {
	byName := map[string]tensor.Layer{}
	for _, l := range layers {
		byName[l.Name] = l
	}
	covered, copies := map[string]bool{}, map[string][]string{} // of the tensor that QuantizeLinear reads
	source := map[string]string{}                               // that tensor, by the dequantised one
	for _, n := range g.nodes {
		if len(n.Input) == 0 {
			continue
		}
		if q := g.producer[n.Input[0]]; q != nil && restores(n, q) && byName[n.Output[0]].Shape != nil {
			t := q.Input[0]
			source[n.Output[0]] = t
			covered[t] = true
			copies[t] = append(copies[t], n.Output[0])
		}
	}
	var out []stand
	for _, l := range layers {
		t := source[l.Name]
		switch {
		case t != "" && copies[t][0] == l.Name:
			s := stand{Layer: l, name: t, op: l.Op, same: copies[t][1:], quant: l.Op == "DequantizeLinear"}
			if s.quant {
				s.span = g.span(g.producer[l.Name])
			}
			if strings.HasSuffix(t, quantInput) {
				s.name = l.Name
			}
			if p := g.producer[t]; p != nil {
				s.op = p.GetOpType()
			}
			out = append(out, s)
		case t == "" && !covered[l.Name]:
			s := stand{Layer: l, name: l.Name, op: l.Op}
			if n := g.producer[l.Name]; l.Op == "DequantizeLinear" && g.producer[n.Input[0]] != nil { // of an operator on integers
				if op := rewrite.FloatOperator(g.producer[n.Input[0]].GetOpType()); op != "" {
					s.op, s.quant, s.span = op, true, g.span(n)
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// restores reports whether n makes floats of what q has made of floats: quantised values, or values of
// half precision.
func restores(n, q *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "DequantizeLinear":
		return q.GetOpType() == "QuantizeLinear"
	case "Cast":
		return q.GetOpType() == "Cast" && onnx.Type(onnx.AttrInt(q, "to", 0)).Half() && onnx.Type(onnx.AttrInt(n, "to", 0)) == onnx.Float
	}
	return false
}

// limits are the smallest and the largest value of quantised types.
var limits = map[onnx.Type][2]float64{
	onnx.Int8: {-128, 127}, onnx.Uint8: {0, 255}, onnx.Int16: {-1 << 15, 1<<15 - 1}, onnx.Uint16: {0, 1<<16 - 1},
}

// span returns the range of what a DequantizeLinear node returns, or nil if it is not known or
// differs from channel to channel.
func (g *network) span(n *pb.NodeProto) *span {
	limit, ok := limits[g.types[n.Input[0]]]
	scale, known := g.scalar(n.Input[1])
	if !ok || !known || scale <= 0 {
		return nil
	}
	zero := 0.
	if len(n.Input) > 2 && n.Input[2] != "" {
		if zero, known = g.scalar(n.Input[2]); !known {
			return nil
		}
	}
	return &span{(limit[0] - zero) * scale, (limit[1] - zero) * scale, scale}
}

// scalar returns a constant of one element, of float32 or a type of limits.
func (g *network) scalar(name string) (float64, bool) {
	w := g.weights[name]
	if n := g.producer[name]; w == nil && n != nil && n.GetOpType() == "Constant" {
		w = onnx.AttrTensor(n, "value")
	}
	if w == nil {
		return 0, false
	}
	for _, d := range w.Dims {
		if d != 1 {
			return 0, false
		}
	}
	return scalarOf(w)
}
