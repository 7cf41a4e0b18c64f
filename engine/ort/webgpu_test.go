package ort_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// rewritten returns what ort.ForWebGPU makes of the model that build writes, and that model. The
// nodes that must run on the CPU are an error.
func rewritten(t *testing.T, build func(b *onnx.Builder)) (before, after *onnx.Model) {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	build(b)
	before, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	after, onCPU, err := ort.ForWebGPU(before)
	if err != nil {
		t.Fatal(err)
	}
	if len(onCPU) > 0 {
		t.Errorf("nodes %q must run on the CPU", onCPU)
	}
	return before, after
}

// outputsOf runs a model on the CPU and returns its outputs.
func outputsOf(t *testing.T, m *onnx.Model, inputs ...*ort.Value) [][]float32 {
	t.Helper()
	s, err := orttest.Load(t).NewSession(m, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	values := make([]*ort.Value, len(s.Outputs()))
	if err := s.Run(t.Context(), inputs, values); err != nil {
		t.Fatal(err)
	}
	var list [][]float32
	for _, v := range values {
		list = append(list, ort.Data[float32](v))
		defer v.Close()
	}
	return list
}

// TestMaxPoolGradientForWebGPU compares the gradient of MaxPool that WebGPU runs with the original,
// for random windows in one to three dimensions. The elements are small integers, so that windows
// have several largest elements, the first of which gets the gradient.
func TestMaxPoolGradientForWebGPU(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		axes := 1 + r.IntN(3)
		attrs := onnx.Attrs{}
		var kernel, strides, dilations, before, after []int
		shape := []int{1 + r.IntN(3), 1 + r.IntN(3)}
		for range axes {
			k, d := 1+r.IntN([]int{25, 5, 2}[axes-1]), 1+r.IntN(2)
			kernel, dilations, strides = append(kernel, k), append(dilations, d), append(strides, 1+r.IntN(4))
			before, after = append(before, r.IntN(k)), append(after, r.IntN(k))
			shape = append(shape, (k-1)*d+1+r.IntN(9))
		}
		attrs["kernel_shape"], attrs["strides"], attrs["dilations"], attrs["ceil_mode"] = kernel, strides, dilations, r.IntN(2)
		if padding := []string{"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}[r.IntN(4)]; padding == "NOTSET" {
			attrs["pads"] = append(before, after...)
		} else {
			attrs["auto_pad"], attrs["ceil_mode"] = padding, 0
			attrs["dilations"] = []int{1, 1, 1}[:axes]
			for i := range strides {
				strides[i] = min(strides[i], kernel[i]) // otherwise ONNX Runtime computes negative padding
			}
		}
		declared := append([]int{[]int{-1, shape[0]}[r.IntN(2)]}, shape[1:]...)
		original, replaced := rewritten(t, func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, declared...)
			y := b.Op("MaxPool", attrs, x)
			s := b.ReduceSum(b.Add(b.Mul(b.Mul(y, y), b.Add(y, b.Scalar(0.5))), y), false) // its gradient by y is never 0
			g, err := grad.Of(b, s, "", x)
			if err != nil {
				t.Fatal(err)
			}
			b.Output("dx", g[0])
			b.Output("y", y)
		})
		data := make([]float32, tensor.Size(shape))
		for i := range data {
			data[i] = float32(r.IntN(4) - 2)
		}
		x := wrapped(t, data, shape...)
		want, got := outputsOf(t, original, x), outputsOf(t, replaced, x)
		for o := range want {
			for i := range want[o] {
				if math.Abs(float64(got[o][i]-want[o][i])) > 1e-4 {
					t.Fatalf("%v of x %v: output %d differs: element %d is %v, want %v", attrs, shape, o, i, got[o][i], want[o][i])
				}
			}
		}
	}
}

