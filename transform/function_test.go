package transform

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestFunction checks what a function is called with, and that its error is that of the Op.
func TestFunction(t *testing.T) {
	t.Parallel()
	type call struct {
		strength float64
		seed     uint64
	}
	var got []call
	strength := Uniform(2, 3)
	f := Function{Strength: &strength, Call: func(x tensor.Tensor, strength float64, seed uint64) (tensor.Tensor, error) {
		got = append(got, call{strength, seed})
		if x.Data[0] < 0 {
			return tensor.Tensor{}, errors.New("negative")
		}
		return tensor.Tensor{Shape: x.Shape, Data: []float32{2 * x.Data[0]}}, nil
	}}
	draw := func(seed uint64) Op { return f.Draw(rand.New(rand.NewPCG(seed, 0))) }
	x, y := tensor.New(1, 1, 1), tensor.New(1, 1, 1)
	x.Data[0] = 3
	for _, seed := range []uint64{1, 1, 2} {
		op := draw(seed)
		op.Apply(y, x)
		if v, ok := Parameter(op); y.Data[0] != 6 || Err(op) != nil || !ok || v != got[len(got)-1].strength || v < 2 || v > 3 {
			t.Errorf("%v becomes %v with strength %v, %v", x.Data, y.Data, v, Err(op))
		}
	}
	if got[0] != got[1] || got[0] == got[2] {
		t.Errorf("calls %v: want equal ones for equal generators alone", got)
	}
	x.Data[0] = -1
	op := Sequence{f, Identity{}, f}.Draw(rand.New(rand.NewPCG(1, 0)))
	op.Apply(y, x)
	if err := Err(op); err == nil || err.Error() != "negative" {
		t.Errorf("error %v of a sequence whose function fails", err)
	}
	if op := (Function{Call: f.Call}).Draw(rand.New(rand.NewPCG(1, 0))); Err(op) != nil {
		t.Error("an error before Apply")
	} else if _, ok := Parameter(op); ok {
		t.Error("a function without strength has a parameter")
	}
}
