package similarity

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// statisticOf returns the description of the statistic of that name. Its field compute is a
// function that computes the statistic of some samples, also for each replicate. It is nil if there
// is a faster way.
func statisticOf(name string) statistic { return Settings{Statistics: []string{name}}.selected()[0] }

// allStatistics returns settings with all statistics and 5 nearest neighbours.
func allStatistics() Settings {
	s := Defaults()
	s.Statistics, s.Neighbours = Names(), 5
	return s
}

// compared returns the scores of Compare by the names of their statistics.
func compared(t *testing.T, x, y *mat.Dense, s Settings) map[string]measure.Score {
	t.Helper()
	a, b := x.RawMatrix(), y.RawMatrix()
	scores, err := Compare(context.Background(), source(t, a.Data, a.Cols), source(t, b.Data, b.Cols), Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, score := range scores {
		out[score.Statistic] = score
	}
	return out
}

// rowsAt returns the rows of x with the given indices, in that order.
func rowsAt(x *mat.Dense, rows []int) *mat.Dense {
	_, p := x.Dims()
	out := mat.NewDense(len(rows), p, nil)
	for i, r := range rows {
		out.SetRow(i, x.RawRowView(r))
	}
	return out
}

// sharedLatents returns n samples of two random representations: latent variables that they share,
// times wx and times wy, each with noise added. All are standard normal.
func sharedLatents(g *rand.Rand, n int, wx, wy *mat.Dense) (x, y *mat.Dense) {
	k, p := wx.Dims()
	_, q := wy.Dims()
	z := normal(g, n, k)
	x, y = product(z, wx), product(z, wy)
	x.Add(x, normal(g, n, p))
	y.Add(y, normal(g, n, q))
	return x, y
}

// TestNullIsTheMeanOverShuffles checks that the null of a statistic, which is computed in closed
// form or from drawn shuffles, is its mean over shuffled pairs of samples.
func TestNullIsTheMeanOverShuffles(t *testing.T) {
	t.Parallel()
	// n samples, of p variables in x and q in y. normal is in properties_test.go.
	for _, size := range []struct{ n, p, q int }{{60, 6, 4}, {40, 60, 50}} {
		g := rand.New(rand.NewPCG(21, uint64(size.p)))
		x, y := sharedLatents(g, size.n, normal(g, 3, size.p), normal(g, 3, size.q))
		s := allStatistics()
		got := compared(t, x, y, s)
		for _, name := range Names() {
			if name == MinibatchCKA {
				continue // a shuffle changes the minibatches too; the null is 0, as that of debiased CKA
			}
			var values []float64
			for range 80 {
				values = append(values, valueOfMany(t, name, x, rowsAt(y, g.Perm(size.n))))
			}
			mean, sd := stat.MeanStdDev(values, nil)
			draws := 80.
			k := statisticOf(name)
			if k.unpaired { // it does not depend on how samples are paired
				if !math.IsNaN(got[name].Null) {
					t.Errorf("%s has the null %v, but it does not depend on pairs", name, got[name].Null)
				}
				continue
			}
			if k.drawnNull || k.compute != nil {
				draws = 1 / (1./80 + 1./10) // the null is itself a mean, over 10 shuffles
			}
			if null := got[name].Null; math.Abs(null-mean) > 4.5*sd/math.Sqrt(draws)+1e-9 {
				t.Errorf("%s of %d x %d: null %v, but shuffles give %v +- %v", name, size.n, size.p, null, mean, sd/math.Sqrt(draws))
			}
		}
	}
}

// valueOfMany returns a statistic with the settings of allStatistics: 5 neighbours.
func valueOfMany(t *testing.T, name string, x, y *mat.Dense) float64 {
	t.Helper()
	a, b := x.RawMatrix(), y.RawMatrix()
	v, err := Value(context.Background(), name, source(t, a.Data, a.Cols), source(t, b.Data, b.Cols), allStatistics())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestReplicates checks that each jackknife replicate is the statistic of the samples without one
// group, exactly or up to the errors that are allowed below. Left is the number of samples left
// out.
func TestReplicates(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ n, p, q int }{{200, 6, 4}, {100, 120, 150}} {
		g := rand.New(rand.NewPCG(22, uint64(size.p)))
		x, y := sharedLatents(g, size.n, normal(g, 3, size.p), normal(g, 3, size.q))
		got := compared(t, x, y, allStatistics())
		order := shuffled(0, size.n, size.n) // the order of Compare with the seed 0; each group is a section of it
		for _, name := range Names() {
			if size.p > 100 && statisticOf(name).compute != nil {
				continue // computed in the same way whether or not there are more variables than samples
			}
			replicates := got[name].Replicates
			groups := len(replicates)
			if groups != measure.MaxGroups {
				t.Errorf("%s: %d replicates, want %d", name, groups, measure.MaxGroups)
				continue
			}
			// spread is the largest difference of an exact replicate from the value of all samples.
			var largestError, spread float64
			for i, r := range replicates {
				rest := append(append([]int(nil), order[:i*size.n/groups]...), order[(i+1)*size.n/groups:]...)
				if r.Left != size.n-len(rest) {
					t.Fatalf("%s: a replicate says that %d were left out, not %d", name, r.Left, size.n-len(rest))
				}
				exact := valueOfMany(t, name, rowsAt(x, rest), rowsAt(y, rest))
				// Some statistics grow as a power of the number of samples; for others exponent is
				// 0.
				exact *= math.Pow(float64(size.n)/float64(len(rest)), statisticOf(name).exponent)
				largestError = max(largestError, math.Abs(r.Value-exact))
				spread = max(spread, math.Abs(exact-got[name].Value))
			}
			tolerance := map[string]float64{
				LinearCKA: 1e-6, DebiasedCKA: 1e-6, MutualKNN: 1e-12, RBFCKA: 0.5 * spread, RSA: 0.2 * spread,
				MinibatchCKA: math.Inf(1), // the remaining samples would form other minibatches
			}
			limit, known := tolerance[name]
			if statisticOf(name).compute != nil {
				// Statistics that predict held-out samples would divide fewer samples into other
				// folds.
				limit, known = 1e-6*max(1, math.Abs(got[name].Value)), !heldOut(name)
			}
			if !known {
				limit = 0.8*spread + 1e-9
			}
			if name == PWCCA || name == SVCCA { // replicates keep the weights or subspaces of all samples
				limit *= 2
			}
			if largestError > limit {
				t.Errorf("%s of %d x %d: a replicate has the error %v, want at most %v; replicates differ from the value by up to %v", name, size.n, size.p, largestError, limit, spread)
			}
		}
	}
}

// TestIntervalWidths checks that half the width of an interval is about 2.093 standard deviations
// of the statistic over new samples. 2.093 is the 97.5 % quantile of Student's t with 19 degrees of
// freedom, one less than the number of jackknife groups.
func TestIntervalWidths(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(23, 1))
	wx, wy := normal(g, 3, 12), normal(g, 3, 9)
	values, widths := map[string][]float64{}, map[string]float64{}
	// Statistics for which compute is set are slow: they are computed again for each replicate.
	const sets, setsOfSlow = 50, 20 // numbers of sets of samples
	quick := allStatistics()
	quick.Statistics = slices.DeleteFunc(Names(), func(name string) bool { return statisticOf(name).compute != nil })
	for i := range sets {
		x, y := sharedLatents(g, 240, wx, wy)
		s := allStatistics()
		if i >= setsOfSlow {
			s = quick
		}
		for name, score := range compared(t, x, y, s) {
			values[name] = append(values[name], score.Value)
			low, high := resample.Jackknife(score.Value, score.N, score.Replicates)
			widths[name] += (high - low) / 2
		}
	}
	for _, name := range Names() {
		_, sd := stat.MeanStdDev(values[name], nil)
		ratio := widths[name] / float64(len(values[name])) / (2.093 * sd)
		least, most := 0.72, 1.5
		if len(values[name]) == setsOfSlow {
			least, most = 0.65, 1.7
		}
		switch name {
		case MutualKNN, RankSimilarity, IntrinsicDimensionDifference:
			most = 2.2 // neighbours change in steps, which widens the jackknife interval
		case MagnitudeDifference, ConcentricityDifference:
			most = 6 // absolute differences, here near 0, of means near the origin
		}
		if !(ratio > least && ratio < most) {
			t.Errorf("%s: intervals are %.2f times as wide as they should be", name, ratio)
		}
	}
}

