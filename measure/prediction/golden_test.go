package prediction_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
)

// golden holds the log-probabilities of N samples over K classes, and their scores by statistic: of
// all samples, of shuffled pairs (Null), of each class, without each group, and of each sample.
type golden struct {
	Name        string
	N, K        int
	Clean       []float32
	Transformed []float32 `json:"moved"`
	Label       []int
	Scores      map[string]float64
	Null        map[string]float64
	Class       map[string]map[string]float64
	Replicates  map[string][]float64
	Samples     map[string][]float64
}

// TestGolden checks that scores agree with those of testdata/golden.py, which uses PyTorch and
// SciPy.
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
			if s.Factor != "" {
				want = g.Class[s.Factor][s.Statistic]
			} else {
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
		for name, n := range count {
			if n != g.N {
				t.Errorf("%d samples of %s, want %d", n, name, g.N)
			}
		}
	}
	if want := 8 * (1 + g.K); seen != want { // statistics of the three measures, of all and by class
		t.Errorf("%d scores, want %d", seen, want)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

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
