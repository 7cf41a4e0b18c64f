package ort_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
)

// envRuns names the environment variable with the number of runs of TestNoLeak. The long check is
//
//	NOETHER_RUNS=100000 go test -run NoLeak -v ./engine/ort
const envRuns = "NOETHER_RUNS"

// TestNoLeak checks the memory of the process over many runs. They use tensors of the caller,
// outputs that ONNX Runtime allocates (nil), parts of tensors, scalars and a cancellable context.
// open returns a session for a file of testdata, and value closes a tensor at the end of the test;
// both are in session_test.go, which describes the graphs.
func TestNoLeak(t *testing.T) {
	runs := 5000
	if s := os.Getenv(envRuns); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", envRuns, err)
		}
		runs = n
	}
	rt, affine := open(t, "affine", []string{"x"}, []string{"y", "z"})
	_, scaledSum := open(t, "scalar", []string{"x", "s"}, []string{"y"})
	const rows = 1000 // an output has 12 kB: a leak of one over 5,000 runs is 60 MB
	x, err := rt.NewValue(onnx.Float, rows, 4)
	x = value(t, x, err)
	y, err := rt.NewValue(onnx.Float, rows, 3)
	y = value(t, y, err)
	flat, err := rt.NewValue(onnx.Float, 100)
	flat = value(t, flat, err)
	scalar, err := rt.NewValue(onnx.Float)
	scalar = value(t, scalar, err)
	ctx := t.Context()
	runBoth := func() {
		outputs := []*ort.Value{y, nil}
		if err := affine.Run(ctx, []*ort.Value{x}, outputs); err != nil {
			t.Fatal(err)
		}
		outputs[1].Close()
		row, err := ort.Wrap(rt, ort.Data[float32](flat)[:10], 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := scaledSum.Run(ctx, []*ort.Value{row, scalar}, []*ort.Value{scalar}); err != nil {
			t.Fatal(err)
		}
		row.Close()
	}
	for range runs / 10 { // warm-up
		runBoth()
	}
	before := resident(t)
	for range runs {
		runBoth()
	}
	after := resident(t)
	t.Logf("%d runs: %.1f MB resident before, %.1f MB after", runs, before, after)
	if grown := after - before; grown > 16 {
		t.Errorf("memory grows by %.1f MB over %d runs", grown, runs)
	}
}

// resident returns the resident memory of this process in MB (10^6 bytes).
func resident(t *testing.T) float64 {
	t.Helper()
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("this system does not report resident memory: %v", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / 1e6
}
