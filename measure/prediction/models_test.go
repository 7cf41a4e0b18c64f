package prediction_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/measure/prediction"
)

// agreement returns the scores of the measure prediction-agreement by statistic. first and second
// are the log-probabilities of k classes that two models give to the same samples, sample by
// sample. If label is nil, no sample has a label. batch and classes, the names of k classes, are in
// prediction_test.go.
func agreement(t *testing.T, first, second []float32, label []int, k int) map[string]measure.Score {
	t.Helper()
	n := len(first) / k
	if label == nil {
		label = make([]int, n)
		for i := range label {
			label[i] = measure.NoLabel
		}
	}
	a, err := prediction.ModelAgreement(prediction.ModelSettings{}).New(measure.Site{Layout: measure.NewLayout(n), Classes: classes(k)})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Update(batch(first, second, label, k)); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, s := range scores {
		out[s.Statistic] = s
	}
	return out
}

// predictions returns log-probabilities of k classes for samples with these predicted classes,
// which have the probability 0.9.
func predictions(k int, classes []int) []float32 {
	var out []float32
	for _, c := range classes {
		for j := range k {
			p := .1 / float64(k-1)
			if j == c {
				p = .9
			}
			out = append(out, float32(math.Log(p)))
		}
	}
	return out
}

// TestModelAgreementContract checks that scores do not depend on batches and merging (see
// measuretest). The function random, in prediction_test.go, returns two sets of log-probabilities,
// here of two models, and labels; its last argument is a seed.
func TestModelAgreementContract(t *testing.T) {
	t.Parallel()
	const n, k = 205, 4
	first, second, label := random(n, k, 1)
	for name, labels := range map[string][]int{"labels": label, "no labels": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if labels == nil {
				for range n {
					labels = append(labels, measure.NoLabel)
				}
			}
			measuretest.Run(t, measuretest.Case{
				Measure: prediction.ModelAgreement(prediction.ModelSettings{PerClass: true}), Clean: first, Transformed: second, Label: labels,
				Site: measure.Site{Layout: measure.NewLayout(n), Classes: classes(k), KeepSamples: true},
			})
		})
	}
}

// TestModelAgreementGolden checks that scores agree with those of testdata/models.py, which uses
// NumPy and SciPy.
func TestModelAgreementGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, g := range cases {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			agreesWithGolden(t, g)
		})
	}
}

// agreesWithGolden compares scores, nulls, jackknife replicates and per-sample values with those of
// g.
func agreesWithGolden(t *testing.T, g golden) {
	t.Helper()
	m := prediction.ModelAgreement(prediction.ModelSettings{PerClass: len(g.Class) > 0})
	a := feed(t, m, measure.Site{Layout: measure.NewLayout(g.N), Classes: classes(g.K), KeepSamples: true}, g)
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(g.Scores) * (1 + len(g.Class)); len(scores) != want || len(g.Scores) != len(m.Descriptor().Statistics) {
		t.Errorf("%d scores of %d statistics, want %d of %d", len(scores), len(g.Scores), want, len(m.Descriptor().Statistics))
	}
	for _, s := range scores {
		if s.Factor != "" {
			near(t, s.Factor+" "+s.Statistic, s.Value, g.Class[s.Factor][s.Statistic])
			continue
		}
		near(t, s.Statistic, s.Value, g.Scores[s.Statistic])
		if null, ok := g.Null[s.Statistic]; ok {
			near(t, s.Statistic+" null", s.Null, null)
		} else if !math.IsNaN(s.Null) {
			t.Errorf("%s has the null %v, want none", s.Statistic, s.Null)
		}
		if want := len(g.Replicates[s.Statistic]); want == 0 || len(s.Replicates) != want {
			t.Fatalf("%s has %d replicates, want %d, but not 0", s.Statistic, len(s.Replicates), want)
		}
		for i, r := range s.Replicates {
			near(t, s.Statistic+" replicate", r.Value, g.Replicates[s.Statistic][i])
		}
	}
	seen := map[string]int{}
	for _, s := range a.(measure.Sampler).Samples() {
		near(t, s.Statistic, s.Value, g.Samples[s.Statistic][s.Index])
		seen[s.Statistic]++
	}
	for name := range g.Samples {
		if seen[name] != g.N {
			t.Errorf("%d samples of %s, want %d", seen[name], name, g.N)
		}
	}
}

// TestIdenticalModels compares the predictions of a model with themselves. Negative flips are
// samples that only the first of two models classifies correctly, positive flips those that only
// the second does. The normalised disagreement is scaled to [0, 1] within the bounds that the
// accuracies set.
func TestIdenticalModels(t *testing.T) {
	t.Parallel()
	const n, k = 300, 5
	first, _, label := random(n, k, 2)
	got := agreement(t, first.Data, first.Data, label, k)
	for statistic, want := range map[string]float64{
		"disagreement": 0, "js": 0, "l2": 0, "negative-flips": 0, "positive-flips": 0, "error-consistency": 1, "normalised-disagreement": 0,
	} {
		if s := got[statistic]; s.Value != want || !(s.Low <= want && want <= s.High) {
			t.Errorf("%s: %+v, want %v", statistic, s, want)
		}
	}
	// That no prediction differs in n samples does not exclude that some differ in others, so the
	// intervals have a width.
	for _, statistic := range []string{"disagreement", "negative-flips", "error-consistency", "normalised-disagreement"} {
		if s := got[statistic]; !(s.High-s.Low > 1e-3 && s.High-s.Low < .1) {
			t.Errorf("%s has the interval %v to %v, want a width of 0.001 to 0.1", statistic, s.Low, s.High)
		}
	}
}

