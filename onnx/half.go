package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
)

// inMemory is how many bytes of half-precision weights are rewritten in the message itself. More of them, twice as
// large in float32, might exceed what a message can hold, so they keep their type and a Cast follows them.
const inMemory = 900 << 20

// widen rewrites float16 and bfloat16 to float32 everywhere in a model, and returns which of them it met first.
func widen(p *pb.ModelProto) (Type, error) {
	w := widener{embedded: halfBytes(p) <= inMemory}
	err := eachGraph(p, w.graph)
	return w.met, err
}

func halfBytes(p *pb.ModelProto) int64 {
	var total int64
	for _, t := range p.Graph.Initializer {
		if Type(t.GetDataType()).Half() {
			n, _ := elements(t.Dims)
			total += 2 * n
		}
	}
	return total
}

type widener struct {
	embedded bool // rewrite weights in place
	met      Type
}

// meet notes a type and reports whether it is half precision.
func (w *widener) meet(t Type) bool {
	if t.Half() && w.met == Undefined {
		w.met = t
	}
	return t.Half()
}

func (w *widener) graph(g *pb.GraphProto) error {
	for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
		w.declared(v.Type)
	}
	if err := w.attributes(g.Node); err != nil {
		return err
	}
	var casts []*pb.NodeProto
	for _, t := range g.Initializer {
		switch {
		case !w.meet(Type(t.GetDataType())):
		case external(t) || !w.embedded:
			casts = append(casts, castOf(t))
		default:
			if err := toFloat(t); err != nil {
				return fmt.Errorf("tensor %q %w", t.GetName(), err)
			}
		}
	}
	g.Node = append(casts, g.Node...)
	return nil
}

// castOf renames a half-precision weight and returns the node that makes the float32 tensor of the old name from it.
// A runtime evaluates it once, when it loads the model.
func castOf(t *pb.TensorProto) *pb.NodeProto {
	wide := t.GetName()
	t.Name = ptr(wide + "/" + Type(t.GetDataType()).String())
	return &pb.NodeProto{
		OpType: ptr("Cast"), Name: ptr(wide + "/Cast"), Input: []string{t.GetName()}, Output: []string{wide},
		Attribute: []*pb.AttributeProto{intAttribute("to", int64(Float))},
	}
}

// declared rewrites a declared type, also inside sequences and optionals.
func (w *widener) declared(t *pb.TypeProto) {
	switch v := t.GetValue().(type) {
	case *pb.TypeProto_TensorType:
		if w.meet(Type(v.TensorType.GetElemType())) {
			v.TensorType.ElemType = ptr(int32(Float))
		}
	case *pb.TypeProto_SequenceType:
		w.declared(v.SequenceType.ElemType)
	case *pb.TypeProto_OptionalType:
		w.declared(v.OptionalType.ElemType)
	}
}

// typed are the attributes of standard operators whose value is an element type.
var typed = []string{"to", "dtype", "stash_type", "output_dtype"}

func (w *widener) attributes(nodes []*pb.NodeProto) error {
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if slices.Contains(typed, a.GetName()) && w.meet(Type(a.GetI())) {
				a.I = ptr(int64(Float))
			}
			if a.T != nil && w.meet(Type(a.T.GetDataType())) {
				if err := toFloat(a.T); err != nil {
					return fmt.Errorf("attribute %s of %s %w", a.GetName(), label(n), err)
				}
			}
		}
	}
	return nil
}

// toFloat rewrites a half-precision tensor that is in the message.
func toFloat(t *pb.TensorProto) error {
	if external(t) {
		return errors.New("is half precision in an external file, where only weights can be")
	}
	bits := t.RawData
	if bits == nil {
		bits = make([]byte, 0, 2*len(t.Int32Data))
		for _, v := range t.Int32Data {
			bits = binary.LittleEndian.AppendUint16(bits, uint16(v))
		}
	}
	widened := fromFloat16
	if Type(t.GetDataType()) == BFloat16 {
		widened = func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
	}
	raw := make([]byte, 0, 2*len(bits))
	for i := 0; i < len(bits); i += 2 {
		v := widened(binary.LittleEndian.Uint16(bits[i:]))
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	t.DataType, t.RawData, t.Int32Data = ptr(int32(Float)), raw, nil
	return nil
}

// fromFloat16 is the value of an IEEE 754 binary16 number: 1 bit of sign, 5 of exponent, 10 of fraction.
func fromFloat16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // zero or subnormal: fraction times 2^-24
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31: // infinite or NaN
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
