package ort_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestLimitWithinAnOperator checks that a run ends at the time limit, before the end of an operator
// that takes seconds, and that its session and values (tensors) can be closed while the operator
// goes on. WriteSlow writes a model with a pooling of about 400^4 comparisons. open (a session for
// a file of testdata, with inputs and outputs), value and run are helpers of session_test.go.
func TestLimitWithinAnOperator(t *testing.T) { // not parallel: the limit holds for all sessions
	rt := orttest.Load(t)
	m, err := onnx.Read(testmodel.WriteSlow(t, t.TempDir(), "slow", 400))
	if err != nil {
		t.Fatal(err)
	}
	const limit = time.Second // opening the session takes milliseconds
	rt.LimitRuns(limit)
	s, err := rt.NewSession(m, ort.Options{})
	rt.LimitRuns(0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := rt.NewValue(onnx.Float, 1, 3, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	outputs := []*ort.Value{nil}
	err = s.Run(t.Context(), []*ort.Value{x}, outputs)
	if expired := (*ort.TimeoutError)(nil); !errors.As(err, &expired) || expired.Limit != limit || outputs[0] != nil {
		t.Errorf("error %v, output %v", err, outputs[0])
	}
	assertInUse(t, rt, x)
	if err := errors.Join(x.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	_, small := open(t, "affine", []string{"x"}, []string{"y", "z"}) // other sessions run meanwhile
	y, err := rt.NewValue(onnx.Float, 2, 4)
	run(t, small, []*ort.Value{value(t, y, err)}, []*ort.Value{nil, nil})
}

// assertInUse checks that a run of a fast graph with x does not start, since the operator of a run
// that has ended goes on.
func assertInUse(t *testing.T, rt *ort.Runtime, x *ort.Value) {
	t.Helper()
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, 1, 3, 16, 16)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	fast, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := fast.Run(short, []*ort.Value{x}, []*ort.Value{nil}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run with values in use: error is %v", err)
	}
}

// TestLimitWhileOpening checks that opening a session fails at the time limit while ONNX Runtime
// computes a constant of the graph, which takes seconds.
func TestLimitWhileOpening(t *testing.T) { // not parallel: the limit holds for all sessions
	rt := orttest.Load(t)
	b := onnx.NewBuilder(17)
	wide := b.Op("Expand", nil, b.Scalar(1), b.Ints(1, 1, 800, 800))
	pooled := b.Op("MaxPool", onnx.Attrs{"kernel_shape": []int{400, 400}}, wide)
	b.Output("y", b.Add(b.Input("x", onnx.Float, 1), b.ReduceMean(pooled, false, 1, 2, 3)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	rt.LimitRuns(50 * time.Millisecond)
	_, err = rt.NewSession(m, ort.Options{})
	rt.LimitRuns(0)
	const want = "making a session: the session was not ready within the time limit of 50ms"
	if expired := (*ort.TimeoutError)(nil); !errors.As(err, &expired) || !expired.Preparing || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	open(t, "affine", []string{"x"}, []string{"y", "z"})
}

// TestCancelWithinAnOperator checks that a run ends when its context does, before the end of an
// operator that takes seconds, that another run with the same values waits for the operator, and
// that the session can be closed meanwhile.
func TestCancelWithinAnOperator(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	m, err := onnx.Read(testmodel.WriteSlow(t, t.TempDir(), "slow", 400))
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := rt.NewValue(onnx.Float, 1, 3, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx, []*ort.Value{x}, []*ort.Value{nil}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	assertInUse(t, rt, x)
	for range 2 { // closing again has no effect
		if err := errors.Join(x.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
