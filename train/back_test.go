package train

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// A rate that is far too large makes every other epoch worse. Taken back, they leave the objective to fall, and the rate with them.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	spec := Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.5}, Schedule: Steps(0.1, 0.9),
		Penalty: func(b *onnx.Builder) onnx.Value {
			return b.Mul(b.ReduceSum(b.Mul("layer1.weight", "layer1.weight"), false), b.Scalar(0.01))
		}}
	fit := func(f Fitting) (*Trainer, []Epoch, error) {
		tr := newMLP(t, spec, 4, 8, 2)
		epochs, err := tr.Fit(t.Context(), line(150, 1), line(40, 2), f)
		return tr, epochs, err
	}
	_, free, err := fit(Fitting{Epochs: 30, Seed: 9, Last: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, taken := fall(t, free, 1); taken > 0 {
		t.Errorf("%d epochs are taken back though nobody asked", taken)
	}
	f := Fitting{Epochs: 30, Seed: 9, Last: true, Back: 0.5}
	tr, epochs, err := fit(f)
	if err != nil {
		t.Fatal(err)
	}
	rises, taken := fall(t, epochs, f.Back)
	if rises > 0 || taken < 3 || taken > 20 {
		t.Errorf("the objective rises %d times, and %d epochs are taken back", rises, taken)
	}
	if a, b := epochs[29].Objective, free[29].Objective; !(a < b) {
		t.Errorf("the objective ends at %g, without taking back at %g", a, b)
	}
	_, byLoss, err := fit(Fitting{Epochs: 30, Seed: 9, Last: true, Back: 0.5, BackByLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	before := math.Inf(1)
	for _, e := range byLoss {
		if e.TakenBack != (e.Validation > before) {
			t.Errorf("judged by the loss, after %g: %+v", before, e)
		}
		if !e.TakenBack {
			before = e.Validation
		}
	}
	// The weights are those of the last epoch that stands.
	marks, penalty, err := tr.judge(t.Context(), line(40, 2), 32)
	if err != nil {
		t.Fatal(err)
	}
	last := epochs[29]
	for i := 28; last.TakenBack; i-- {
		last = epochs[i]
	}
	if math.Abs(marks.Loss-last.Validation) > 1e-12 || math.Abs(marks.Loss+penalty-last.Objective) > 1e-12 || penalty <= 0 {
		t.Errorf("the network's loss is %g and its penalty %g, the last epoch that stands is %+v", marks.Loss, penalty, last)
	}
	// Stopped anywhere, it goes on to the same bits.
	for _, stop := range []int{2, 7, 15} {
		kept := &stopped{at: stop}
		f.Checkpoint = kept
		if _, _, err := fit(f); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		resumed, again, err := fit(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range again {
			epochs[i].Seconds, again[i].Seconds = 0, 0
		}
		if fmt.Sprint(again) != fmt.Sprint(epochs) || fmt.Sprint(resumed.Weights()) != fmt.Sprint(tr.Weights()) {
			t.Errorf("stopped after %d epochs it ends otherwise", stop)
		}
	}
}

// fall counts in how many epochs that stand the objective rose, and how many were taken back, each of which multiplies the rate by a
// factor.
func fall(t *testing.T, epochs []Epoch, factor float64) (rises, taken int) {
	t.Helper()
	before := math.Inf(1)
	for i, e := range epochs {
		scheduled := 0.5
		if i >= 27 {
			scheduled *= 0.1
		}
		if want := scheduled * math.Pow(factor, float64(taken)); math.Abs(e.Rate/want-1) > 1e-9 {
			t.Errorf("epoch %d has the rate %g, not %g", e.Number, e.Rate, want)
		}
		if e.TakenBack {
			taken++
			if e.Best == e.Number || e.Objective <= before {
				t.Errorf("taken back for nothing: %+v", e)
			}
			continue
		}
		if e.Objective > before {
			rises++
		}
		before = e.Objective
	}
	return rises, taken
}

func TestTakeBackRefuses(t *testing.T) {
	t.Parallel()
	tr := newMLP(t, Spec{Loss: SquaredError, Optimiser: SGD{Rate: 0.1}}, 4, 2)
	for _, c := range []struct {
		back       float64
		validation Source
		want       string
	}{{1, line(10, 2), "between 0 and 1"}, {-1, line(10, 2), "between 0 and 1"}, {math.NaN(), line(10, 2), "between 0 and 1"}, {0.5, nil, "wants validation"}} {
		if _, err := tr.Fit(t.Context(), line(20, 1), c.validation, Fitting{Epochs: 1, Back: c.back}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.back, err)
		}
	}
}
