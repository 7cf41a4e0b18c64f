package train

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// The objective is the validation loss plus the penalty. With a learning rate that is far too
// large, many epochs increase it. Rollback restores the weights before such an epoch and reduces
// the rate, so the objective never increases. A training run that is interrupted resumes with the
// same results. newMLP(t, spec, sizes...), linearData(samples, seed), of a linear function with 4
// inputs and 2 outputs, and stoppingCheckpoint, which interrupts the training by errStop after a
// number of saves, are in train_test.go.
func TestRollback(t *testing.T) {
	t.Parallel()
	spec := Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.5}, Schedule: MultiStep(0.1, 0.9),
		Penalty: func(b *onnx.Builder) onnx.Value {
			return b.Mul(b.ReduceSum(b.Mul("layer1.weight", "layer1.weight"), false), b.Scalar(0.01))
		}}
	fit := func(f FitOptions) (*Trainer, []Epoch, error) {
		tr := newMLP(t, spec, 4, 8, 2) // 4 inputs, 8 hidden units, 2 outputs
		epochs, err := tr.Fit(t.Context(), linearData(150, 1), linearData(40, 2), f)
		return tr, epochs, err
	}
	_, withoutRollback, err := fit(FitOptions{Epochs: 30, Seed: 9, KeepLast: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, rolledBack := checkRollbacks(t, withoutRollback, 1); rolledBack > 0 {
		t.Errorf("%d epochs are rolled back without the option", rolledBack)
	}
	f := FitOptions{Epochs: 30, Seed: 9, KeepLast: true, RollbackFactor: 0.5}
	tr, epochs, err := fit(f)
	if err != nil {
		t.Fatal(err)
	}
	increases, rolledBack := checkRollbacks(t, epochs, f.RollbackFactor)
	if increases > 0 || rolledBack < 3 || rolledBack > 20 {
		t.Errorf("the objective increases %d times, want 0, and %d epochs are rolled back, want 3 to 20", increases, rolledBack)
	}
	if a, b := epochs[29].Objective, withoutRollback[29].Objective; !(a < b) {
		t.Errorf("the final objective is %g, want one below %g, the one without rollback", a, b)
	}
	_, byLoss, err := fit(FitOptions{Epochs: 30, Seed: 9, KeepLast: true, RollbackFactor: 0.5, RollbackByLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	before := math.Inf(1)
	for _, e := range byLoss {
		if e.RolledBack != (e.Validation > before) {
			t.Errorf("rollback by the validation loss: after a loss of %g the epoch is %+v, want it rolled back if its loss is larger", before, e)
		}
		if !e.RolledBack {
			before = e.Validation
		}
	}
	// The weights are those of the last epoch that was not rolled back.
	metrics, penalty, err := tr.evaluate(t.Context(), linearData(40, 2), 32)
	if err != nil {
		t.Fatal(err)
	}
	last := epochs[29]
	for i := 28; last.RolledBack; i-- {
		last = epochs[i]
	}
	if math.Abs(metrics.Loss-last.Validation) > 1e-12 || math.Abs(metrics.Loss+penalty-last.Objective) > 1e-12 || penalty <= 0 {
		t.Errorf("the final loss is %g and the penalty %g; the last epoch that was not rolled back is %+v", metrics.Loss, penalty, last)
	}
	// Training that is interrupted resumes with identical results.
	for _, stop := range []int{2, 7, 15} {
		saved := &stoppingCheckpoint{stopAfter: stop}
		f.Checkpoint = saved
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
			t.Errorf("results differ after an interruption at epoch %d", stop)
		}
	}
}

// checkRollbacks counts the epochs that were rolled back, and the others that increased the
// objective. It checks that each rollback multiplies the rate by factor.
func checkRollbacks(t *testing.T, epochs []Epoch, factor float64) (increases, rolledBack int) {
	t.Helper()
	before := math.Inf(1)
	for i, e := range epochs {
		scheduled := 0.5
		if i >= 27 { // 0.9 of 30 epochs: the step of the schedule
			scheduled *= 0.1
		}
		if want := scheduled * math.Pow(factor, float64(rolledBack)); math.Abs(e.Rate/want-1) > 1e-9 {
			t.Errorf("epoch %d has the rate %g, want %g", e.Number, e.Rate, want)
		}
		if e.RolledBack {
			rolledBack++
			if e.Best == e.Number || e.Objective <= before {
				t.Errorf("rolled back without an increase: %+v", e)
			}
			continue
		}
		if e.Objective > before {
			increases++
		}
		before = e.Objective
	}
	return increases, rolledBack
}

func TestRollbackErrors(t *testing.T) {
	t.Parallel()
	tr := newMLP(t, Spec{Loss: SquaredError, Optimiser: SGD{Rate: 0.1}}, 4, 2)
	for _, c := range []struct {
		factor     float64
		validation Source
		want       string
	}{{1, linearData(10, 2), "between 0 and 1"}, {-1, linearData(10, 2), "between 0 and 1"}, {math.NaN(), linearData(10, 2), "between 0 and 1"}, {0.5, nil, "needs validation"}} {
		if _, err := tr.Fit(t.Context(), linearData(20, 1), c.validation, FitOptions{Epochs: 1, RollbackFactor: c.factor}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("factor %v: error %v, want one with %q", c.factor, err, c.want)
		}
	}
}
