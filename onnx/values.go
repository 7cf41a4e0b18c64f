package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Tensor copies a float32 constant of the main graph: an initializer or a Constant node's value.
func (m *Model) Tensor(name string) (tensor.Tensor, error) {
	t := m.constant(name)
	if t == nil {
		return tensor.Tensor{}, fmt.Errorf("reading weights: the model has no constant %q", name)
	}
	if pbutil.External(t) {
		loaded, err := m.load(t)
		if err != nil {
			return tensor.Tensor{}, fmt.Errorf("reading weights %q: %w", name, err)
		}
		t = loaded
	}
	v, err := floats(t)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("reading weights %q: %w", name, err)
	}
	return v, nil
}

// Weights returns the float32 initializers, in the order of the file.
func (m *Model) Weights() []ValueInfo {
	var list []ValueInfo
	for _, t := range m.proto.Graph.Initializer {
		if Type(t.GetDataType()) == Float {
			list = append(list, ValueInfo{Name: t.GetName(), Type: Float, Shape: Dims(t.Dims)})
		}
	}
	return list
}

// ZeroPoint returns the value and the type of a constant of one byte, as quantisation has them. ok is
// false for any other.
func (m *Model) ZeroPoint(name string) (value int, typ Type, ok bool) {
	t := m.constant(name)
	if t == nil {
		return 0, 0, false
	}
	typ = Type(t.GetDataType())
	switch {
	case typ != Uint8 && typ != Int8:
		return 0, 0, false
	case len(t.RawData) == 1 && typ == Int8:
		return int(int8(t.RawData[0])), typ, true
	case len(t.RawData) == 1:
		return int(t.RawData[0]), typ, true
	case len(t.Int32Data) == 1:
		return int(t.Int32Data[0]), typ, true
	}
	return 0, 0, false
}

// constant returns an initializer or a Constant node's value, or nil.
func (m *Model) constant(name string) *pb.TensorProto {
	for _, t := range m.proto.Graph.Initializer {
		if t.GetName() == name {
			return t
		}
	}
	for _, n := range m.proto.Graph.Node {
		if n.GetOpType() == "Constant" && len(n.Output) == 1 && n.Output[0] == name {
			return AttrTensor(n, "value")
		}
	}
	return nil
}

// load returns a tensor whose data are in another file, with its data in memory.
func (m *Model) load(t *pb.TensorProto) (*pb.TensorProto, error) {
	s, err := spanOf(t)
	if err != nil {
		return nil, err
	}
	n, err := pbutil.Elements(t.Dims)
	if err != nil {
		return nil, err
	}
	f, err := filesys.Open(filepath.Join(m.dir, filepath.FromSlash(s.file)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, n*int64(Type(t.GetDataType()).Size()))
	if _, err := f.ReadAt(raw, s.offset); err != nil {
		return nil, err
	}
	return &pb.TensorProto{Dims: t.Dims, DataType: t.DataType, RawData: raw}, nil
}

// floats returns the values of a float32 tensor whose data are in the message.
func floats(t *pb.TensorProto) (tensor.Tensor, error) {
	if Type(t.GetDataType()) != Float {
		return tensor.Tensor{}, fmt.Errorf("its type is %v, not float", Type(t.GetDataType()))
	}
	data := make([]float32, max(len(t.FloatData), len(t.RawData)/4))
	copy(data, t.FloatData)
	for i := range len(t.RawData) / 4 {
		data[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.RawData[4*i:]))
	}
	return tensor.From(data, pbutil.Ints(t.Dims)...)
}

// TensorProto returns the message of a float32 tensor, with its data as raw bytes.
func TensorProto(name string, t tensor.Tensor) *pb.TensorProto {
	raw := make([]byte, 4*len(t.Data))
	for i, v := range t.Data {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return &pb.TensorProto{Name: &name, DataType: new(int32(Float)), Dims: pbutil.Int64s(t.Shape), RawData: raw}
}

func intProto(name string, shape []int, values []int) *pb.TensorProto {
	raw := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(v))
	}
	return &pb.TensorProto{Name: &name, DataType: new(int32(Int64)), Dims: pbutil.Int64s(shape), RawData: raw}
}
