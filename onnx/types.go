package onnx

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/onnx/pb"
)

// A Type is the element type of a tensor, numbered as in the ONNX schema.
type Type int32

// The supported element types. Other types keep their number.
const (
	Undefined Type = 0
	Float     Type = 1
	Uint8     Type = 2
	Int8      Type = 3
	Uint16    Type = 4
	Int16     Type = 5
	Int32     Type = 6
	Int64     Type = 7
	String    Type = 8
	Bool      Type = 9
	Float16   Type = 10
	Double    Type = 11
	Uint32    Type = 12
	Uint64    Type = 13
	Complex64 Type = 14
	BFloat16  Type = 16
	// NoTensor is the type of a sequence, a map, an optional or a sparse tensor.
	NoTensor Type = -1
)

// String returns the name of the type in ONNX, in lower case, or "type N" for an unknown number.
func (t Type) String() string {
	if t == NoTensor {
		return "no tensor"
	}
	if name, ok := pb.TensorProto_DataType_name[int32(t)]; ok {
		return strings.ToLower(name)
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Half reports whether the type is one of the two 16-bit floating-point types.
func (t Type) Half() bool { return t == Float16 || t == BFloat16 }

// IsFloat reports whether the type is one of the floating-point types.
func (t Type) IsFloat() bool { return t == Float || t == Double || t.Half() }

// Size returns the bytes of one element, 0 for strings and types without a constant.
func (t Type) Size() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float, Int32, Uint32:
		return 4
	case Double, Int64, Uint64, Complex64:
		return 8
	}
	return 0
}

// A Dim is one dimension of a tensor as the file declares it.
type Dim struct {
	Size   int    // -1: free, that is, not fixed by the file
	Symbol string // name of a free dimension, for instance "batch"; "": none
}

// Dims returns a shape without free dimensions as a list of Dim.
func Dims(shape []int64) []Dim {
	dims := make([]Dim, len(shape))
	for i, d := range shape {
		dims[i].Size = int(d)
	}
	return dims
}

// String returns the size, the symbol, or "?".
func (d Dim) String() string {
	switch {
	case d.Size >= 0:
		return fmt.Sprint(d.Size)
	case d.Symbol != "":
		return d.Symbol
	}
	return "?"
}

// A ValueInfo describes an input, output or initializer of a model: ONNX's ValueInfoProto.
type ValueInfo struct {
	Name  string
	Type  Type
	Shape []Dim // nil if the file does not declare a shape
}

// Sizes returns the shape, with -1 for dimensions that are not fixed; nil if there is no shape.
func (p ValueInfo) Sizes() []int {
	if p.Shape == nil {
		return nil
	}
	sizes := make([]int, len(p.Shape))
	for i, d := range p.Shape {
		sizes[i] = d.Size
	}
	return sizes
}

// String returns the name, type and shape: "x float[batch 3 32 32]".
func (p ValueInfo) String() string {
	if p.Shape == nil {
		return fmt.Sprintf("%s %v", p.Name, p.Type)
	}
	dims := make([]string, len(p.Shape))
	for i, d := range p.Shape {
		dims[i] = d.String()
	}
	return fmt.Sprintf("%s %v[%s]", p.Name, p.Type, strings.Join(dims, " "))
}

// ValueInfoOf returns the declaration of a tensor in a graph.
func ValueInfoOf(v *pb.ValueInfoProto) ValueInfo {
	tensor := v.GetType().GetTensorType()
	p := ValueInfo{Name: v.GetName(), Type: Type(tensor.GetElemType())}
	if tensor == nil && v.GetType().GetValue() != nil {
		p.Type = NoTensor
	}
	if tensor.GetShape() == nil {
		return p
	}
	p.Shape = make([]Dim, len(tensor.Shape.Dim))
	for i, d := range tensor.Shape.Dim {
		p.Shape[i] = Dim{Size: -1, Symbol: d.GetDimParam()}
		if v, ok := d.Value.(*pb.TensorShapeProto_Dimension_DimValue); ok && v.DimValue >= 0 {
			p.Shape[i].Size = int(v.DimValue)
		}
	}
	return p
}

// Proto returns the message: of rank 0 if Shape is empty, without a shape if it is nil. It declares
// no type if the value is no tensor; the engine infers it.
func (p ValueInfo) Proto() *pb.ValueInfoProto {
	if p.Type == NoTensor {
		return &pb.ValueInfoProto{Name: &p.Name}
	}
	tensor := &pb.TypeProto_Tensor{ElemType: new(int32(p.Type))}
	if p.Shape != nil {
		tensor.Shape = &pb.TensorShapeProto{}
	}
	for _, d := range p.Shape {
		dim := &pb.TensorShapeProto_Dimension{}
		switch {
		case d.Size >= 0:
			dim.Value = &pb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d.Size)}
		case d.Symbol != "":
			dim.Value = &pb.TensorShapeProto_Dimension_DimParam{DimParam: d.Symbol}
		}
		tensor.Shape.Dim = append(tensor.Shape.Dim, dim)
	}
	return &pb.ValueInfoProto{Name: &p.Name, Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{TensorType: tensor}}}
}
