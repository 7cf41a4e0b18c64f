package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestTimeLimitOfOwnCode checks that --timeout bounds the time for reading and differentiating a
// model too: a chain of 50,000 nodes, which takes seconds, fails in one line. It is not parallel to
// other tests, since the limit is that of the process.
func TestTimeLimitOfOwnCode(t *testing.T) {
	dir := t.TempDir()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 8, 8)
	for range 50_000 {
		x = b.Relu(x)
	}
	b.Output("y", x)
	chain := testmodel.Save(t, filepath.Join(dir, "chain.onnx"), b)
	for _, args := range [][]string{
		{"grad", chain, "-o", filepath.Join(dir, "grad.onnx"), "--sum"},
		{"inspect", chain},
	} {
		start := time.Now()
		code, message := call(t, append(args, "--timeout", "20ms")...)
		if code != 1 || !strings.Contains(message, "chain.onnx: it was not ready within the time limit") || strings.Contains(message, "\n") {
			t.Errorf("%s: exit code %d, %q after %v", args[0], code, message, time.Since(start))
		}
		if took := time.Since(start); took > 20*time.Second { // of busy cores
			t.Errorf("%s ends after %v", args[0], took)
		}
	}
}
