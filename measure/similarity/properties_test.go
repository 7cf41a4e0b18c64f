package similarity

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
)

// value returns a statistic of x and y. Statistics of nearest neighbours use only 3 of them, so
// that few samples are enough.
func value(t interface {
	Helper()
	Fatalf(string, ...any)
}, name string, x, y *mat.Dense) float64 {
	t.Helper()
	s := Defaults()
	s.Neighbours = 3
	a, b := x.RawMatrix(), y.RawMatrix()
	sx, err := Of(a.Data, a.Rows, a.Cols)
	if err != nil {
		t.Fatalf("%v", err)
	}
	sy, err := Of(b.Data, b.Rows, b.Cols)
	if err != nil {
		t.Fatalf("%v", err)
	}
	v, err := Value(context.Background(), name, sx, sy, s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// normal returns n x p independent standard normal values.
func normal(g *rand.Rand, n, p int) *mat.Dense {
	out := mat.NewDense(n, p, nil)
	for i := range out.RawMatrix().Data {
		out.RawMatrix().Data[i] = g.NormFloat64()
	}
	return out
}

// orthogonal returns a random orthogonal matrix, p x p.
func orthogonal(g *rand.Rand, p int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(normal(g, p, p))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}

// product returns a b.
func product(a, b *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Mul(a, b)
	return &out
}

// related returns two random matrices. The second is partly a linear function of the first.
func related(t *rapid.T) (g *rand.Rand, x, y *mat.Dense) {
	g = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	n, p, q := rapid.IntRange(40, 70).Draw(t, "n"), rapid.IntRange(1, 10).Draw(t, "p"), rapid.IntRange(1, 10).Draw(t, "q")
	if rapid.IntRange(0, 3).Draw(t, "more variables than samples") == 0 {
		p, q = p+n, q+n/2
	}
	x = normal(g, n, p)
	y = product(x, normal(g, p, q))
	y.Scale(1/math.Sqrt(float64(p)), y)
	y.Add(y, normal(g, n, q))
	return g, x, y
}

// near reports whether a and b are equal, to within 1e-7 of the value or of 1.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-7*max(1, math.Abs(a)) }

// dependence says what else than angles and relative distances a statistic depends on: the axes,
// the unit, the origin, or the number of variables.
func dependence(name string) string {
	switch name {
	case PermutationProcrustes, SoftMatching:
		return "axes and unit"
	case HardCorrelationMatch, SoftCorrelationMatch:
		return "axes"
	case RSMNormDifference, ProcrustesDistance, UniformityDifference:
		return "unit"
	case MagnitudeDifference:
		return "origin and unit"
	case ConcentricityDifference, EffectiveRankDifference:
		return "origin"
	case EigenspaceOverlap, RidgePredictivity, PLSPredictivity:
		return "number of variables"
	}
	return ""
}

// heldOut reports whether a statistic is a prediction of samples that were held out of a fit.
func heldOut(name string) bool { return name == RidgePredictivity || name == PLSPredictivity }

// No statistic depends on the origin, the scale or the orientation of the axes, except for those
// that dependence lists. pwcca ignores origin and scale only: its weights are sums over the axes of
// x.
func TestInvarianceToOrthogonalMapsScaleAndOrigin(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		if d := dependence(name); d != "" && d != "number of variables" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				g, x, y := related(t)
				_, p := x.Dims()
				mapped := mat.DenseCopyOf(x)
				if name != PWCCA {
					mapped = product(x, orthogonal(g, p))
				}
				mapped.Scale(math.Exp(g.NormFloat64()), mapped)
				mapped.Apply(func(_, j int, v float64) float64 { return v + float64(j) - 3 }, mapped)
				if want, got := value(t, name, x, y), value(t, name, mapped, y); !near(got, want) {
					t.Fatalf("%v after an orthogonal map, a scaling and a translation, %v before", got, want)
				}
			})
		})
	}
}

