//go:build cgo

package grad_test

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// An operand is an input of the operator under test, with its value. The zero operand is an
// optional input that is left out.
type operand struct {
	shape          []int
	floats         []float32 // its gradient is tested, unless noGradient is set
	ints           []int64
	bools          []bool
	isInt32        bool // ints are of 32 bits
	isFloat64      bool // floats are of 64 bits
	noGradient     bool // has floats, whose gradient is not tested
	alwaysConstant bool // always a constant of the graph, never an input
}

func (o operand) isAbsent() bool { return o.shape == nil }

func (o operand) differentiable() bool { return o.floats != nil && !o.noGradient }

func (o operand) elementType() onnx.Type {
	switch {
	case o.isInt32:
		return onnx.Int32
	case o.ints != nil:
		return onnx.Int64
	case o.bools != nil:
		return onnx.Bool
	}
	if o.isFloat64 {
		return onnx.Double
	}
	return onnx.Float
}

// constant adds the operand to a graph as an initializer.
func (o operand) constant(b *onnx.Builder, name string) onnx.Value {
	return b.Initializer(o.proto(name))
}

// proto returns the operand as a TensorProto, ONNX's message for a tensor.
func (o operand) proto(name string) *pb.TensorProto {
	t := &pb.TensorProto{Name: &name, RawData: []byte{}}
	kind := int32(o.elementType())
	t.DataType = &kind
	for _, d := range o.shape {
		t.Dims = append(t.Dims, int64(d))
	}
	for _, v := range o.floats {
		if o.isFloat64 {
			t.RawData = binary.LittleEndian.AppendUint64(t.RawData, math.Float64bits(float64(v)))
			continue
		}
		t.RawData = binary.LittleEndian.AppendUint32(t.RawData, math.Float32bits(v))
	}
	for _, v := range o.ints {
		if o.isInt32 {
			t.RawData = binary.LittleEndian.AppendUint32(t.RawData, uint32(v))
			continue
		}
		t.RawData = binary.LittleEndian.AppendUint64(t.RawData, uint64(v))
	}
	for _, v := range o.bools {
		t.RawData = append(t.RawData, map[bool]byte{true: 1}[v])
	}
	return t
}

func (o operand) value(rt *ort.Runtime) (*ort.Value, error) {
	switch {
	case o.isInt32:
		list := make([]int32, len(o.ints))
		for i, v := range o.ints {
			list[i] = int32(v)
		}
		return ort.Wrap(rt, list, o.shape...)
	case o.isFloat64:
		list := make([]float64, len(o.floats))
		for i, v := range o.floats {
			list[i] = float64(v)
		}
		return ort.Wrap(rt, list, o.shape...)
	case o.ints != nil:
		return ort.Wrap(rt, o.ints, o.shape...)
	case o.bools != nil:
		return ort.Wrap(rt, o.bools, o.shape...)
	}
	// BatchNormalization in training writes to its inputs.
	return ort.Wrap(rt, slices.Clone(o.floats), o.shape...)
}
