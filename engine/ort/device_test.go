package ort_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

var onWebGPU = ort.Options{Device: "webgpu"}

// newSession returns a session for the graph that build makes.
func newSession(t *testing.T, o ort.Options, build func(b *onnx.Builder)) *ort.Session {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	build(b)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := orttest.Load(t).NewSession(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// wrapped returns a Value (a tensor for the runtime) whose memory is data. It is closed at the end
// of the test.
func wrapped(t *testing.T, data []float32, shape ...int) *ort.Value {
	t.Helper()
	v, err := ort.Wrap(orttest.Load(t), data, shape...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// halveAndAdd returns a function that adds y = x / 2 + 1, of n numbers, to a graph.
func halveAndAdd(n int) func(b *onnx.Builder) {
	return func(b *onnx.Builder) {
		b.Output("y", b.Add(b.Mul(b.Input("x", onnx.Float, n), b.Scalar(0.5)), b.Scalar(1)))
	}
}

// TestPlacedValuesStayOnTheDevice copies values to the device with Place, uses the output of one
// run as the input of the next, and copies the result back with Download. The Go memory of the
// values must not change before Download: that would show a copy after a run. UseDriver selects a
// driver that runs WebGPU on the CPU unless NOETHER_TESTGPU is set, or skips the test.
func TestPlacedValuesStayOnTheDevice(t *testing.T) {
	gputest.UseDriver(t)
	s := newSession(t, onWebGPU, halveAndAdd(3))
	x, y := wrapped(t, []float32{4, 0, -2}, 3), wrapped(t, make([]float32, 3), 3)
	if err := s.Place(x, y); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Run(t.Context(), []*ort.Value{x}, []*ort.Value{y}); err != nil {
			t.Fatal(err)
		}
		x, y = y, x
	}
	if got := ort.Data[float32](x); !slices.Equal(got, []float32{4, 0, -2}) {
		t.Errorf("Go memory has %v before Download, want the elements at Place", got)
	}
	if err := x.Download(); err != nil {
		t.Fatal(err)
	}
	if got := ort.Data[float32](x); !slices.Equal(got, []float32{2.5, 1.5, 1}) {
		t.Errorf("after two runs %v, want [2.5 1.5 1]", got)
	}
	copy(ort.Data[float32](x), []float32{8, 8, 8})
	if err := errors.Join(x.Upload(), s.Run(t.Context(), []*ort.Value{x}, []*ort.Value{y}), y.Download()); err != nil {
		t.Fatal(err)
	}
	if got := ort.Data[float32](y); !slices.Equal(got, []float32{5, 5, 5}) {
		t.Errorf("after Upload of 8: %v, want 5", got)
	}
	if err := errors.Join(x.Close(), y.Close()); err != nil {
		t.Error(err)
	}
}

func TestPlaceHasNoEffectOnTheCPU(t *testing.T) {
	t.Parallel()
	s := newSession(t, ort.Options{}, halveAndAdd(1))
	x, y := wrapped(t, []float32{4}, 1), wrapped(t, []float32{0}, 1)
	if err := errors.Join(s.Place(x, y), s.Run(t.Context(), []*ort.Value{x}, []*ort.Value{y}), x.Upload(), y.Download()); err != nil {
		t.Fatal(err)
	}
	if got := ort.Data[float32](y)[0]; got != 3 {
		t.Errorf("y = %v, want 3", got)
	}
}

// TestFallbackIsReportedOnce opens two sessions with an operator that WebGPU lacks (Det, the
// determinant), and with a shape computation, which ONNX Runtime leaves to the CPU on any device.
// Only the operator is to be reported, and only for the first session.
func TestFallbackIsReportedOnce(t *testing.T) {
	gputest.UseDriver(t)
	var notes []string
	rt := orttest.Load(t)
	rt.Notify(func(text string) { notes = append(notes, text) })
	defer rt.Notify(nil)
	for range 2 {
		s := newSession(t, onWebGPU, func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, 1, 2, 2)
			b.Output("determinant", b.Node("", "Det", 1, nil, b.Relu(x))[0])
			b.Output("shape", b.Concat(0, b.Shape(x), b.Ints(7)))
		})
		outputs := []*ort.Value{nil, nil}
		if err := s.Run(t.Context(), []*ort.Value{wrapped(t, []float32{3, 1, -5, 2}, 1, 2, 2)}, outputs); err != nil {
			t.Fatal(err)
		}
		if det, shape := ort.Data[float32](outputs[0])[0], ort.Data[int64](outputs[1]); det != 6 || !slices.Equal(shape, []int64{1, 2, 2, 7}) {
			t.Errorf("determinant %v, shape %v", det, shape)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "webgpu lacks the operators Det:") {
		t.Errorf("notes %q, want one that names Det alone", notes)
	}
}

// TestDeviceMemory runs graphs with a tensor of rows x 1024 float32 values: two that are larger
// than the device can hold (1.2 GB and 12.9 GB), then one that fits.
func TestDeviceMemory(t *testing.T) {
	gputest.UseSoftwareDriver(t)
	for _, c := range []struct {
		rows int
		fits bool
	}{{300 << 10, false}, {3 << 20, false}, {1 << 10, true}} {
		s := newSession(t, onWebGPU, func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, 1, 1)
			b.Output("y", b.ReduceMean(b.Add(b.Node("", "Expand", 1, nil, x, b.Ints(c.rows, 1024))[0], x), true, 0, 1))
		})
		y := wrapped(t, []float32{0}, 1, 1)
		err := s.Run(t.Context(), []*ort.Value{wrapped(t, []float32{3}, 1, 1)}, []*ort.Value{y})
		if errors.Is(err, engine.ErrDeviceMemory) == c.fits || c.fits && ort.Data[float32](y)[0] != 6 {
			t.Errorf("%d rows: error %v, y = %v", c.rows, err, ort.Data[float32](y))
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
	}
}

// TestConcurrentWebGPUSessions runs two sessions at once, which share the device.
func TestConcurrentWebGPUSessions(t *testing.T) {
	gputest.UseDriver(t)
	const n, runs = 4096, 20
	var wait sync.WaitGroup
	for k := range 2 {
		s := newSession(t, onWebGPU, halveAndAdd(n))
		x, y := wrapped(t, slices.Repeat([]float32{float32(k)}, n), n), wrapped(t, make([]float32, n), n)
		wait.Go(func() {
			for range runs {
				if err := s.Run(t.Context(), []*ort.Value{x}, []*ort.Value{y}); err != nil {
					t.Error(err)
					return
				}
				if i := slices.IndexFunc(ort.Data[float32](y), func(v float32) bool { return v != float32(k)/2+1 }); i >= 0 {
					t.Errorf("session %d: element %d is %v", k, i, ort.Data[float32](y)[i])
					return
				}
			}
		})
	}
	wait.Wait()
}

func TestCancelledRunOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	s := newSession(t, onWebGPU, halveAndAdd(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x, y := wrapped(t, []float32{1}, 1), wrapped(t, []float32{0}, 1)
	if err := s.Run(ctx, []*ort.Value{x}, []*ort.Value{y}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := s.Run(t.Context(), []*ort.Value{x}, []*ort.Value{y}); err != nil || math.Abs(float64(ort.Data[float32](y)[0])-1.5) > 1e-6 {
		t.Errorf("the next run: %v, %v", err, ort.Data[float32](y))
	}
}

// TestAutoAvoidsSoftwareDriver checks that Auto does not choose SwiftShader, a driver that runs
// WebGPU on the CPU, but that Devices lists it.
func TestAutoAvoidsSoftwareDriver(t *testing.T) {
	gputest.UseSoftwareDriver(t)
	rt := orttest.Load(t)
	if got := rt.Resolve(ort.Auto); got != "cpu" {
		t.Errorf("auto is %q with a software driver alone, want cpu", got)
	}
	i := slices.IndexFunc(rt.Devices(), func(d ort.Device) bool { return d.Name == "webgpu" })
	if i < 0 {
		t.Fatal("webgpu is not listed")
	}
	if text := rt.Devices()[i].String(); !strings.Contains(text, "SwiftShader") || !strings.Contains(text, "software") {
		t.Errorf("listed as %q", text)
	}
}

// TestNoAdapter checks the error without a graphics adapter. WebGPU takes its adapters from Vulkan,
// whose loader finds drivers by the files that these environment variables name.
func TestNoAdapter(t *testing.T) {
	for _, name := range []string{"VK_ICD_FILENAMES", "VK_DRIVER_FILES"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none.json"))
	}
	rt := orttest.Load(t)
	if !slices.Contains(rt.Providers(), "WebGpuExecutionProvider") || runtime.GOOS != "linux" {
		t.Skip("needs an ONNX Runtime library with WebGPU, such as npm's, on Linux")
	}
	_, err := rt.NewSessionFromFile("testdata/affine.onnx", []string{"x"}, []string{"y"}, onWebGPU)
	if err == nil || !strings.Contains(err.Error(), "no graphics adapter") || !strings.Contains(err.Error(), "remove --device") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that says what to do", err)
	}
}

// TestPaddingAtEndOnWebGPU checks convolutions with padding after the input alone, which WebGPU
// would ignore for kernels of one element and for those of the size of the input.
func TestPaddingAtEndOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	x, weights := make([]float32, 2*3*4*4), tensor.New(5, 3, 4, 4)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	for i := range weights.Data {
		weights.Data[i] = float32(i%5) - 2
	}
	for name, c := range map[string]struct {
		kernel, side int // of the kernel and of the input
		attrs        onnx.Attrs
	}{
		"one element":         {1, 4, onnx.Attrs{"pads": []int{0, 0, 1, 2}}},
		"the input's size":    {4, 4, onnx.Attrs{"pads": []int{0, 0, 1, 1}}},
		"the same upper size": {2, 2, onnx.Attrs{"auto_pad": "SAME_UPPER"}},
		"a smaller kernel":    {3, 4, onnx.Attrs{"pads": []int{0, 0, 1, 1}}},
	} {
		build := func(b *onnx.Builder) {
			w := tensor.Tensor{Shape: []int{5, 3, c.kernel, c.kernel}, Data: weights.Data[:15*c.kernel*c.kernel]}
			b.Output("y", b.Conv(b.Input("x", onnx.Float, 2, 3, c.side, c.side), b.Const("w", w), "", c.attrs))
		}
		in := wrapped(t, x[:6*c.side*c.side], 2, 3, c.side, c.side)
		var results [2][]float32
		for i, o := range []ort.Options{{}, onWebGPU} {
			out := []*ort.Value{nil}
			if err := newSession(t, o, build).Run(t.Context(), []*ort.Value{in}, out); err != nil {
				t.Fatal(err)
			}
			defer out[0].Close()
			results[i] = slices.Clone(ort.Data[float32](out[0]))
		}
		if len(results[0]) == 0 || len(results[0]) != len(results[1]) {
			t.Fatalf("%s: %d and %d values", name, len(results[0]), len(results[1]))
		}
		for i, want := range results[0] {
			if d := float64(results[1][i] - want); math.Abs(d) > 1e-4 {
				t.Errorf("%s: value %d is %v, want %v", name, i, results[1][i], want)
				break
			}
		}
	}
}
