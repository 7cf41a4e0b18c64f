package similarity

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// A golden is a case that testdata/golden.py computed with NumPy and SciPy by other methods.
type golden struct {
	Name                string
	N, P, Q             int                // samples, and values of each in X and in Y
	X, Y                []float32          // N x P and N x Q
	Variance, Bandwidth float64            // as in Settings
	Neighbours          int                // as in Settings
	Values              map[string]float64 // by statistic
}

// goldens reads testdata/golden.json.
func goldens(t *testing.T) []golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// settings returns the settings with which golden.py computed the case.
func (g golden) settings() Settings {
	s := Defaults()
	s.Variance, s.Bandwidth, s.Neighbours = g.Variance, g.Bandwidth, g.Neighbours
	return s
}

// source returns a Source, a matrix, whose rows, of p values each, are the samples.
func source[T float32 | float64](t testing.TB, values []T, p int) Source {
	t.Helper()
	s, err := Of(values, len(values)/p, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGolden checks the statistics of golden.json: by Value, of float32 and of float64 values, and
// by Compare, which reads the samples in a random order.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			x, y := source(t, g.X, g.P), source(t, g.Y, g.Q)
			s := g.settings()
			for name, want := range g.Values {
				for _, pair := range [][2]Source{{x, y}, {source(t, tensor.Float64s(g.X), g.P), source(t, tensor.Float64s(g.Y), g.Q)}} {
					got, err := Value(context.Background(), name, pair[0], pair[1], s)
					if err != nil || !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
						t.Errorf("%s: %.12f, %v; want %.12f", name, got, err, want)
					}
				}
			}
			for name := range g.Values {
				s.Statistics = append(s.Statistics, name)
			}
			scores, err := Compare(context.Background(), x, y, Options{Settings: s})
			if err != nil {
				t.Fatal(err)
			}
			if len(scores) != len(g.Values)+1 { // and minibatch-cka, which the default settings select
				t.Errorf("%d scores, want %d", len(scores), len(g.Values)+1)
			}
			for _, score := range scores {
				if want, ok := g.Values[score.Statistic]; ok && !(math.Abs(score.Value-want) <= 1e-6*math.Abs(want)) {
					t.Errorf("%s by Compare: %.12f, want %.12f", score.Statistic, score.Value, want)
				}
			}
		})
	}
}