// TestSVCCAIntervalWithRankChanges checks that the interval of svcca is as wide as the score varies
// over samples if seven components hold 99 % of the variance of some samples, and other samples
// need six or eight.
func TestSVCCAIntervalWithRankChanges(t *testing.T) {
	t.Parallel()
	const sets, n, p = 60, 500, 24
	var values []float64
	var width float64
	for i := range sets {
		g := rand.New(rand.NewPCG(24, uint64(i)))
		z, x, y := normal(g, n, p), normal(g, n, p), normal(g, n, p)
		for j := range p {
			scale := math.Pow(0.01, float64(j)/14) // components beyond the seventh have 0.01 of the variance
			noise := 0.1 + 0.2*float64(j)          // relative to the shared values z
			for i := range n {
				x.Set(i, j, scale*(z.At(i, j)+noise*x.At(i, j))/math.Hypot(1, noise))
				y.Set(i, j, scale*(z.At(i, j)+noise*y.At(i, j))/math.Hypot(1, noise))
			}
		}
		s := allStatistics()
		s.Statistics = []string{SVCCA}
		score := compared(t, x, y, s)[SVCCA]
		low, high := resample.Jackknife(score.Value, score.N, score.Replicates)
		values, width = append(values, score.Value), width+(high-low)/2/sets
	}
	_, sd := stat.MeanStdDev(values, nil)
	// 2.093: see TestIntervalWidths. The ratio would be 0.48 if each replicate kept the number of
	// components of all samples.
	if ratio := width / (2.093 * sd); !(ratio > 0.7 && ratio < 1.4) {
		t.Errorf("intervals are %.2f times as wide as they should be", ratio)
	}
}

