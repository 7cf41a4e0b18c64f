package transform

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

type functionCall struct {
	strength float64
	seed     uint64
}

// doubling returns a function that doubles images, and fails for negative ones. It appends the
// arguments of a call to calls.
func doubling(calls *[][]functionCall) func([]tensor.Tensor, []float64, []uint64) ([]tensor.Tensor, error) {
	return func(images []tensor.Tensor, strengths []float64, seeds []uint64) ([]tensor.Tensor, error) {
		var call []functionCall
		var out []tensor.Tensor
		for i, x := range images {
			call = append(call, functionCall{strengths[i], seeds[i]})
			if x.Data[0] < 0 {
				return nil, errors.New("negative")
			}
			out = append(out, tensor.Tensor{Shape: x.Shape, Data: []float32{2 * x.Data[0]}})
		}
		*calls = append(*calls, call)
		return out, nil
	}
}

// TestFunction checks what a function is called with, and that its error is that of the Op.
func TestFunction(t *testing.T) {
	t.Parallel()
	var got [][]functionCall
	strength := Uniform(2, 3)
	f := Function{Strength: &strength, Call: doubling(&got)}
	draw := func(seed uint64) Op { return f.Draw(rand.New(rand.NewPCG(seed, 0))) }
	x, y := tensor.New(1, 1, 1), tensor.New(1, 1, 1)
	x.Data[0] = 3
	for _, seed := range []uint64{1, 1, 2} {
		op := draw(seed)
		op.Apply(y, x)
		if v, ok := Parameter(op); y.Data[0] != 6 || Err(op) != nil || !ok || v != got[len(got)-1][0].strength || v < 2 || v > 3 {
			t.Errorf("%v becomes %v with strength %v, %v", x.Data, y.Data, v, Err(op))
		}
	}
	if got[0][0] != got[1][0] || got[0][0] == got[2][0] {
		t.Errorf("calls %v: want equal ones for equal generators alone", got)
	}
	x.Data[0] = -1
	op := Sequence{f, Identity{}, f}.Draw(rand.New(rand.NewPCG(1, 0)))
	op.Apply(y, x)
	if err := Err(op); err == nil || err.Error() != "negative" {
		t.Errorf("error %v of a sequence whose function fails", err)
	}
	plain := (Function{Call: f.Call}).Draw(rand.New(rand.NewPCG(1, 0)))
	plain.Apply(y, tensor.New(1, 1, 1))
	if call := got[len(got)-1][0]; !math.IsNaN(call.strength) {
		t.Errorf("strength %v of a function without one", call.strength)
	}
	if op := (Function{Call: f.Call}).Draw(rand.New(rand.NewPCG(1, 0))); Err(op) != nil {
		t.Error("an error before Apply")
	} else if _, ok := Parameter(op); ok {
		t.Error("a function without strength has a parameter")
	}
}

// TestApplyAll checks that the images of a Function are those of one call, also inside sequences, and
// that its error is that of each Op.
func TestApplyAll(t *testing.T) {
	t.Parallel()
	each := func(n int, apply func(i int) error) error {
		for i := range n {
			if err := apply(i); err != nil {
				return err
			}
		}
		return nil
	}
	var calls [][]functionCall
	f := Function{Call: doubling(&calls)}
	brighter := Brightness{Factor: Fixed(3)}
	for _, c := range []struct {
		t     Transform
		want  []float32
		sizes []int
	}{
		{f, []float32{0.02, 0.04, 0.06}, []int{3}},
		{Sequence{f, brighter, Sequence{f, Identity{}}}, []float32{0.12, 0.24, 0.36}, []int{3, 3}},
		{Sequence{brighter, Identity{}}, []float32{0.03, 0.06, 0.09}, nil},
		{Sequence{}, []float32{0.01, 0.02, 0.03}, nil},
	} {
		calls = nil
		var ops []Op
		var dst, src []tensor.Tensor
		for i := range 3 {
			ops = append(ops, c.t.Draw(rand.New(rand.NewPCG(uint64(i), 0))))
			dst, src = append(dst, tensor.New(1, 1, 1)), append(src, tensor.Tensor{Shape: []int{1, 1, 1}, Data: []float32{0.01 * float32(i+1)}})
		}
		if err := ApplyAll(dst, src, ops, each); err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, call := range calls {
			sizes = append(sizes, len(call))
		}
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("%v: calls for %v images, want %v", c.t, sizes, c.sizes)
		}
		for i, want := range c.want {
			if got := dst[i].Data[0]; math.Abs(float64(got-want)) > 1e-6 || src[i].Data[0] != 0.01*float32(i+1) {
				t.Errorf("%v: image %d becomes %v, want %v", c.t, i, got, want)
			}
		}
		if len(sizes) == 0 {
			continue
		}
		src[1].Data[0] = -1
		if err := ApplyAll(dst, src, ops, each); err != nil {
			t.Fatal(err)
		}
		for i, op := range ops {
			if err := Err(op); err == nil || err.Error() != "negative" {
				t.Errorf("%v: error %v of image %d", c.t, err, i)
			}
		}
	}
}
