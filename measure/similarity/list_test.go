package similarity

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// TestGoldenFunctions compares the statistics that have a function statistic.compute with the
// values of testdata/list.py. That program follows the definitions of the papers and of ReSi and
// netrep, two Python packages of such statistics. The other statistics, from moments or Gram
// matrices, have no such function. source (see golden_test.go) makes a matrix of rows of P values.
func TestGoldenFunctions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/list.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string
		P, Q     int       // columns of X and of Y
		X, Y     []float32 // the two representations, a row for each sample
		Variants []struct {
			Settings json.RawMessage
			Values   map[string]float64
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	compared := map[string]bool{}
	for _, c := range cases {
		for i, variant := range c.Variants {
			s := Defaults()
			if err := json.Unmarshal(variant.Settings, &s); err != nil {
				t.Fatal(err)
			}
			for name, want := range variant.Values {
				for _, pair := range [][2]Source{{source(t, c.X, c.P), source(t, c.Y, c.Q)}, {source(t, tensor.Float64s(c.X), c.P), source(t, tensor.Float64s(c.Y), c.Q)}} {
					got, err := Value(context.Background(), name, pair[0], pair[1], s)
					if err != nil || !(math.Abs(got-want) <= 1e-6*max(math.Abs(want), 1e-2)) {
						t.Errorf("%s, settings %d, %s: %.10f, %v; want %.10f", c.Name, i, name, got, err, want)
					}
				}
				compared[name] = true
			}
		}
	}
	for _, k := range statistics() {
		if k.compute != nil && k.name != PLSPredictivity && !compared[k.name] { // see TestGoldenPLSAndGeometry
			t.Errorf("testdata/list.json has no values of %s", k.name)
		}
	}
}

// The function transport returns the least cost of a transport plan between rows, which supply
// units, and columns, which take them. With as many rows as columns it is that of the best
// permutation. It is at most that of the plan that spreads each row evenly. It stays the same if
// each row and column of several units is replaced by copies with one unit each.
func TestTransport(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 6).Draw(t, "n")
		cost := normal(g, n, n) // standard normal values
		if rapid.Bool().Draw(t, "ties") {
			cost.Apply(func(_, _ int, v float64) float64 { return math.Round(v) }, cost)
		}
		best := math.Inf(1)
		permutations(n, func(order []int) {
			var sum float64
			for i, j := range order {
				sum += cost.At(i, j)
			}
			best = min(best, sum)
		})
		for _, units := range []int{1, 3} { // that each row supplies and each column takes
			if got := transport(cost, units, units); math.Abs(got-float64(units)*best) > 1e-9 {
				t.Fatalf("the least cost is %v, want %v, that of the best permutation", got/float64(units), best)
			}
		}
		q := rapid.IntRange(n, 9).Draw(t, "q")
		wide := normal(g, n, q)
		var even float64 // cost of the plan that spreads each row evenly
		for _, v := range wide.RawMatrix().Data {
			even += v
		}
		got := transport(wide, q, n)
		if got > even+1e-9 {
			t.Fatalf("the least cost is %v, but a plan that spreads each row evenly costs %v", got, even)
		}
		// With q copies of each row and n of each column, the best plan is a permutation of n q
		// elements.
		many := mat.NewDense(n*q, n*q, nil)
		many.Apply(func(i, j int, _ float64) float64 { return wide.At(i/q, j/n) }, many)
		if want := transport(many, 1, 1); math.Abs(got-want) > 1e-8 {
			t.Fatalf("the least cost is %v, want %v, that with copies of rows and columns", got, want)
		}
	})
}