// TestSVCCAWithFewComponentsWarns checks that svcca warns of its interval if it has few components,
// so that one more or less changes the score much.
func TestSVCCAWithFewComponentsWarns(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(25, 1))
	for p, want := range map[int]bool{12: true, 80: false} {
		x, y := sharedLatents(g, 400, normal(g, 3, p), normal(g, 3, p))
		s := allStatistics()
		s.Statistics = []string{SVCCA}
		score := compared(t, x, y, s)[SVCCA]
		warned := slices.ContainsFunc(score.Warnings, func(w string) bool { return strings.Contains(w, "may be too narrow: the score has") })
		if math.IsNaN(score.Low) || warned != want {
			t.Errorf("%d variables, interval [%v, %v]: warnings %q, want one of few components: %v", p, score.Low, score.High, score.Warnings, want)
		}
	}
}

// TestSubsampleWarnings checks that scores that are computed from a part of the samples say so in a
// warning.
func TestSubsampleWarnings(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(24, 1))
	x, y := sharedLatents(g, 300, normal(g, 3, 5), normal(g, 3, 5))
	s := allStatistics()
	s.Samples = 100
	for name, score := range compared(t, x, y, s) {
		wantN, wantWarnings := 300, 0
		if statisticOf(name).input == pairwiseInput {
			wantN, wantWarnings = 100, 1 // at most Settings.Samples
		}
		if score.N < statisticOf(name).wideBelow || name == SVCCA { // a warning that its interval is too wide, or, for svcca, too narrow
			wantWarnings++
		}
		if dependsOnSampleSize(name) {
			wantWarnings++
		}
		if score.N != wantN || len(score.Warnings) != wantWarnings {
			t.Errorf("%s: n %d, warnings %q; want n %d and %d warnings", name, score.N, score.Warnings, wantN, wantWarnings)
		}
	}
	// Where second moments do not fit into memory, Gram matrices of a part of the samples are used.
	// Where those of jackknife groups do not fit, there is no interval.
	a, b := x.RawMatrix(), y.RawMatrix()
	s.Statistics = []string{LinearCKA}
	// The numbers of samples and of replicates, by bytes of memory.
	for memory, want := range map[int64][2]int{600: {100, 0}, 2000: {300, 0}, 1 << 30: {300, 20}} {
		scores, err := Compare(context.Background(), source(t, a.Data, a.Cols), source(t, b.Data, b.Cols), Options{Settings: s, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if scores[0].N != want[0] || len(scores[0].Replicates) != want[1] || (memory < 1<<30) != (len(scores[0].Warnings) > 0) {
			t.Errorf("within %d bytes: n and number of replicates %d %d, want %d; warnings %q, want some below 1 GiB", memory, scores[0].N, len(scores[0].Replicates), want, scores[0].Warnings)
		}
	}
}

// TestPrecision checks that two matrices of float32 values, whose second moments are accumulated in
// float32, have the scores that they have if one of them is given in float64. correlated (see
// bench_test.go) returns representations of 2,500 samples, of 70 and of 90 values.
func TestPrecision(t *testing.T) {
	t.Parallel()
	x, y := correlated(9, 2500, 70, 90)
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	s := Defaults()
	for _, name := range []string{LinearCKA, DebiasedCKA} {
		s.Statistics = []string{name}
		single, err := Compare(context.Background(), source(t, x, 70), source(t, y, 90), Options{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		double, err := Compare(context.Background(), source(t, wide, 70), source(t, y, 90), Options{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		a, b := single[0], double[0]
		if a.Value == b.Value {
			t.Errorf("%s: float32 was not used", name)
		}
		if math.Abs(a.Value-b.Value) > 1e-7*b.Value || math.Abs(a.Low-b.Low) > 1e-4*(b.High-b.Low)+1e-6 {
			t.Errorf("%s: %v [%v] in float32, %v [%v] in float64", name, a.Value, a.Low, b.Value, b.Low)
		}
	}
}

// TestTiedNeighbours checks that two unrelated representations with many equal rows have no more
// nearest neighbours in common than chance gives, which is the null.
func TestTiedNeighbours(t *testing.T) {
	t.Parallel()
	const n, p = 300, 6
	g := rand.New(rand.NewPCG(25, 1))
	mostlyZero := func() *mat.Dense {
		x := normal(g, n, p)
		for _, i := range g.Perm(n)[:n*9/10] {
			x.SetRow(i, make([]float64, p))
		}
		return x
	}
	s := Defaults()
	s.Statistics = []string{MutualKNN}
	score := compared(t, mostlyZero(), mostlyZero(), s)[MutualKNN]
	if math.Abs(score.Value-score.Null) > 0.01 || score.Low > score.Null || score.High < score.Null {
		t.Errorf("%.3f [%.3f, %.3f] of unrelated representations with many ties; the null is %.3f", score.Value, score.Low, score.High, score.Null)
	}
	// The first two warnings are of ties, one for each representation.
	if len(score.Warnings) != 4 || score.Warnings[2] != wideIntervalWarning || !strings.Contains(score.Warnings[0], "nearest neighbours in the first representation") {
		t.Errorf("warnings of many ties: %q", score.Warnings)
	}
	if score = compared(t, normal(g, n, p), normal(g, n, p), s)[MutualKNN]; !slices.Equal(score.Warnings, []string{wideIntervalWarning, measure.SampleSizeWarning(n)}) {
		t.Errorf("warnings without ties: %q", score.Warnings)
	}
}

// TestWithoutIntervalAndNull checks that the settings interval and null leave out both and change
// no value.
func TestWithoutIntervalAndNull(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(6, 6))
	x := normal(g, 60, 4)
	y := product(x, normal(g, 4, 5))
	s := Defaults()
	s.Statistics = Names()
	with := compared(t, x, y, s)
	s.Interval, s.Null = false, false
	without := compared(t, x, y, s)
	for _, name := range Names() {
		a, b := with[name], without[name]
		if math.Abs(a.Value-b.Value) > 1e-9*max(1, math.Abs(a.Value)) || a.N != b.N {
			t.Errorf("%s is %v, and %v without interval and null", name, a.Value, b.Value)
		}
		if math.IsNaN(a.Low) || !math.IsNaN(b.Low) || !math.IsNaN(b.High) || b.Replicates != nil || len(b.Warnings) > len(a.Warnings) {
			t.Errorf("%s: %+v, want no interval", name, b)
		}
		if k := statisticOf(name); (k.compute != nil || k.drawnNull) && !math.IsNaN(b.Null) {
			t.Errorf("%s has the null %v, want none", name, b.Null)
		}
	}
}

// TestWideIntervals checks which statistics warn that their interval is wider than needed: some
// only for few samples, others for any number. geometryOf (see geometry_test.go) returns the scores
// of the measure geometry, which describe one representation.
func TestWideIntervals(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(8, 8))
	s := Defaults()
	s.Statistics = []string{LinearCKA, CCA, PWCCA, GULP, EigenspaceOverlap}
	for n, want := range map[int][]string{
		200:  {CCA, PWCCA, GULP, EigenspaceOverlap, IntrinsicDimension, EffectiveRank, RankMe},
		1000: {CCA, IntrinsicDimension},
	} {
		x := normal(g, n, 4)
		scores := slices.Collect(maps.Values(compared(t, x, product(x, normal(g, 4, 3)), s)))
		z := tensor.New(n, 4)
		for i, v := range x.RawMatrix().Data {
			z.Data[i] = float32(v)
		}
		for _, score := range append(scores, geometryOf(t, z, tensor.Tensor{})...) {
			if got := slices.Contains(score.Warnings, wideIntervalWarning); got != slices.Contains(want, score.Statistic) {
				t.Errorf("%s of %d samples: warnings %q", score.Statistic, n, score.Warnings)
			}
		}
	}
}
