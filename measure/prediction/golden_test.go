package prediction_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
)

// golden holds testdata/golden.json: predictions and, by statistic, their scores.
type golden struct {
	Name        string    // of the case, in a file of several cases
	N, K        int       // samples and classes
	Clean       []float32 // N x K log-probabilities on x
	Transformed []float32 `json:"moved"` // the same on T(x)
	Label       []int
	Scores      map[string]float64            // of all samples
	Null        map[string]float64            // of shuffled pairs of x and T(x)
	Class       map[string]map[string]float64 // of the samples of each class
	Replicates  map[string][]float64          // of the samples without each jackknife group
	Samples     map[string][]float64          // of each sample
}

// TestGolden checks that scores agree with those of testdata/golden.py, which uses PyTorch and
// SciPy. The functions classes, measures and batch are in prediction_test.go.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	site := measure.Site{Layout: measure.NewLayout(g.N), Classes: classes(g.K), KeepSamples: true}
	seen := 0
	for _, m := range measures(prediction.Settings{PerClass: true}) {
		a := feed(t, m, site, g)
		scores, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			seen++
			want := g.Scores[s.Statistic]
			if s.Factor != "" { // the score of a class
				want = g.Class[s.Factor][s.Statistic]
			} else {
				if len(s.Replicates) != len(g.Replicates[s.Statistic]) {
					t.Fatalf("%s: %d replicates, want %d", s.Statistic, len(s.Replicates), len(g.Replicates[s.Statistic]))
				}
				for i, r := range s.Replicates {
					near(t, s.Statistic+" replicate", r.Value, g.Replicates[s.Statistic][i])
				}
				if null, ok := g.Null[s.Statistic]; ok {
					near(t, s.Statistic+" null", s.Null, null)
				}
			}
			near(t, s.Factor+" "+s.Statistic, s.Value, want)
		}
		count := map[string]int{}
		for _, s := range a.(measure.Sampler).Samples() {
			near(t, s.Statistic, s.Value, g.Samples[s.Statistic][s.Index])
			count[s.Statistic]++
		}
		if len(count) == 0 {
			t.Errorf("%s has no values of samples", m.Name())
		}
		for name, n := range count {
			if n != g.N {
				t.Errorf("%d samples of %s, want %d", n, name, g.N)
			}
		}
	}
	if want := 8 * (1 + g.K); seen != want { // 8 statistics of three measures: of all samples and of each class
		t.Errorf("%d scores, want %d", seen, want)
	}
}

// near fails the test unless got is within 1e-6 of want.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// feed returns an accumulator that has been given all predictions.
func feed(t *testing.T, m measure.Measure, site measure.Site, g golden) measure.Accumulator {
	t.Helper()
	a, err := m.New(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Update(batch(g.Clean, g.Transformed, g.Label, g.K)); err != nil {
		t.Fatal(err)
	}
	return a
}
