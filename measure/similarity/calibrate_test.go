package similarity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure"
)

// calibratedSettings are those of the statistics that can be calibrated, or of some of them.
func calibratedSettings(names ...string) Settings {
	s := Defaults()
	s.Calibrate, s.Neighbours, s.Statistics = true, 5, names
	if len(names) == 0 {
		for _, k := range statistics() {
			if k.calibratable() && k.name != MinibatchCKA {
				s.Statistics = append(s.Statistics, k.name)
			}
		}
	}
	return s
}

// spectral returns n samples of p variables, whose variances decay as a power of their index.
func spectral(g *rand.Rand, n, p int, decay float64) *mat.Dense {
	out := normal(g, n, p)
	for j := range p {
		for i := range n {
			out.Set(i, j, out.At(i, j)*math.Pow(float64(j+1), -decay/2))
		}
	}
	return out
}

func calibratedOf(t *testing.T, x, y *mat.Dense, s Settings) map[string]measure.Score {
	t.Helper()
	a, b := x.RawMatrix(), y.RawMatrix()
	scores, err := Compare(t.Context(), source(t, a.Data, a.Cols), source(t, b.Data, b.Cols), Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, score := range scores {
		if score.Variant == Calibrated {
			out[score.Statistic] = score
		}
	}
	return out
}

// TestCalibratedIsZeroByChance draws independent representations of unequal spectra, at four sizes
// of samples and variables: calibrated similarities must have the mean 0, and intervals that
// contain it, where the raw ones are far above 0.
func TestCalibratedIsZeroByChance(t *testing.T) {
	t.Parallel()
	names := []string{LinearCKA, RBFCKA, CCA, SVCCA, Procrustes, LinearRegression, RSA, MutualKNN, CKNNA}
	for _, size := range []struct{ n, p, q int }{{40, 8, 6}, {60, 30, 20}, {120, 10, 30}, {50, 80, 70}} {
		values, covered := map[string][]float64{}, map[string]float64{}
		const trials = 25
		g := rand.New(rand.NewPCG(17, uint64(size.n*size.p)))
		for range trials {
			for name, s := range calibratedOf(t, spectral(g, size.n, size.p, 0.7), spectral(g, size.n, size.q, 1.3), calibratedSettings(names...)) {
				if math.IsNaN(s.Value) {
					continue // as many variables as samples: 1 by chance
				}
				values[name] = append(values[name], s.Value)
				if s.Low <= 0 && 0 <= s.High {
					covered[name] += 1. / trials
				}
			}
		}
		for _, name := range names {
			v := values[name]
			if len(v) == 0 && size.p > size.n && slices.Contains([]string{CCA, LinearRegression}, name) {
				continue
			}
			mean, sd := stat.MeanStdDev(v, nil)
			if len(v) != trials || math.Abs(mean) > 3.5*sd/math.Sqrt(trials) || covered[name] < 0.8 {
				t.Errorf("%s at %d x %d and %d: %d values of mean %.4f, sd %.4f; %.2f of the intervals contain 0", name, size.n, size.p, size.q, len(v), mean, sd, covered[name])
			}
		}
	}
}

// TestCalibratedGolden compares with numpy, which takes the mean over all orders of the rows, see
// testdata/calibrated.py.
func TestCalibratedGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/calibrated.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		X, Y   [][]float64
		Values map[string]float64
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	dense := func(rows [][]float64) *mat.Dense {
		out := mat.NewDense(len(rows), len(rows[0]), nil)
		for i, r := range rows {
			out.SetRow(i, r)
		}
		return out
	}
	for i, c := range cases {
		s := calibratedSettings(LinearCKA, LinearRegression, MutualKNN, RBFCKA)
		s.Neighbours = 2
		got := calibratedOf(t, dense(c.X), dense(c.Y), s)
		for name, want := range c.Values {
			if math.Abs(got[name].Value-want) > 1e-6 || got[name].Null != 0 {
				t.Errorf("case %d: calibrated %s is %.9f with null %v, want %.9f and 0", i, name, got[name].Value, got[name].Null, want)
			}
		}
	}
}

// TestCalibratedEqual checks equal representations, whose calibrated similarities are 1, and what
// cannot be calibrated.
func TestCalibratedEqual(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(3, 1))
	x := normal(g, 80, 6)
	s := calibratedSettings()
	got := calibratedOf(t, x, x, s)
	for _, name := range s.Statistics {
		// A prediction on left-out samples is 1 up to the penalty.
		if v := got[name]; math.Abs(v.Value-1) > 1e-3 || v.Max != 1 {
			t.Errorf("calibrated %s of equal representations is %v of at most %v, want 1", name, v.Value, v.Max)
		}
	}
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Statistics = []string{LinearCKA, GULP} }, "gulp is no similarity"},
		{func(s *Settings) { s.Null = false }, "needs the nulls"},
	} {
		s := calibratedSettings(LinearCKA)
		c.change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
	wide := calibratedOf(t, normal(g, 20, 40), normal(g, 20, 40), calibratedSettings(CCA))[CCA]
	if !math.IsNaN(wide.Value) || len(wide.Warnings) != 1 {
		t.Errorf("cca of as many variables as samples is %v with warnings %v, want none that is calibrated", wide.Value, wide.Warnings)
	}
}
