package rewrite

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// TestWidenFloat16 compares every IEEE 754 binary16 number with its value from the definition.
func TestWidenFloat16(t *testing.T) {
	t.Parallel()
	widened := &pb.TensorProto{DataType: new(int32(onnx.Float16)), RawData: make([]byte, 0, 2<<16)}
	for h := range 1 << 16 {
		widened.RawData = binary.LittleEndian.AppendUint16(widened.RawData, uint16(h))
	}
	if err := widenTensor(widened); err != nil {
		t.Fatal(err)
	}
	for h := range 1 << 16 {
		sign := 1 - 2*float64(h>>15)
		exponent, fraction := h>>10&31, float64(h&1023)
		want := sign * math.Ldexp(1024+fraction, exponent-25)
		switch {
		case exponent == 0:
			want = sign * math.Ldexp(fraction, -24)
		case exponent == 31 && fraction == 0:
			want = math.Inf(int(sign))
		case exponent == 31:
			want = math.NaN()
		}
		got := math.Float32frombits(binary.LittleEndian.Uint32(widened.RawData[4*h:]))
		if float64(got) != want && !(math.IsNaN(want) && math.IsNaN(float64(got))) {
			t.Fatalf("%#04x is %v, want %v", h, got, want)
		}
	}
}

// halfModel returns the model y = Cast(x + w + c) in half precision, a type of 16 bits. w is a
// weight and c a constant of -2.
func halfModel(half onnx.Type, w *pb.TensorProto) *pb.ModelProto {
	constant := halfTensor("", half, -2)
	constant.RawData, constant.Int32Data = nil, []int32{int32(binary.LittleEndian.Uint16(constant.RawData))}
	node := func(op string, out string, attrs []*pb.AttributeProto, in ...string) *pb.NodeProto {
		return &pb.NodeProto{OpType: &op, Input: in, Output: []string{out}, Attribute: attrs}
	}
	return &pb.ModelProto{
		IrVersion:   new(int64(8)),
		OpsetImport: []*pb.OperatorSetIdProto{{Version: new(int64(18))}},
		Graph: &pb.GraphProto{
			Name:        new("half"),
			Initializer: []*pb.TensorProto{w},
			Input:       []*pb.ValueInfoProto{onnx.ValueInfo{Name: "x", Type: half, Shape: []onnx.Dim{{Size: 1}}}.Proto()},
			Output:      []*pb.ValueInfoProto{onnx.ValueInfo{Name: "y", Type: half, Shape: []onnx.Dim{{Size: 1}}}.Proto()},
			ValueInfo:   []*pb.ValueInfoProto{onnx.ValueInfo{Name: "xw", Type: half, Shape: []onnx.Dim{{Size: 1}}}.Proto()},
			Node: []*pb.NodeProto{
				node("Constant", "c", []*pb.AttributeProto{{Name: new("value"), Type: pb.AttributeProto_TENSOR.Enum(), T: constant}}),
				node("Add", "xw", nil, "x", "w"),
				node("Add", "sum", nil, "xw", "c"),
				node("Cast", "y", []*pb.AttributeProto{{Name: new("to"), Type: pb.AttributeProto_INT.Enum(), I: new(int64(half))}}, "sum"),
			},
		},
	}
}

// halfTensor returns a tensor of one value v, 1.5 or -2, in half precision.
func halfTensor(name string, half onnx.Type, v float32) *pb.TensorProto {
	bits := map[onnx.Type]map[float32]uint16{onnx.Float16: {1.5: 0x3e00, -2: 0xc000}, onnx.BFloat16: {1.5: 0x3fc0, -2: 0xc000}}[half][v]
	return &pb.TensorProto{Name: &name, DataType: new(int32(half)), Dims: []int64{1}, RawData: binary.LittleEndian.AppendUint16(nil, bits)}
}

