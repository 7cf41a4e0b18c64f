package invert

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// TestReplaceShortcuts checks that shortcuts without parameters (He et al. 2016, option A: a Slice
// takes every stride-th position, and a Pad adds channels of zeros) are replaced by convolutions
// with the same results, and that similar nodes remain. A stepBuilder builds the graph that
// computes one step of gradient descent on images.
//
// Feature maps are 2 x 16 x 7 x 8. The eight pads are those before each axis, then those after.
func TestReplaceShortcuts(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	rng := seed.Rand(1)
	x := make([]float32, 2*16*7*8)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	const end = 1<<63 - 1 // of a Slice: up to the end of the axis
	slice := func(b *onnx.Builder, v onnx.Value, starts, ends, axes, steps []int) onnx.Value {
		return b.Op("Slice", nil, v, b.Ints(starts...), b.Ints(ends...), b.Ints(axes...), b.Ints(steps...))
	}
	// everySecond halves the height and the width.
	everySecond := func(b *onnx.Builder, v onnx.Value) onnx.Value {
		return slice(b, slice(b, v, []int{0}, []int{end}, []int{2}, []int{2}), []int{0}, []int{end}, []int{3}, []int{2})
	}
	pad := func(b *onnx.Builder, v onnx.Value, pads ...int) onnx.Value {
		return b.Op("Pad", nil, v, b.Ints(pads...), b.Scalar(0))
	}
	for _, c := range []struct {
		name  string
		found bool // whether it is a shortcut, which is replaced
		write func(b *onnx.Builder, v onnx.Value) onnx.Value
	}{
		{"two slices", true, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, everySecond(b, v), 0, 8, 0, 0, 0, 8, 0, 0)
		}},
		{"one slice of two axes", true, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, slice(b, v, []int{0, 0}, []int{7, end}, []int{-2, -1}, []int{3, 2}), 0, 0, 0, 0, 0, 16, 0, 0)
		}},
		{"one axis", true, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, slice(b, v, []int{0}, []int{8}, []int{3}, []int{4}), 0, 1, 0, 0, 0, 2, 0, 0)
		}},
		{"starts later", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, slice(b, v, []int{1}, []int{end}, []int{2}, []int{2}), 0, 8, 0, 0, 0, 8, 0, 0)
		}},
		{"ends earlier", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, slice(b, v, []int{0}, []int{6}, []int{2}, []int{2}), 0, 8, 0, 0, 0, 8, 0, 0)
		}},
		{"slices channels", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, slice(b, v, []int{0}, []int{end}, []int{1}, []int{2}), 0, 8, 0, 0, 0, 8, 0, 0)
		}},
		{"pads space too", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, everySecond(b, v), 0, 8, 1, 0, 0, 8, 0, 0)
		}},
		{"removes channels", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return pad(b, everySecond(b, v), 0, -1, 0, 0, 0, 8, 0, 0)
		}},
		{"pads with ones", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Op("Pad", nil, everySecond(b, v), b.Ints(0, 8, 0, 0, 0, 8, 0, 0), b.Scalar(1))
		}},
		{"reflects", false, func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Op("Pad", onnx.Attrs{"mode": "reflect"}, everySecond(b, v), b.Ints(0, 8, 0, 0, 0, 8, 0, 0))
		}},
		{"no slice", false, func(b *onnx.Builder, v onnx.Value) onnx.Value { return pad(b, v, 0, 8, 0, 0, 0, 8, 0, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &stepBuilder{b: onnx.NewBuilder(17)}
			in := s.b.Input("x", onnx.Float, 2, 16, 7, 8)
			s.b.Output("y", c.write(s.b, in))
			before := outputOf(t, rt, s.b, x)
			s.replaceShortcuts()
			padded := slices.ContainsFunc(s.b.Nodes(), func(n *pb.NodeProto) bool { return n.GetOpType() == "Pad" })
			if padded == c.found {
				t.Errorf("the graph has a Pad: %v, want %v", padded, !c.found)
			}
			if after := outputOf(t, rt, s.b, x); !slices.Equal(after, before) {
				t.Error("the graph's output has changed")
			}
		})
	}
}

// outputOf returns the output of a graph on x.
func outputOf(t *testing.T, rt *ort.Runtime, b *onnx.Builder, x []float32) []float32 {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.Wrap(rt, x, 2, 16, 7, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := make([]*ort.Value, 1)
	if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	defer out[0].Close()
	return slices.Clone(ort.Data[float32](out[0]))
}
