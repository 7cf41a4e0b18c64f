package ort_test

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
)

// TestTypes runs a graph with an Identity node for every element type. A Value is a tensor for the
// runtime. open (a session for types.onnx of testdata), value (which closes a Value at the end of
// the test) and run are in session_test.go.
func TestTypes(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	cases := []struct {
		name string
		typ  onnx.Type
		fill func(*ort.Value)
		same func(a, b *ort.Value) bool
	}{
		typeCase("float", onnx.Float, []float32{1.5, -math.MaxFloat32}),
		typeCase("double", onnx.Double, []float64{math.Pi, -math.MaxFloat64}),
		typeCase("int8", onnx.Int8, []int8{-128, 127}),
		typeCase("int16", onnx.Int16, []int16{-32768, 32767}),
		typeCase("int32", onnx.Int32, []int32{math.MinInt32, 7}),
		typeCase("int64", onnx.Int64, []int64{math.MinInt64, 7}),
		typeCase("uint8", onnx.Uint8, []uint8{255, 7}),
		typeCase("uint16", onnx.Uint16, []uint16{65535, 7}),
		typeCase("uint32", onnx.Uint32, []uint32{math.MaxUint32, 7}),
		typeCase("uint64", onnx.Uint64, []uint64{math.MaxUint64, 7}),
		typeCase("bool", onnx.Bool, []bool{true, false}),
		typeCase("float16", onnx.Float16, []uint16{0x3c00, 0xc000}),   // 1 and -2
		typeCase("bfloat16", onnx.BFloat16, []uint16{0x3f80, 0xc000}), // 1 and -2
	}
	var in, out []string
	var inputs, outputs []*ort.Value
	for _, c := range cases {
		in, out = append(in, c.name), append(out, c.name+"_out")
		x, err := rt.NewValue(c.typ, 2)
		inputs = append(inputs, value(t, x, err))
		y, err := rt.NewValue(c.typ, 2)
		outputs = append(outputs, value(t, y, err))
		c.fill(x)
	}
	_, s := open(t, "types", in, out)
	run(t, s, inputs, outputs)
	for i, c := range cases {
		if outputs[i].Type() != c.typ || !c.same(inputs[i], outputs[i]) {
			t.Errorf("an Identity node changes the elements of type %s", c.name)
		}
	}
}

// typeCase returns functions that fill a Value with data, and that compare two Values with data.
func typeCase[T ort.Element](name string, typ onnx.Type, data []T) (c struct {
	name string
	typ  onnx.Type
	fill func(*ort.Value)
	same func(a, b *ort.Value) bool
}) {
	c.name, c.typ = name, typ
	c.fill = func(v *ort.Value) { copy(ort.Data[T](v), data) }
	c.same = func(a, b *ort.Value) bool {
		return slices.Equal(ort.Data[T](a), data) && slices.Equal(ort.Data[T](b), data)
	}
	return c
}

func TestValueErrors(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for _, shape := range [][]int{{-1}, {1 << 40, 1 << 40}, {1 << 62, 2, 2}} {
		if v, err := rt.NewValue(onnx.Float, shape...); err == nil {
			v.Close()
			t.Errorf("a tensor of shape %v is accepted", shape)
		}
	}
	if v, err := rt.NewValue(onnx.String, 2); err == nil {
		v.Close()
		t.Error("a tensor of strings is accepted")
	}
	if v, err := ort.Wrap(rt, []float32{1, 2}, 3); err == nil {
		v.Close()
		t.Error("two elements are accepted as a tensor of three")
	}
}