// TestIndependentModels checks that predictions that are independent of each other have an error
// consistency (Cohen's kappa) near 0, and the disagreement and flips that follow from the
// accuracies. The null of a statistic is its value by chance: for independent errors, or, for
// disagreement, for predictions of different samples (shuffled pairs).
func TestIndependentModels(t *testing.T) {
	t.Parallel()
	const n, k = 4000, 10
	r := rand.New(rand.NewPCG(8, 8))
	var label, first, second []int
	for range n {
		l := r.IntN(k)
		draw := func(accuracy float64) int {
			if r.Float64() < accuracy {
				return l
			}
			return (l + 1 + r.IntN(k-1)) % k
		}
		label, first, second = append(label, l), append(first, draw(.7)), append(second, draw(.6))
	}
	got := agreement(t, predictions(k, first), predictions(k, second), label, k)
	for statistic, want := range map[string]float64{
		"error-consistency": 0, "expected-disagreement": .7*.4 + .6*.3 + .3*.4*8/9, "negative-flips": .28, "positive-flips": .18,
	} {
		if s := got[statistic]; math.Abs(s.Value-want) > .04 {
			t.Errorf("%s is %v, want %v", statistic, s.Value, want)
		}
	}
	for pair, tolerance := range map[[2]float64]float64{
		{got["disagreement"].Value, got["expected-disagreement"].Value}:             .03,
		{got["normalised-disagreement"].Value, got["normalised-disagreement"].Null}: .05,
		{got["negative-flips"].Value, got["negative-flips"].Null}:                   .03,
		{got["disagreement"].Null, 1 - 1./k}:                                        .03, // shuffled pairs agree on one class of k
	} {
		if math.Abs(pair[0]-pair[1]) > tolerance {
			t.Errorf("%v and %v differ by more than %v", pair[0], pair[1], tolerance)
		}
	}
}

func TestModelsWithoutLabels(t *testing.T) {
	t.Parallel()
	first, second, label := random(100, 3, 5)
	label[50] = measure.NoLabel
	for name, labels := range map[string][]int{"none": nil, "one is missing": label} {
		got := agreement(t, first.Data, second.Data, labels, 3)
		if len(got) != 3 {
			t.Errorf("%s: %d statistics, want disagreement, js and l2", name, len(got))
		}
		warnings := 0
		for _, s := range got {
			warnings += len(s.Warnings)
		}
		if w := got["disagreement"].Warnings; warnings != 1 || len(w) != 1 || !strings.Contains(w[0], "no label") {
			t.Errorf("%s: %d warnings, of disagreement %q; want one, about labels", name, warnings, w)
		}
	}
}

// TestPerfectModels checks that statistics are undefined, with a reason, where the accuracies
// determine them.
func TestPerfectModels(t *testing.T) {
	t.Parallel()
	var label []int
	for i := range 60 {
		label = append(label, i%3)
	}
	right := predictions(3, label)
	got := agreement(t, right, right, label, 3)
	for _, statistic := range []string{"error-consistency", "normalised-disagreement"} {
		if s := got[statistic]; !math.IsNaN(s.Value) || len(s.Warnings) != 1 {
			t.Errorf("%s: %+v, want no value and a warning", statistic, s)
		}
	}
	if s := got["expected-disagreement"]; s.Value != 0 {
		t.Errorf("expected-disagreement: %+v, want 0", s)
	}
}

// TestCoverageOfErrorConsistency checks that a 95 % interval contains the true value in about 95 %
// of studies.
func TestCoverageOfErrorConsistency(t *testing.T) {
	t.Parallel()
	const studies, n, k = 300, 200, 3
	r := rand.New(rand.NewPCG(6, 6))
	// A sample is hard with probability 0.4. A model is correct for a hard one with probability
	// 0.3, and for another with 0.9.
	accuracy := .4*.3 + .6*.9
	bothRight, bothWrong := .4*.09+.6*.81, .4*.49+.6*.01
	expected := accuracy*accuracy + (1-accuracy)*(1-accuracy)
	truth := map[string]float64{"error-consistency": (bothRight + bothWrong - expected) / (1 - expected), "negative-flips": accuracy - bothRight}
	covered := map[string]int{}
	for range studies {
		var label, first, second []int
		for range n {
			l, p := r.IntN(k), .9
			if r.Float64() < .4 {
				p = .3
			}
			draw := func() int {
				if r.Float64() < p {
					return l
				}
				return (l + 1 + r.IntN(k-1)) % k
			}
			label, first, second = append(label, l), append(first, draw()), append(second, draw())
		}
		got := agreement(t, predictions(k, first), predictions(k, second), label, k)
		for statistic, v := range truth {
			if s := got[statistic]; s.Low <= v && v <= s.High {
				covered[statistic]++
			}
		}
	}
	for statistic := range truth {
		if share := float64(covered[statistic]) / studies; share < .91 || share > .985 {
			t.Errorf("the interval of %s contains the true value in %.1f %% of studies, want about 95 %%", statistic, 100*share)
		}
	}
}

func TestModelAgreementErrors(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.NewLayout(1), Classes: classes(2)}
	good := logs(.5, .5)
	for name, c := range map[string]struct {
		batch *measure.Batch
		want  string
	}{
		"NaN in the second":      {batch(good, logs(.5, math.NaN()), []int{0}, 2), "NaN or infinity in the activations of sample 0"},
		"no second model":        {batch(good, nil, []int{0}, 2), "predictions of one"},
		"label too large":        {batch(good, good, []int{2}, 2), "sample 0 has label 2"},
		"three classes, not two": {batch(logs(.2, .3, .5), logs(.2, .3, .5), []int{0}, 3), "a prediction of 3 values for a model of 2 classes"},
	} {
		a, err := prediction.ModelAgreement(prediction.ModelSettings{}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Update(c.batch)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
