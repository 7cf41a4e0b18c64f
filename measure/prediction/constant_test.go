package prediction_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/resample"
)

// TestConstantPredictions checks the scores of a model that predicts class c2 for all samples but
// one, clean and transformed (that is, for the untransformed and the transformed inputs), after the
// state of the accumulator was written and read. Every score has a warning, and a drop of 0 in
// accuracy has an interval. The functions logs, classes, measures and batch are in
// prediction_test.go.
func TestConstantPredictions(t *testing.T) {
	t.Parallel()
	const n, k = 40, 4
	clean := logs(0.7, 0.1, 0.1, 0.1)
	label := []int{0}
	for i := 1; i < n; i++ {
		clean = append(clean, logs(0.1, 0.1, 0.7, 0.1)...)
		label = append(label, i%k)
	}
	site := measure.Site{Layout: measure.NewLayout(n), Classes: classes(k)}
	for _, m := range measures(prediction.Settings{}) {
		a, err := m.New(site)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Update(batch(clean, clean, label, k)); err != nil {
			t.Fatal(err)
		}
		state, err := a.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if a, err = m.New(site); err != nil {
			t.Fatal(err)
		}
		if err := a.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		scores, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			if len(s.Warnings) == 0 || !strings.Contains(s.Warnings[0], `class "c2" for`) {
				t.Errorf("%s %s: warnings %q, want one about class c2", m.Name(), s.Statistic, s.Warnings)
			}
			// The statistic clean is the accuracy on clean samples, here near that of a guess, 1/4.
			if guess := strings.Contains(strings.Join(s.Warnings, " "), "a guess among 4 classes"); guess != (s.Statistic == "clean") {
				t.Errorf("%s %s: warnings %q, want one about a guess only for the statistic clean", m.Name(), s.Statistic, s.Warnings)
			}
			// Wilson returns the interval of a proportion: of 0 changes of correctness in n
			// samples.
			if _, high := resample.Wilson(0, n); s.Statistic == "drop" && (s.Value != 0 || s.High != high || s.Low != -high) {
				t.Errorf("drop %v [%v, %v], want 0 [%v, %v]", s.Value, s.Low, s.High, -high, high)
			}
		}
	}
}

// TestOverconfidentPredictions checks that an accuracy far below the mean confidence has a warning,
// as after a forgotten normalisation, and one near it has none. Predictions have a confidence of
// 0.9; right of ten are right.
func TestOverconfidentPredictions(t *testing.T) {
	t.Parallel()
	const n, k = 200, 4
	for right, want := range map[int]bool{9: false, 8: false, 5: true, 4: true} {
		var clean []float32
		var label []int
		for i := range n {
			p := []float64{1. / 30, 1. / 30, 1. / 30, 1. / 30}
			p[i%k] = 0.9
			clean = append(clean, logs(p...)...)
			if i%10 < right {
				label = append(label, i%k)
			} else {
				label = append(label, (i+1)%k)
			}
		}
		a, err := prediction.Accuracy(prediction.Settings{}).New(measure.Site{Layout: measure.NewLayout(n), Classes: classes(k)})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Update(batch(clean, clean, label, k)); err != nil {
			t.Fatal(err)
		}
		scores, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			if got := strings.Contains(strings.Join(s.Warnings, " "), measure.OverconfidentWarning+" (0.90 on average)"); got != (want && s.Statistic == "clean") {
				t.Errorf("%d of 10 right: %s is %v with the warnings %q", right, s.Statistic, s.Value, s.Warnings)
			}
		}
	}
}