// TestMaxPoolPositionsForWebGPU checks which uses of the positions of the largest elements are
// replaced: those of a gradient alone. Where they are needed, MaxPool must run on the CPU.
func TestMaxPoolPositionsForWebGPU(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order     int    // storage_order: 1 for positions in column-major order
		reduction string // of ScatterElements
		start     float32
		more      func(b *onnx.Builder, positions, reshaped onnx.Value)
		replaced  bool
	}{
		"gradient":             {reduction: "add", replaced: true},
		"column-major":         {order: 1, reduction: "add"},
		"set, not added":       {reduction: "none"},
		"added to ones":        {reduction: "add", start: 1},
		"positions returned":   {reduction: "add", more: func(b *onnx.Builder, p, _ onnx.Value) { b.Output("p", p) }},
		"positions used":       {reduction: "add", more: func(b *onnx.Builder, p, _ onnx.Value) { b.Output("p", b.Cast(p, onnx.Float)) }},
		"reshaped, returned":   {reduction: "add", more: func(b *onnx.Builder, _, r onnx.Value) { b.Output("p", r) }},
		"reshaped, then used":  {reduction: "add", more: func(b *onnx.Builder, _, r onnx.Value) { b.Output("p", b.Cast(r, onnx.Float)) }},
		"a second, other way":  {reduction: "add", more: func(b *onnx.Builder, p, _ onnx.Value) { b.Output("p", b.Cast(b.Reshape(p, 3, -1), onnx.Float)) }},
		"a second gradient":    {reduction: "add", more: func(b *onnx.Builder, p, _ onnx.Value) { scatter(b, "add", 0, b.Reshape(p, -1), "second") }, replaced: true},
		"set in a second node": {reduction: "add", more: func(b *onnx.Builder, p, _ onnx.Value) { scatter(b, "none", 0, b.Reshape(p, -1), "second") }},
	} {
		b := onnx.NewBuilder(onnx.DefaultOpset)
		x := b.Input("x", onnx.Float, 2, 3, 6, 6)
		b.Input("dy", onnx.Float, 2, 3, 3, 3)
		pooled := b.Ops("MaxPool", 2, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}, "storage_order": c.order}, x)
		positions := b.Reshape(pooled[1], -1)
		scatter(b, c.reduction, c.start, positions, "dx")
		if c.more != nil {
			c.more(b, pooled[1], positions)
		}
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		after, onCPU, err := ort.ForWebGPU(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(onCPU) == 0; got != c.replaced {
			t.Errorf("%s: replaced: %v, want %v", name, got, c.replaced)
		}
		s, err := orttest.Load(t).NewSession(after, ort.Options{Threads: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

// scatter adds an output: x-shaped elements of the value start, with dy at the given positions.
func scatter(b *onnx.Builder, reduction string, start float32, positions onnx.Value, output string) {
	flat := b.Reshape(b.Expand(b.Scalar(start), b.Ints(2, 3, 6, 6)), -1)
	b.Output(output, b.Op("ScatterElements", onnx.Attrs{"axis": 0, "reduction": reduction}, flat, positions, b.Reshape("dy", -1)))
}

// TestOldLogSoftmaxForWebGPU checks that LogSoftmax before opset 13, over all later axes together,
// stays.
func TestOldLogSoftmaxForWebGPU(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(12)
	b.Output("y", b.Op("LogSoftmax", onnx.Attrs{"axis": 1}, b.Input("x", onnx.Float, -1, 3, 4)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := ort.ForWebGPU(m)
	if err != nil {
		t.Fatal(err)
	}
	if after != m {
		t.Error("LogSoftmax of opset 12 is replaced")
	}
}

// TestLogSoftmaxForWebGPU compares LogSoftmax over each axis with its replacement, where exp
// overflows.
func TestLogSoftmaxForWebGPU(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	data := make([]float32, 2*3*4)
	for i := range data {
		data[i] = float32(100 * r.NormFloat64()) // exp(x) overflows
	}
	x := wrapped(t, data, 2, 3, 4)
	for axis := -3; axis < 3; axis++ {
		original, replaced := rewritten(t, func(b *onnx.Builder) {
			b.Output("y", b.LogSoftmax(b.Input("x", onnx.Float, -1, 3, 4), axis))
		})
		for _, n := range replaced.Nodes() {
			if n.GetOpType() == "LogSoftmax" {
				t.Error("LogSoftmax is not replaced")
			}
		}
		want, got := outputsOf(t, original, x)[0], outputsOf(t, replaced, x)[0]
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= 1e-5*(1+math.Abs(float64(want[i])))) {
				t.Errorf("axis %d: element %d is %v, want %v", axis, i, got[i], want[i])
			}
		}
	}
}

// TestBatchNormalizationForWebGPU compares BatchNormalization in training mode with its
// replacement, with and without running statistics.
func TestBatchNormalizationForWebGPU(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for _, shape := range [][]int{{5, 3}, {2, 3, 7}, {4, 3, 5, 2}} {
		for _, momentum := range []float64{-1, 0, 0.7} { // -1: the default
			original, replaced := rewritten(t, func(b *onnx.Builder) {
				x := b.Input("x", onnx.Float, append([]int{-1}, shape[1:]...)...)
				v := func(name string) onnx.Value { return b.Input(name, onnx.Float, 3) }
				attrs := onnx.Attrs{"training_mode": 1, "epsilon": 0.01}
				if momentum >= 0 {
					attrs["momentum"] = momentum
				}
				for i, y := range b.Ops("BatchNormalization", 3, attrs, x, v("scale"), v("bias"), v("mean"), v("variance")) {
					b.Output([]string{"y", "mean after", "variance after"}[i], y)
				}
			})
			inputs := []*ort.Value{}
			for _, s := range [][]int{shape, {3}, {3}, {3}, {3}} {
				data := make([]float32, tensor.Size(s))
				for i := range data {
					data[i] = r.Float32() + 0.5
				}
				inputs = append(inputs, wrapped(t, data, s...))
			}
			want, got := outputsOf(t, original, inputs...), outputsOf(t, replaced, inputs...)
			for o := range want {
				for i := range want[o] {
					if math.Abs(float64(got[o][i]-want[o][i])) > 1e-4 {
						t.Fatalf("shape %v, momentum %v: output %d differs: element %d is %v, want %v", shape, momentum, o, i, got[o][i], want[o][i])
					}
				}
			}
		}
	}
}

// TestPaddingForWebGPU checks which convolutions must run on the CPU: those with padding after the
// input alone whose kernel has one element, or may have the size of the input.
func TestPaddingForWebGPU(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kernel, side int // of the kernel and of the input; side -1: not known
		attrs        onnx.Attrs
		onCPU        bool
	}{
		"one element":               {1, 4, onnx.Attrs{"pads": []int{0, 0, 0, 1}}, true},
		"one element, without":      {1, 4, onnx.Attrs{"pads": []int{0, 0, 0, 0}}, false},
		"the input's size":          {4, 4, onnx.Attrs{"pads": []int{0, 0, 1, 0}}, true},
		"unknown size":              {3, -1, onnx.Attrs{"pads": []int{0, 0, 1, 1}}, true},
		"a smaller kernel":          {3, 4, onnx.Attrs{"pads": []int{0, 0, 1, 1}}, false},
		"padding before":            {1, 4, onnx.Attrs{"pads": []int{0, 1, 1, 1}}, false},
		"groups":                    {1, 4, onnx.Attrs{"pads": []int{0, 0, 1, 1}, "group": 3}, false},
		"even kernel, upper":        {2, 2, onnx.Attrs{"auto_pad": "SAME_UPPER"}, true},
		"odd kernel, upper":         {3, 3, onnx.Attrs{"auto_pad": "SAME_UPPER"}, false},
		"smaller kernel, upper":     {2, 4, onnx.Attrs{"auto_pad": "SAME_UPPER"}, false},
		"even kernel, lower":        {2, 2, onnx.Attrs{"auto_pad": "SAME_LOWER"}, false},
		"one element, upper":        {1, 1, onnx.Attrs{"auto_pad": "SAME_UPPER"}, false},
		"even kernel, no padding":   {2, 2, onnx.Attrs{"auto_pad": "VALID"}, false},
		"unknown size, upper":       {2, -1, onnx.Attrs{"auto_pad": "SAME_UPPER"}, true},
		"unknown size, one element": {1, -1, onnx.Attrs{"pads": []int{0, 0, 1, 1}}, true},
		"unknown size, odd, upper":  {3, -1, onnx.Attrs{"auto_pad": "SAME_UPPER"}, false},
	} {
		b := onnx.NewBuilder(onnx.DefaultOpset)
		channels := 3
		if c.attrs["group"] != nil {
			channels = 1
		}
		b.Output("y", b.Conv(b.Input("x", onnx.Float, -1, 3, c.side, c.side), b.Const("w", tensor.New(3, channels, c.kernel, c.kernel)), "", c.attrs))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		_, onCPU, err := ort.ForWebGPU(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(onCPU) > 0; got != c.onCPU {
			t.Errorf("%s: on the CPU: %v, want %v", name, got, c.onCPU)
		}
	}
}