// No statistic but those that dependence lists depends on the unit, even if squares of the values
// overflow or underflow. compared (see interval_test.go) returns scores with their intervals.
func TestExtremeScales(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(3, 1))
	x := normal(g, 50, 4)
	y := product(x, normal(g, 4, 6))
	y.Add(y, normal(g, 50, 6))
	for _, unit := range []float64{1e-300, 1e-170, 1e-90, 1e-40, 1e-25, 1e25, 1e40, 1e90, 1e170, 1e300} {
		var rescaled mat.Dense
		rescaled.Scale(unit, x)
		names := slices.DeleteFunc(Names(), func(name string) bool { return strings.Contains(dependence(name), "unit") })
		for _, name := range names {
			if want, got := value(t, name, x, y), value(t, name, &rescaled, y); !near(got, want) {
				t.Errorf("%s is %v with X in units of %g and %v in units of 1", name, got, 1/unit, want)
			}
			if want, got := value(t, name, y, x), value(t, name, y, &rescaled); !near(got, want) {
				t.Errorf("%s is %v with Y in units of %g and %v in units of 1", name, got, 1/unit, want)
			}
		}
		s := allStatistics()
		s.Statistics = names
		scores := compared(t, &rescaled, y, s)
		for name, want := range compared(t, x, y, s) {
			if got := scores[name]; !(math.Abs(got.Low-want.Low) <= 1e-5 && math.Abs(got.High-want.High) <= 1e-5) {
				t.Errorf("%s has the interval [%g %g] in units of %g and [%g %g] in units of 1", name, got.Low, got.High, 1/unit, want.Low, want.High)
			}
		}
	}
}

// cca ignores invertible linear maps of x and y, and pwcca and linear regression those of y.
func TestInvarianceToInvertibleMaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, x, y := related(t)
		_, p := x.Dims()
		_, q := y.Dims()
		mix := func(a *mat.Dense, p int) *mat.Dense {
			m := normal(g, p, p)
			for i := range p {
				m.Set(i, i, m.At(i, i)+4*math.Sqrt(float64(p))) // well conditioned
			}
			return product(a, m)
		}
		for name, mapped := range map[string][2]*mat.Dense{
			CCA: {mix(x, p), mix(y, q)}, PWCCA: {x, mix(y, q)}, LinearRegression: {x, mix(y, q)},
		} {
			if want, got := value(t, name, x, y), value(t, name, mapped[0], mapped[1]); !near(got, want) {
				t.Fatalf("%s: %v after an invertible map, %v before", name, got, want)
			}
		}
	})
}

// A statistic lies in its range, is 1 for X with itself unless it depends on the number of
// variables, and is the same if X and Y are exchanged unless it is directional. GULP and
// shape-metric of X with itself are roots or arc cosines of rounding errors, so at most 1e-5.
func TestSymmetryRangeAndIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, x, y := related(t)
		for _, k := range statistics() {
			xy := value(t, k.name, x, y)
			d, _ := Descriptor().Statistic(k.name)
			if !(xy >= d.Range.Low-1e-9 && xy <= d.Range.High+1e-9) {
				t.Fatalf("%s is %v, which is outside of %v", k.name, xy, d.Range)
			}
			want := 1.
			if k.difference {
				want = 0
			}
			if self := value(t, k.name, x, x); dependence(k.name) != "number of variables" && !(math.Abs(self-want) <= 1e-7) && (k.name != GULP && k.name != ShapeMetric || self > 1e-5) {
				t.Fatalf("%s of X with itself is %v, want %v", k.name, self, want)
			}
			directional := k.name == PWCCA || k.name == LinearRegression || heldOut(k.name)
			if yx := value(t, k.name, y, x); !directional && !near(xy, yx) {
				t.Fatalf("%s is %v one way and %v the other", k.name, xy, yx)
			}
		}
	})
}

// Second moments of the columns and Gram matrices of the rows give the same values. The program
// uses Gram matrices if there are more columns than rows, so columns of zeros are added.
func TestMomentsAndGramMatricesAgree(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(5, 5))
	x := normal(g, 30, 6)
	y := product(x, normal(g, 6, 4))
	y.Add(y, normal(g, 30, 4))
	padded := mat.NewDense(30, 50, nil)
	padded.Slice(0, 30, 0, 6).(*mat.Dense).Copy(x)
	for _, name := range Names() {
		if d := dependence(name); name == EigenspaceOverlap || strings.Contains(d, "axes") {
			continue // depends on added columns of zeros
		}
		if a, b := value(t, name, x, y), value(t, name, padded, y); math.Abs(a-b) > 1e-9 {
			t.Errorf("%s: %v from moments, %v from Gram matrices", name, a, b)
		}
	}
}

