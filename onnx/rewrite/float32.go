package rewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// maxEmbedded is the largest total size of half-precision weights, in bytes, that are converted in
// the model, a message of at most 2 GiB. More are read through Cast nodes.
const maxEmbedded = 900 << 20

// ReadFloat32 reads a model as Read does, and rewrites it by ToFloat32.
func ReadFloat32(path string) (*onnx.Model, error) {
	m, err := onnx.Read(path)
	if err != nil {
		return nil, err
	}
	if m, err = ToFloat32(m); err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	return m, nil
}

// ToFloat32 returns a model with float32 for float16 and bfloat16, also in inputs and outputs: only
// for float32 the CPU kernels are complete. A tensor attribute of these types in an external file
// is an error.
func ToFloat32(m *onnx.Model) (*onnx.Model, error) {
	if HalfPrecision(m) == onnx.Undefined {
		return m, nil
	}
	p := mutable(m.Proto())
	w := widener{embedded: halfBytes(p) <= maxEmbedded}
	if err := pbutil.EachGraph(p, w.graph); err != nil {
		return nil, err
	}
	return m.WithProto(p), nil
}

// mutable returns a copy that can be changed; it shares the values of the main graph's weights.
func mutable(p *pb.ModelProto) *pb.ModelProto {
	g := pbutil.Shallow(p.Graph)
	weights := g.Initializer
	g.Initializer = nil
	p = pbutil.Shallow(p)
	p.Graph = g
	p = proto.CloneOf(p)
	for _, t := range weights {
		p.Graph.Initializer = append(p.Graph.Initializer, pbutil.Shallow(t))
	}
	return p
}

// HalfPrecision returns the first of Float16 and BFloat16 that a model uses, or Undefined.
func HalfPrecision(m *onnx.Model) onnx.Type {
	found := onnx.Undefined
	record := func(t onnx.Type) {
		if t.Half() && found == onnx.Undefined {
			found = t
		}
	}
	_ = pbutil.EachGraph(m.Proto(), func(g *pb.GraphProto) error {
		for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
			eachElementType(v.Type, func(t *int32) { record(onnx.Type(*t)) })
		}
		for _, n := range g.Node {
			for _, a := range n.Attribute {
				if isTypeAttribute(a) {
					record(onnx.Type(a.GetI()))
				}
				record(onnx.Type(a.GetT().GetDataType()))
			}
		}
		for _, t := range g.Initializer {
			record(onnx.Type(t.GetDataType()))
		}
		return nil
	})
	return found
}

// eachElementType calls f for the element type, also inside sequences and optionals.
func eachElementType(t *pb.TypeProto, f func(t *int32)) {
	switch v := t.GetValue().(type) {
	case *pb.TypeProto_TensorType:
		if v.TensorType.ElemType != nil {
			f(v.TensorType.ElemType)
		}
	case *pb.TypeProto_SequenceType:
		eachElementType(v.SequenceType.ElemType, f)
	case *pb.TypeProto_OptionalType:
		eachElementType(v.OptionalType.ElemType, f)
	}
}

// isTypeAttribute reports whether a standard operator's attribute is an element type.
func isTypeAttribute(a *pb.AttributeProto) bool {
	switch a.GetName() {
	case "to", "dtype", "stash_type", "output_dtype", "output_datatype":
		return true
	}
	return false
}

// halfBytes returns the size in bytes of the main graph's half-precision initializers.
func halfBytes(p *pb.ModelProto) int64 {
	var total int64
	for _, t := range p.Graph.Initializer {
		if onnx.Type(t.GetDataType()).Half() {
			n, _ := pbutil.Elements(t.Dims)
			total += 2 * n
		}
	}
	return total
}

type widener struct {
	embedded bool // convert weights in the model itself, rather than add Cast nodes
}

// graph rewrites one graph, without its subgraphs, for which pbutil.EachGraph calls it too.
func (w widener) graph(g *pb.GraphProto) error {
	for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
		eachElementType(v.Type, func(t *int32) {
			if onnx.Type(*t).Half() {
				*t = int32(onnx.Float)
			}
		})
	}
	if err := widenAttributes(g.Node); err != nil {
		return err
	}
	var casts []*pb.NodeProto
	for _, t := range g.Initializer {
		switch {
		case !onnx.Type(t.GetDataType()).Half():
		case pbutil.External(t) || !w.embedded:
			casts = append(casts, castOf(t))
		default:
			if err := widenTensor(t); err != nil {
				return fmt.Errorf("tensor %q %w", t.GetName(), err)
			}
		}
	}
	g.Node = append(casts, g.Node...)
	return nil
}

// castOf renames a half-precision weight, and returns a node that casts it to float32 under the old
// name, which ONNX Runtime evaluates once.
func castOf(t *pb.TensorProto) *pb.NodeProto {
	wide := t.GetName()
	t.Name = new(wide + "/" + onnx.Type(t.GetDataType()).String())
	return &pb.NodeProto{
		OpType: new("Cast"), Name: new(wide + "/Cast"), Input: []string{t.GetName()}, Output: []string{wide},
		Attribute: []*pb.AttributeProto{{Name: new("to"), Type: pb.AttributeProto_INT.Enum(), I: new(int64(onnx.Float))}},
	}
}

func widenAttributes(nodes []*pb.NodeProto) error {
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if isTypeAttribute(a) && onnx.Type(a.GetI()).Half() {
				a.I = new(int64(onnx.Float))
			}
			if onnx.Type(a.GetT().GetDataType()).Half() {
				if err := widenTensor(a.T); err != nil {
					return fmt.Errorf("attribute %s of %s %w", a.GetName(), onnx.Label(n), err)
				}
			}
		}
	}
	return nil
}

// widenTensor converts a half-precision tensor to float32. Values in an external file are an error.
func widenTensor(t *pb.TensorProto) error {
	if pbutil.External(t) {
		return errors.New("is half precision and in an external file, which is supported for initializers only")
	}
	bits := t.RawData
	if bits == nil {
		bits = make([]byte, 0, 2*len(t.Int32Data))
		for _, v := range t.Int32Data {
			bits = binary.LittleEndian.AppendUint16(bits, uint16(v))
		}
	}
	widened := func(h uint16) float32 { return float16.Frombits(h).Float32() }
	if onnx.Type(t.GetDataType()) == onnx.BFloat16 {
		// bfloat16 is the upper half of a float32.
		widened = func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
	}
	raw := make([]byte, 0, 2*len(bits))
	for i := 0; i < len(bits); i += 2 {
		v := widened(binary.LittleEndian.Uint16(bits[i:]))
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	t.DataType, t.RawData, t.Int32Data = new(int32(onnx.Float)), raw, nil
	return nil
}
