package model_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/onnx"
)

// TestHugeInput checks that opening a model with an input that is too large for memory is an error
// of one line. The limit is 2^28 values. The number of values of the larger input overflows int64.
func TestHugeInput(t *testing.T) {
	t.Parallel()
	for _, side := range []int{100_000, 1 << 40} {
		path := save(t, func(b *onnx.Builder) {
			b.Output("y", b.ReduceMean(b.Input("x", onnx.Float, 1, 3, side, side), false, 2, 3))
		})
		_, err := modeltest.Open(t, path, model.Options{})
		if err == nil || !strings.Contains(err.Error(), "values of one sample: the limit is 268435456") || strings.Contains(err.Error(), "\n") {
			t.Errorf("side %d: %v", side, err)
		}
	}
}