// With two columns that differ by 1e-8, and columns of very different scales, statistics lose few
// digits.
func TestNearlyDependentVariables(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(6, 5))
	x, y := normal(g, 200, 5), normal(g, 200, 4)
	y.Add(y, product(x, normal(g, 5, 4)))
	illConditioned := mat.DenseCopyOf(x) // its columns have the same span as those of x
	illConditioned.Apply(func(i, j int, v float64) float64 {
		switch j {
		case 1:
			return x.At(i, 0) + 1e-8*x.At(i, 1)
		case 2:
			return 1e12 * v
		}
		return v
	}, illConditioned)
	for _, name := range []string{CCA, LinearRegression} {
		if want, got := value(t, name, y, x), value(t, name, y, illConditioned); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: %.12f with nearly dependent columns, %.12f with others of the same span", name, got, want)
		}
	}
	// A copy of a column changes nothing.
	repeated := mat.NewDense(200, 6, nil)
	repeated.Slice(0, 200, 0, 5).(*mat.Dense).Copy(x)
	for i := range 200 {
		repeated.Set(i, 5, x.At(i, 2))
	}
	for _, name := range []string{CCA, LinearRegression} {
		if want, got := value(t, name, y, x), value(t, name, y, repeated); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v with a column twice, %v with it once", name, got, want)
		}
	}
}

// With fewer samples than columns, all principal directions are used even if columns have very
// different scales. The values, and their nulls, are then 1. Directions that are lost to rounding
// cause a warning.
func TestBadlyScaledGramMatrices(t *testing.T) {
	t.Parallel()
	const n, p = 40, 60
	g := rand.New(rand.NewPCG(6, 6))
	scaled := func() *mat.Dense {
		x := normal(g, n, p)
		x.Apply(func(_, j int, v float64) float64 { return v * math.Pow(10, -float64(j)/4) }, x)
		return x
	}
	x, y := scaled(), scaled()
	nearlyRank20 := mat.NewDense(n, p, nil) // 20 directions, and others 1e-9 times as large
	nearlyRank20.Apply(func(i, j int, _ float64) float64 {
		return x.At(i, j%20)*math.Pow(10, float64(j%20)/4) + 1e-9*x.At(i, j)
	}, nearlyRank20)
	s := Defaults()
	s.Statistics = []string{CCA, PWCCA, LinearRegression}
	for name, score := range compared(t, x, y, s) {
		if score.Value != 1 || score.Null != 1 {
			t.Errorf("%s: %v (null %v) with more columns than samples, want 1", name, score.Value, score.Null)
		}
	}
	const want = "19 of 39 directions of the second representation are left out: below 1e-7 of the largest after columns are scaled to unit variance, a Gram matrix holds rounding errors"
	for name, score := range compared(t, nearlyRank20, nearlyRank20, s) {
		if !slices.Contains(score.Warnings, want) {
			t.Errorf("%s: warnings %q lack %q", name, score.Warnings, want)
		}
	}
}

// Similarities are 1 for two constant representations, and 0 if one is constant, with fewer columns
// than samples and with more.
func TestConstantRepresentations(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(7, 5))
	for _, p := range []int{3, 60} {
		constant := mat.NewDense(40, p, nil)
		constant.Apply(func(_, j int, _ float64) float64 { return 0.1 * float64(j+1) }, constant)
		other := normal(g, 40, 4)
		for _, name := range Names() {
			if statisticOf(name).difference {
				continue // see TestConstantRepresentationsByFunctions
			}
			for _, c := range []struct {
				x, y *mat.Dense
				want float64
			}{{constant, constant, 1}, {constant, other, 0}, {other, constant, 0}} {
				if got := value(t, name, c.x, c.y); got != c.want {
					t.Errorf("%s with constants of %d columns: %v, want %v", name, p, got, c.want)
				}
			}
		}
	}
}

