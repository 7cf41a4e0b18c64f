package ort_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
)

// open returns a session for a graph of testdata, with the given inputs and outputs:
//
//	affine:   z = x w + b and y = relu(z), for x of n x 4 and w of 4 x 3
//	external: affine, with w and b in a second file
//	scalar:   y = s sum(x), for a scalar s
//	nonzero:  y = the indices of the values of x that are not 0
//	slow:     x3000, after 3,000 products of matrices of 512 x 512
//	types:    an Identity node for every element type
func open(t testing.TB, name string, inputs, outputs []string) (*ort.Runtime, *ort.Session) {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSessionFromFile(filepath.Join("testdata", name+".onnx"), inputs, outputs, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return rt, s
}

// value returns v, which is closed at the end of the test, or fails the test for err.
func value(t testing.TB, v *ort.Value, err error) *ort.Value {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func run(t testing.TB, s *ort.Session, inputs, outputs []*ort.Value) {
	t.Helper()
	if err := s.Run(context.Background(), inputs, outputs); err != nil {
		t.Fatal(err)
	}
}

// golden holds an input of the graph affine, five rows, and the outputs that numpy computes.
type golden struct{ X, Y, Z []float32 }

func readGolden(t testing.TB) golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 })
}

func TestRunAgreesWithNumpy(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	want := readGolden(t)
	affine, err := os.ReadFile("testdata/affine.onnx")
	if err != nil {
		t.Fatal(err)
	}
	external, err := os.ReadFile("testdata/external.onnx")
	if err != nil {
		t.Fatal(err)
	}
	in, out := []string{"x"}, []string{"y", "z"}
	for name, open := range map[string]func() (*ort.Session, error){
		"file": func() (*ort.Session, error) {
			return rt.NewSessionFromFile("testdata/affine.onnx", in, out, ort.Options{})
		},
		"memory":     func() (*ort.Session, error) { return rt.NewSessionFromBytes(affine, in, out, ort.Options{}) },
		"one thread": func() (*ort.Session, error) { return rt.NewSessionFromBytes(affine, in, out, ort.Options{Threads: 1}) },
		"external from file": func() (*ort.Session, error) {
			return rt.NewSessionFromFile("testdata/external.onnx", in, out, ort.Options{})
		},
		"external from memory": func() (*ort.Session, error) {
			return rt.NewSessionFromBytes(external, in, out, ort.Options{ExternalDir: "testdata"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			x, err := ort.Wrap(rt, want.X, 5, 4)
			x = value(t, x, err)
			y, err := rt.NewValue(onnx.Float, 5, 3)
			y = value(t, y, err)
			outputs := []*ort.Value{y, nil}
			run(t, s, []*ort.Value{x}, outputs)
			z := value(t, outputs[1], nil)
			if !near(y.Tensor().Data, want.Y) || !near(z.Tensor().Data, want.Z) || !slices.Equal(z.Shape(), []int{5, 3}) {
				t.Errorf("y = %v, z = %v %v\nwant %v, %v", y.Tensor(), z.Shape(), z.Tensor(), want.Y, want.Z)
			}
		})
	}
}

func TestModelSession(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for _, name := range []string{"affine", "external"} {
		m, err := onnx.Read("testdata/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.NewSession(m, ort.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !slices.Equal(s.Inputs(), []string{"x"}) || !slices.Equal(s.Outputs(), []string{"z", "y"}) {
			t.Errorf("%s: inputs %q, outputs %q", name, s.Inputs(), s.Outputs())
		}
	}
}

// TestInPlace checks that runs read and write tensors in place: with all their rows, or with the
// first two.
func TestInPlace(t *testing.T) {
	t.Parallel()
	want := readGolden(t)
	rt, s := open(t, "affine", []string{"x"}, []string{"y"})
	x, err := rt.NewValue(onnx.Float, 5, 4)
	x = value(t, x, err)
	y, err := rt.NewValue(onnx.Float, 5, 3)
	y = value(t, y, err)
	result := y.Tensor().Data
	run(t, s, []*ort.Value{x}, []*ort.Value{y})
	if near(result, want.Y) {
		t.Fatal("zeros give the golden values")
	}
	copy(ort.Data[float32](x), want.X)
	x2, err := ort.Wrap(rt, ort.Data[float32](x)[:2*4], 2, 4)
	x2 = value(t, x2, err)
	y2, err := ort.Wrap(rt, result[:2*3], 2, 3)
	y2 = value(t, y2, err)
	run(t, s, []*ort.Value{x2}, []*ort.Value{y2})
	if !near(result[:6], want.Y[:6]) || near(result, want.Y) {
		t.Errorf("a run of two rows gives %v, want %v in these rows and no change in the others", result, want.Y[:6])
	}
	run(t, s, []*ort.Value{x}, []*ort.Value{y})
	if !near(result, want.Y) {
		t.Errorf("got %v, want %v", result, want.Y)
	}
}

func TestScalars(t *testing.T) {
	t.Parallel()
	rt, s := open(t, "scalar", []string{"x", "s"}, []string{"y"})
	x, err := ort.Wrap(rt, []float32{1, 2, 3}, 3)
	x = value(t, x, err)
	factor, err := rt.NewValue(onnx.Float)
	factor = value(t, factor, err)
	y, err := rt.NewValue(onnx.Float)
	y = value(t, y, err)
	for _, f := range []float32{2, 5} {
		ort.Data[float32](factor)[0] = f
		run(t, s, []*ort.Value{x, factor}, []*ort.Value{y})
		if got := y.Tensor().Data[0]; got != 6*f {
			t.Errorf("%v times 6 is %v", f, got)
		}
	}
}

func TestDataDependentOutputShape(t *testing.T) {
	t.Parallel()
	rt, s := open(t, "nonzero", []string{"x"}, []string{"y"})
	for _, c := range []struct {
		x    []float32
		want []int64
	}{{[]float32{0, 1, 0, 2}, []int64{1, 3}}, {[]float32{0, 0}, []int64{}}} {
		x, err := ort.Wrap(rt, c.x, len(c.x))
		x = value(t, x, err)
		out := []*ort.Value{nil}
		run(t, s, []*ort.Value{x}, out)
		y := value(t, out[0], nil)
		if !slices.Equal(ort.Data[int64](y), c.want) || !slices.Equal(y.Shape(), []int{1, len(c.want)}) {
			t.Errorf("%v: got %v of shape %v, want %v", c.x, ort.Data[int64](y), y.Shape(), c.want)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	rt, s := open(t, "slow", []string{"x"}, []string{"x3000"})
	x, err := rt.NewValue(onnx.Float, 512, 512)
	x = value(t, x, err)
	y, err := rt.NewValue(onnx.Float, 512, 512)
	y = value(t, y, err)
	result := y.Tensor().Data
	result[0] = float32(math.NaN()) // the last operator would overwrite it
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx, []*ort.Value{x}, []*ort.Value{y}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run cancelled after 0.1 s returns %v", err)
	}
	if !math.IsNaN(float64(result[0])) {
		t.Error("a cancelled run has reached its last operator")
	}
	if err := s.Run(ctx, []*ort.Value{x}, []*ort.Value{y}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run under a cancelled context returns %v", err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	want := readGolden(t)
	rt, s := open(t, "affine", []string{"x"}, []string{"y"})
	x, err := ort.Wrap(rt, want.X, 5, 4)
	x = value(t, x, err)
	var wait sync.WaitGroup
	for range 4 {
		y, err := rt.NewValue(onnx.Float, 5, 3)
		y = value(t, y, err)
		wait.Go(func() {
			for range 100 {
				clear(y.Tensor().Data)
				if err := s.Run(context.Background(), []*ort.Value{x}, []*ort.Value{y}); err != nil || !near(y.Tensor().Data, want.Y) {
					t.Errorf("got %v, %v, want %v", y.Tensor().Data, err, want.Y)
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestFirstSessionsConcurrently checks that the first sessions of a process can be created
// concurrently. Each attempt is a process of its own: the test starts this program again, with an
// environment variable that makes the test create the sessions.
func TestFirstSessionsConcurrently(t *testing.T) {
	const child = "NOETHER_FIRST_SESSIONS"
	if os.Getenv(child) == "" {
		orttest.Load(t)
		for range 10 {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFirstSessionsConcurrently$")
			cmd.Env = append(os.Environ(), child+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		return
	}
	rt := orttest.Load(t)
	graph, err := os.ReadFile("testdata/affine.onnx")
	if err != nil {
		t.Fatal(err)
	}
	start := make(chan struct{})
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			<-start
			s, err := rt.NewSessionFromBytes(graph, []string{"x"}, []string{"y", "z"}, ort.Options{Threads: 1})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	close(start)
	group.Wait()
}

func TestSessionErrors(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	affine, err := os.ReadFile("testdata/affine.onnx")
	if err != nil {
		t.Fatal(err)
	}
	in, out := []string{"x"}, []string{"y"}
	for name, c := range map[string]struct {
		graph   []byte
		in, out []string
		options ort.Options
		want    string
	}{
		"garbage":        {[]byte("not a model"), in, out, ort.Options{}, "making a session"},
		"empty":          {nil, in, out, ort.Options{}, "making a session"},
		"truncated":      {affine[:len(affine)/2], in, out, ort.Options{}, "making a session"},
		"no outputs":     {affine, in, nil, ort.Options{}, "at least one"},
		"threads":        {affine, in, out, ort.Options{Threads: -1}, "-1 threads"},
		"unknown device": {affine, in, out, ort.Options{Device: "abacus"}, `unknown device "abacus": use one of cpu, cuda`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := rt.NewSessionFromBytes(c.graph, c.in, c.out, c.options)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, c.want)
			}
		})
	}
	if _, err := rt.NewSessionFromFile("testdata/none.onnx", in, out, ort.Options{}); err == nil || !strings.Contains(err.Error(), "testdata/none.onnx") {
		t.Errorf("error for a missing file is %v", err)
	}
}

// TestMissingDevice requests each device that the ONNX Runtime library of this system lacks.
func TestMissingDevice(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for _, device := range []string{"cuda", "tensorrt", "coreml", "openvino", "directml"} {
		if slices.ContainsFunc(rt.Devices(), func(d ort.Device) bool { return d.Name == device }) {
			continue
		}
		s, err := rt.NewSessionFromFile("testdata/affine.onnx", []string{"x"}, []string{"y"}, ort.Options{Device: device})
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", device)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, `device "`+device+`"`) || strings.Contains(msg, "\n") {
			t.Errorf("%s: error %q, want one line that names the device", device, msg)
		}
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	rt, s := open(t, "affine", []string{"x"}, []string{"y"})
	good, err := rt.NewValue(onnx.Float, 2, 4)
	good = value(t, good, err)
	narrow, err := rt.NewValue(onnx.Float, 2, 3)
	narrow = value(t, narrow, err)
	ints, err := rt.NewValue(onnx.Int32, 2, 4)
	ints = value(t, ints, err)
	closed, err := rt.NewValue(onnx.Float, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	y, err := rt.NewValue(onnx.Float, 2, 3)
	y = value(t, y, err)
	for name, c := range map[string]struct{ in, out []*ort.Value }{
		"no input":       {nil, []*ort.Value{y}},
		"nil input":      {[]*ort.Value{nil}, []*ort.Value{y}},
		"closed input":   {[]*ort.Value{closed}, []*ort.Value{y}},
		"wrong shape":    {[]*ort.Value{narrow}, []*ort.Value{y}},
		"wrong type":     {[]*ort.Value{ints}, []*ort.Value{y}},
		"wrong output":   {[]*ort.Value{good}, []*ort.Value{good}},
		"many outputs":   {[]*ort.Value{good}, []*ort.Value{y, y}},
		"closed outputs": {[]*ort.Value{good}, []*ort.Value{closed}},
	} {
		err := s.Run(context.Background(), c.in, c.out)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "running a graph") {
			t.Errorf("%s: error %v, want one line", name, err)
		}
	}
	run(t, s, []*ort.Value{good}, []*ort.Value{y})
}
