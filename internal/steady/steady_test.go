package steady

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

func of(v ...float32) tensor.Tensor { return tensor.Tensor{Shape: []int{len(v)}, Data: v} }

// hinge is the gradient of sum c_i relu(x_i - bias).
func hinge(bias float64) Gradient {
	return func(_ context.Context, in []tensor.Tensor) ([]tensor.Tensor, error) {
		g := tensor.New(in[0].Shape...)
		for i, v := range in[0].Data {
			if float64(v) > bias {
				g.Data[i] = in[1].Data[i]
			}
		}
		return []tensor.Tensor{g}, nil
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	x, c := of(0.5, 0.25, 2), of(1, 0.5, 0.1)
	for name, k := range map[string]struct {
		bias     float64
		expected tensor.Tensor
		moves    float64
		verdict  string
		wrong    bool
	}{
		"far from a kink":         {0.3, tensor.Tensor{}, 0, "steady", false},
		"at a kink":               {0.5, tensor.Tensor{}, 10, "units are within", false}, // off at the kink itself: 1 against a largest of 0.1
		"as expected":             {0.3, of(1, 0, 0.1), 0, "as expected", false},
		"the kink's other side":   {0.5, of(1, 0, 0.1), 10, "kinks alone", false},
		"a kink and more":         {0.5, of(1, 0, 0.2), 10, "as far off", false},
		"an error without a kink": {0.3, of(1, 0, 0.2), 0, "further off", true},
	} {
		r, err := Try(t.Context(), hinge(k.bias), []tensor.Tensor{x, c}, []bool{true, false}, []tensor.Tensor{k.expected}, 16, 1)
		if err != nil {
			t.Fatal(name, err)
		}
		text, wrong := r[0].Verdict()
		if math.Abs(r[0].Most()-k.moves) > 1e-6 || !strings.HasPrefix(text, k.verdict) || wrong != k.wrong {
			t.Errorf("%s: moves by %v, %q, %v", name, r[0].Moves, text, wrong)
		}
	}
}

func TestTryRefuses(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for want, k := range map[string]struct{ x, c, expected tensor.Tensor }{
		"shape [3], and":        {of(1, 2, 3), of(1, 1, 1), of(1, 1)},
		"gradient holds NaN":    {of(1, 2, 3), of(1, nan, 1), tensor.Tensor{}},
		"is expected holds NaN": {of(1, 2, 3), of(1, 1, 1), of(1, nan, 1)},
	} {
		_, err := Try(t.Context(), hinge(0), []tensor.Tensor{k.x, k.c}, []bool{true, false}, []tensor.Tensor{k.expected}, 2, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