// permutations calls f for each permutation of 0 to n - 1.
func permutations(n int, f func([]int)) {
	order := identityOrder(n)
	var swap func(k int)
	swap = func(k int) {
		if k == n {
			f(order)
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			swap(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	swap(0)
}

// The function kendall returns Kendall's tau-b as defined, by a sum over all pairs. Values are
// whole numbers from 0 to 5, so that there are many ties.
func TestKendall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Float64Range(0, 5), n, n)
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		for i := range n {
			a[i], b[i] = math.Round(a[i]), math.Round(b[i])
		}
		var sum, na, nb float64
		for i := range n {
			for j := range i {
				x, y := sign(a[i]-a[j]), sign(b[i]-b[j])
				sum, na, nb = sum+x*y, na+x*x, nb+y*y
			}
		}
		want := sum / math.Sqrt(na*nb)
		if got := kendall(a, b); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("kendall of %v and %v is %v, want %v", a, b, got, want)
		}
	})
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// Settings that earlier versions lacked are left out of the encoding where they have their
// defaults, so that scores of earlier studies stay valid.
func TestSettingsOfEarlierStudies(t *testing.T) {
	t.Parallel()
	encode := func(s Settings) string {
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(m.Settings())
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	s := Defaults()
	const want = `{"statistics":["minibatch-cka"],"pool":"none","variance":0.99,"bandwidth":0.4,"neighbours":10,"samples":4096}`
	if got := encode(s); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	seen := map[string]bool{want: true}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Metric = "cosine" }, func(s *Settings) { s.Centre = "none" }, func(s *Settings) { s.Dissimilarity = "correlation" },
		func(s *Settings) { s.Comparison = "kendall" }, func(s *Settings) { s.Norm = "spectral" }, func(s *Settings) { s.Alpha = 0 },
		func(s *Settings) { s.Components = 3 }, func(s *Settings) { s.Interval = false }, func(s *Settings) { s.Null = false }, func(s *Settings) { s.Lambda = 1 }, func(s *Settings) { s.Folds = 3 }, func(s *Settings) { s.Ridge = 0 },
	} {
		s := Defaults()
		change(&s)
		if got := encode(s); seen[got] {
			t.Errorf("%+v has the same encoding as other settings: %s", s, got)
		} else {
			seen[got] = true
		}
	}
}

// The error of an invalid setting names it. rtd (representation topology divergence) is a statistic
// of ReSi (Klabunde et al. 2025) that this package does not compute.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Settings){
		"unknown metric": func(s *Settings) { s.Metric = "manhattan" }, "unknown centre": func(s *Settings) { s.Centre = "rows" },
		"unknown dissimilarity": func(s *Settings) { s.Dissimilarity = "x" }, "unknown comparison": func(s *Settings) { s.Comparison = "x" },
		"unknown norm": func(s *Settings) { s.Norm = "x" }, "alpha is 2": func(s *Settings) { s.Alpha = 2 }, "lambda is -1": func(s *Settings) { s.Lambda = -1 },
		"folds is 1": func(s *Settings) { s.Folds = 1 }, "ridge is -1": func(s *Settings) { s.Ridge = -1 },
		"components is 0": func(s *Settings) { s.Components = 0 }, "rtd is not computed": func(s *Settings) { s.Statistics = []string{"rtd"} },
	} {
		s := Defaults()
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
	s := Defaults()
	s.Statistics, s.Neighbours = []string{Jaccard}, 30
	x := source(t, make([]float64, 60), 2)
	if _, err := Value(context.Background(), Jaccard, x, x, s); err == nil || !strings.Contains(err.Error(), "30 samples have at most 29 neighbours") {
		t.Errorf("30 neighbours of 30 samples: error %v, want one that says how many there are", err)
	}
}

// Similarities that have a function statistic.compute are 1 if both representations are constant,
// and 0 if only one is. Differences are 0 if both are, and any number if only one is. value (see
// properties_test.go) returns a statistic of two matrices.
func TestConstantRepresentationsByFunctions(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(4, 4))
	x, flat := normal(g, 40, 5), mat.NewDense(40, 3, slices.Repeat([]float64{2}, 120))
	for _, k := range statistics() {
		if k.compute == nil || k.name == IntrinsicDimensionDifference { // undefined without distances
			continue
		}
		both, one := value(t, k.name, flat, flat), value(t, k.name, x, flat)
		want := [2]float64{1, 0}
		if k.difference {
			want = [2]float64{0, one}
		}
		if both != want[0] || one != want[1] || math.IsNaN(one) {
			t.Errorf("%s: %v of two constant representations, %v of one; want %v", k.name, both, one, want)
		}
	}
}

// uniformity-difference has a warning if the distances are far above 1.
func TestUniformityOfLargeDistances(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(9, 9))
	x, y := normal(g, 60, 2), normal(g, 60, 2)
	s := Defaults()
	s.Statistics = []string{UniformityDifference}
	for _, unit := range []float64{1, 1000} {
		x.Scale(unit, x)
		if w := compared(t, x, y, s)[UniformityDifference].Warnings; (len(w) > 0) != (unit > 1) {
			t.Errorf("in units of %v: warnings %q; want one: %t", 1/unit, w, unit > 1)
		}
	}
}