// TestProcrustesForms checks that the three statistics of orthogonal Procrustes, of which one comes
// from moments and two from principal axes, are functions of the same sum of singular values.
func TestProcrustesForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, x, y := related(t)
		c := value(t, Procrustes, x, y)
		if angle := value(t, ShapeMetric, x, y); math.Abs(math.Cos(angle)-c) > 1e-9 {
			t.Fatalf("the cosine of shape-metric is %v, procrustes %v", math.Cos(angle), c)
		}
		var a, b float64 // squared norms of the centred matrices
		for _, m := range []struct {
			values *mat.Dense
			sum    *float64
		}{{x, &a}, {y, &b}} {
			n, p := m.values.Dims()
			for j := range p {
				column := mat.Col(nil, j, m.values)
				*m.sum += float64(n-1) * stat.Variance(column, nil)
			}
		}
		d := value(t, ProcrustesDistance, x, y)
		if want := a + b - 2*math.Sqrt(a*b)*c; math.Abs(d*d-want) > 1e-9*(a+b) {
			t.Fatalf("the square of procrustes-distance is %v, want %v", d*d, want)
		}
	})
}

// Variables that are constant or linearly dependent on others do not change cca, and cause a
// warning.
func TestDependentVariables(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(4, 2))
	x, y := normal(g, 60, 8), normal(g, 60, 5)
	more := mat.NewDense(60, 10, nil)
	more.Augment(x, mat.NewDense(60, 2, nil))
	for i := range 60 {
		more.Set(i, 8, 2.5)
		more.Set(i, 9, x.At(i, 0)-2*x.At(i, 3))
	}
	s := Defaults()
	s.Statistics = []string{CCA, SVCCA}
	compare := func(x *mat.Dense, p int) []measure.Score {
		scores, err := Compare(context.Background(), source(t, x.RawMatrix().Data, p), source(t, y.RawMatrix().Data, 5), Options{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		return scores
	}
	without, with := compare(x, 8), compare(more, 10)
	if d := with[0].Value - without[0].Value; math.Abs(d) > 1e-9 {
		t.Errorf("dependent variables change cca by %g", d)
	}
	want := []string{"2 of the 10 variables of the first representation are constant or sums of others, and add no direction", wideIntervalWarning, measure.SampleSizeWarning(with[0].N)}
	if !slices.Equal(with[0].Warnings, want) || !slices.Equal(with[1].Warnings, without[1].Warnings) || !slices.Equal(without[0].Warnings, want[1:]) {
		t.Errorf("warnings of cca %q and of svcca %q, without the variables %q and %q", with[0].Warnings, with[1].Warnings, without[0].Warnings, without[1].Warnings)
	}
}

// The smallest allowed numbers of samples give values and cause no panic.
func TestFewSamples(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(9, 5))
	for n := 2; n < 25; n++ {
		for _, k := range statistics() {
			if n < k.minSamples {
				continue
			}
			s := Defaults()
			s.Statistics, s.Neighbours = []string{k.name}, 1
			x, y := normal(g, n, 3).RawMatrix().Data, normal(g, n, 30).RawMatrix().Data
			scores, err := Compare(context.Background(), source(t, x, 3), source(t, y, 30), Options{Settings: s})
			if err != nil || len(scores) != 1 {
				t.Fatalf("%s of %d samples: %v", k.name, n, err)
			}
			if v := scores[0].Value; math.IsNaN(v) && len(scores[0].Warnings) == 0 {
				t.Errorf("%s of %d samples: NaN without a warning", k.name, n)
			} else if d, _ := Descriptor().Statistic(k.name); v < d.Range.Low || v > d.Range.High+1e-9 {
				t.Errorf("%s of %d samples: %v", k.name, n, v)
			}
			if slices.Contains([]string{LinearCKA, Procrustes}, k.name) && n >= 20 && math.IsNaN(scores[0].High) {
				t.Errorf("%s of %d samples: no interval", k.name, n)
			}
		}
	}
}

// scale multiplies values in place and clips them to finite numbers.
func scale(v []float64, by float64) {
	for i := range v {
		v[i] = max(-math.MaxFloat64, min(v[i]*by, math.MaxFloat64))
	}
}