// TestHalfBecomesFloat checks that ToFloat32 makes every tensor of a model float32, and leaves the
// model it is given unchanged. The result has three layers (float32 tensors that depend on the
// input): xw, sum and y. HalfPrecision returns the 16-bit type that a model uses, or Undefined.
func TestHalfBecomesFloat(t *testing.T) {
	t.Parallel()
	for _, half := range []onnx.Type{onnx.Float16, onnx.BFloat16} {
		data, err := proto.Marshal(halfModel(half, halfTensor("w", half, 1.5)))
		if err != nil {
			t.Fatal(err)
		}
		original, err := onnx.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		before, err := original.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		m, err := ToFloat32(original)
		if err != nil {
			t.Fatal(err)
		}
		if got := HalfPrecision(original); got != half {
			t.Errorf("HalfPrecision = %v, want %v", got, half)
		}
		if after, err := original.Bytes(); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%v: ToFloat32 changes the model it is given (error %v)", half, err)
		}
		for name, want := range map[string]float32{"w": 1.5, "c": -2} {
			v, err := m.Tensor(name)
			if err != nil || len(v.Data) != 1 || v.Data[0] != want {
				t.Errorf("%v: %s is %v (%v), want %v", half, name, v.Data, err, want)
			}
		}
		if in, out := m.Inputs()[0].Type, m.Outputs()[0].Type; in != onnx.Float || out != onnx.Float {
			t.Errorf("%v: the input is %v and the output %v, want float32", half, in, out)
		}
		if layers := m.Layers(); len(layers) != 3 {
			t.Errorf("%v: the layers are %v, want 3", half, layers)
		}
		rewritten, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = onnx.Parse(rewritten); err != nil || HalfPrecision(m) != onnx.Undefined {
			t.Errorf("%v: the rewritten model still has tensors of %v (error %v)", half, HalfPrecision(m), err)
		}
	}
}

// TestExternalHalfStaysInItsFile checks that weights in a file beside the model stay there. A Cast
// makes them float32; ONNX Runtime computes it once, when it loads the model.
func TestExternalHalfStaysInItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := halfTensor("w", onnx.Float16, 1.5)
	if err := os.WriteFile(filepath.Join(dir, "weights"), w.RawData, 0o600); err != nil {
		t.Fatal(err)
	}
	w.RawData, w.DataLocation = nil, pb.TensorProto_EXTERNAL.Enum()
	w.ExternalData = []*pb.StringStringEntryProto{{Key: new("location"), Value: new("weights")}}
	data, err := proto.Marshal(halfModel(onnx.Float16, w))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := ReadFloat32(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.ExternalDir() != dir {
		t.Errorf("external files are in %q, want %q", m.ExternalDir(), dir)
	}
	cast := m.Nodes()[0]
	if cast.GetOpType() != "Cast" || cast.Output[0] != "w" || onnx.Type(onnx.AttrInt(cast, "to", 0)) != onnx.Float {
		t.Errorf("the first node is %v, want a Cast of w to float32", cast)
	}
	if m.ElementTypes()["w"] != onnx.Float || len(m.Layers()) != 3 {
		t.Errorf("w is %v and the layers are %v, want float32 and 3 layers", m.ElementTypes()["w"], m.Layers())
	}
}

// TestWidenWindow checks that the operator of a window function (for spectra) that returns half
// precision returns float32 after ToFloat32.
func TestWidenWindow(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	window := b.Op("HannWindow", onnx.Attrs{"output_datatype": onnx.Float16}, b.Int(8))
	x := b.Input("x", onnx.Float16, 8)
	b.Output("y", b.Mul(x, window))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	wide, err := ToFloat32(m)
	if err != nil {
		t.Fatal(err)
	}
	if got := wide.ElementTypes()[string(window)]; got != onnx.Float || HalfPrecision(wide) != onnx.Undefined {
		t.Errorf("the window is %v, want float32; the model has tensors of %v, want none of half precision", got, HalfPrecision(wide))
	}
}
