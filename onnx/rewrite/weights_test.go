package rewrite

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestWithWeightsChecksValues checks that a value must have the shape of the tensor that it
// replaces, which must exist and be float32.
func TestWithWeightsChecksValues(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x, w := b.Input("x", onnx.Float, 2), b.Input("w", onnx.Float, 2)
	half := b.Input("half", onnx.Float16, 2)
	b.Output("y", b.Add(b.Add(x, w), b.Node("", "Cast", 1, onnx.Attrs{"to": int(onnx.Float)}, half)[0]))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	values := func(name string, n int) map[string]tensor.Tensor {
		return map[string]tensor.Tensor{name: tensor.New(n)}
	}
	if got, err := WithWeights(m, values("w", 2)); err != nil || len(got.Inputs()) != 2 || len(m.Inputs()) != 3 {
		t.Errorf("error %v; want a model without the input w", err)
	}
	for want, values := range map[string]map[string]tensor.Tensor{
		"nor an input": values("v", 2), "has the shape": values("w", 3), "want float32": values("half", 2),
	} {
		if _, err := WithWeights(m, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
