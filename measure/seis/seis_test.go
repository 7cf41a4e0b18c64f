package seis

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

func TestMain(m *testing.M) {
	b := blas.Load() // tests are to pass with and without a fast library; see blas.Load
	b.SetThreads(1)  // tests run in parallel
	os.Exit(m.Run())
}

// feed gives a measure's accumulator (its running sums) all samples, clean activations z and
// transformed zt, in batches of a size, and returns it. The samples are read in the order of the
// data, so that place (in reading order) and index (in the data) agree.
func feed(t testing.TB, s Settings, site measure.Site, z, zt tensor.Tensor, size int) measure.Accumulator {
	t.Helper()
	a, err := New(s).New(site)
	if err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo < z.Shape[0]; lo += size {
		hi := min(lo+size, z.Shape[0])
		b := &measure.Batch{Clean: z.Slice(lo, hi), Transformed: zt.Slice(lo, hi)}
		for i := lo; i < hi; i++ {
			b.Place, b.Index = append(b.Place, i), append(b.Index, i)
		}
		if err := a.Update(b); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// siteOf returns a site, which is what is measured: a layer with the shape of z, under a
// transformation that is the same for all samples.
func siteOf(axes tensor.Axes, z tensor.Tensor) measure.Site {
	return measure.Site{
		Layer:  tensor.Layer{Name: "conv", Shape: z.Shape[1:], Axes: axes},
		Layout: measure.NewLayout(z.Shape[0]),
		Key:    measure.Key{Seed: 1, Data: "data", Transform: "turn"},
	}
}

// scoresOf returns the scores of activations z and zt, by statistic. It feeds batches of 16
// samples.
func scoresOf(t testing.TB, s Settings, site measure.Site, z, zt tensor.Tensor) map[string]measure.Score {
	t.Helper()
	scores, err := feed(t, s, site, z, zt, 16).Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, v := range scores {
		out[v.Statistic] = v
	}
	return out
}

// near fails the test unless got differs from want by at most the tolerance.
func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, tolerance)
	}
}

// smooth returns b x c feature maps of h x w positions. Each is a sum of eight random waves.
func smooth(seed uint64, b, c, h, w int) tensor.Tensor {
	g := rand.New(rand.NewPCG(seed, 0))
	z := tensor.New(b, c, h, w)
	for m := range b * c {
		plane := z.Data[m*h*w : (m+1)*h*w]
		for range 8 {
			fy, fx, phase := g.NormFloat64(), g.NormFloat64(), g.Float64()*2*math.Pi
			for i := range plane {
				plane[i] += float32(math.Cos(fy*float64(i/w) + fx*float64(i%w) + phase))
			}
		}
	}
	return z
}

// permuted returns z with its positions in another order.
func permuted(z tensor.Tensor, order []int) tensor.Tensor {
	out := tensor.New(z.Shape...)
	d := len(order)
	for i := range out.Data {
		out.Data[i] = z.Data[i/d*d+order[i%d]]
	}
	return out
}

// flipOrder returns the order of h x w positions that mirrors each row.
func flipOrder(h, w int) []int {
	order := make([]int, h*w)
	for i := range order {
		order[i] = i/w*w + w - 1 - i%w
	}
	return order
}

// has reports whether a warning of the score contains part.
func has(s measure.Score, part string) bool {
	return slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, part) })
}

// TestIdentityIsInvariant checks the scores of activations that do not change: all canonical
// correlations are 1, so they tie.
func TestIdentityIsInvariant(t *testing.T) {
	t.Parallel()
	z := smooth(1, 100, 4, 6, 6)
	got := scoresOf(t, Defaults(), siteOf("NCHW", z), z, z)
	near(t, "equivariance", got["equivariance"].Value, 1, 1e-6)
	near(t, "invariance", got["invariance"].Value, 1, 1e-6)
	for _, name := range []string{"equivariance", "invariance"} {
		if s := got[name]; s.Min != 0 || s.Max != 1 { // intervals of means over trials (repetitions) are clipped to it
			t.Errorf("%s ranges from %v to %v, want 0 to 1", name, s.Min, s.Max)
		}
	}
	if !has(got["invariance"], "tie") || has(got["equivariance"], "tie") {
		t.Errorf("warnings %q of invariance and %q of equivariance, want one of ties of the former only", got["invariance"].Warnings, got["equivariance"].Warnings)
	}
}

func TestFlipIsEquivariant(t *testing.T) {
	t.Parallel()
	z := smooth(1, 100, 4, 6, 6)
	got := scoresOf(t, Defaults(), siteOf("NCHW", z), z, permuted(z, flipOrder(6, 6)))
	near(t, "equivariance", got["equivariance"].Value, 1, 1e-6)
	if v := got["invariance"].Value; v > 0.9 {
		t.Errorf("invariance is %v for a flip, want at most 0.9", v)
	}
	if !has(got["invariance"], "tie") {
		t.Errorf("a flip without a warning that correlations tie: %q", got["invariance"].Warnings)
	}
}

// TestEquivarianceIgnoresOrderOfPositions checks that a permutation of the positions of zt alone
// lowers invariance, but not equivariance.
func TestEquivarianceIgnoresOrderOfPositions(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 100, 4, 5, 5), smooth(2, 100, 4, 5, 5)
	for i := range zt.Data {
		zt.Data[i] += 2 * z.Data[i]
	}
	site := siteOf("NCHW", z)
	before := scoresOf(t, Defaults(), site, z, zt)
	after := scoresOf(t, Defaults(), site, z, permuted(zt, rand.New(rand.NewPCG(3, 3)).Perm(25)))
	near(t, "equivariance", after["equivariance"].Value, before["equivariance"].Value, 1e-6)
	if has(before["invariance"], "tie") {
		t.Errorf("canonical correlations that differ have a warning of ties: %q", before["invariance"].Warnings)
	}
	if after["invariance"].Value > 0.8*before["invariance"].Value {
		t.Errorf("invariance is %v after and %v before the positions were shuffled, want at least a fifth less", after["invariance"].Value, before["invariance"].Value)
	}
}

func TestOrderOfChannelsDoesNotMatter(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 60, 4, 5, 5), smooth(2, 60, 4, 5, 5)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	shuffle := func(z tensor.Tensor) tensor.Tensor {
		out := tensor.New(z.Shape...)
		for b := range 60 {
			for c, from := range []int{2, 0, 3, 1} {
				copy(out.At(b).At(c).Data, z.At(b).At(from).Data)
			}
		}
		return out
	}
	s, site := Settings{Variance: 0.99, Positions: 100}, siteOf("NCHW", z)
	before, after := scoresOf(t, s, site, z, zt), scoresOf(t, s, site, shuffle(z), shuffle(zt))
	for _, name := range []string{"equivariance", "invariance", "rank"} {
		near(t, name, after[name].Value, before[name].Value, 1e-6)
	}
}

// TestNullIsScoreOfUnrelatedActivations checks that the scores of unrelated activations are about
// equal to their nulls (scores of shuffled pairs of observations), and to the nulls of activations
// that are related.
func TestNullIsScoreOfUnrelatedActivations(t *testing.T) {
	t.Parallel()
	// NewLayout makes blocks of consecutive samples: of 15 samples of 300, and of 32 samples of
	// 640. An observation is one channel of one sample. Only in blocks of a multiple of four
	// samples do the shuffled pairs form cycles of four observations a to d (z of a with zt of b, b
	// with c, c with d, d with a), for which shuffledPairs.match is not nil.
	for _, n := range []int{300, 640} {
		z, unrelated := smooth(1, n, 4, 5, 5), smooth(2, n, 4, 5, 5)
		site := siteOf("NCHW", z)
		if p := newShuffledPairs(site.Key, 0, site.Layout.Block, 4); (p.match != nil) != (n == 640) {
			t.Fatalf("the pairs of %d samples are in cycles of four: %t, want %t", n, p.match != nil, n == 640)
		}
		chance := scoresOf(t, Defaults(), site, z, unrelated)
		for _, name := range []string{"equivariance", "invariance"} {
			s := chance[name]
			if s.Null != chance["null-"+name].Value {
				t.Errorf("%s: null %v on the score and %v in its own row", name, s.Null, chance["null-"+name].Value)
			}
			near(t, name+" of unrelated activations", s.Value, s.Null, 0.02)
		}
		same := scoresOf(t, Defaults(), site, z, z)
		near(t, "null-equivariance of the identity", same["null-equivariance"].Value, chance["equivariance"].Value, 0.02)
		near(t, "null-invariance of the identity", same["null-invariance"].Value, chance["invariance"].Value, 0.02)
	}
}

// TestNullEqualsThatOfAFullShuffle checks that the null, whose pairs are drawn within blocks, is
// that of a shuffle of all observations, also if the channels of a sample have a common part.
func TestNullEqualsThatOfAFullShuffle(t *testing.T) {
	t.Parallel()
	const n, channels, side = 500, 32, 8
	z, common := smooth(1, n, channels, side, side), smooth(2, n, 1, side, side)
	for i := range n {
		for c := range channels {
			for k, v := range common.At(i).Data {
				z.At(i).Data[c*side*side+k] += 0.5 * v
			}
		}
	}
	s := Defaults()
	s.Interval = false
	null := scoresOf(t, s, siteOf("NCHW", z), z, z)["null-equivariance"].Value
	s.Null = false
	var all float64
	const shuffles = 4
	for i := range shuffles {
		zt := tensor.New(z.Shape...)
		for to, from := range rand.New(rand.NewPCG(uint64(i), 7)).Perm(n * channels) {
			copy(zt.Data[to*side*side:(to+1)*side*side], z.Data[from*side*side:])
		}
		all += scoresOf(t, s, siteOf("NCHW", z), z, zt)["equivariance"].Value / shuffles
	}
	if math.Abs(null/all-1) > 0.1 {
		t.Errorf("the null is %v, and %v over shuffles of all observations", null, all)
	}
}

func TestNonFiniteValueIsReportedWithItsSample(t *testing.T) {
	t.Parallel()
	z := smooth(1, 40, 2, 4, 4)
	for _, view := range []string{"clean", "transformed"} {
		bad := z.Clone()
		bad.Data[17*2*16+5] = float32(math.Inf(-1)) // in sample 17, of 2 channels of 16 positions
		b := &measure.Batch{Clean: z, Transformed: z}
		if view == "clean" {
			b.Clean = bad
		} else {
			b.Transformed = bad
		}
		for i := range 40 {
			b.Place, b.Index = append(b.Place, i), append(b.Index, 1000+i)
		}
		a, err := New(Defaults()).New(siteOf("NCHW", z))
		if err != nil {
			t.Fatal(err)
		}
		err = a.Update(b)
		if e, ok := err.(*measure.NonFinite); !ok || e.View != view || e.Index != 1017 {
			t.Errorf("%s: error %v, want one of that view and index 1017", view, err)
		}
	}
}

func TestSquaresThatOverflowAreAnError(t *testing.T) {
	t.Parallel()
	z := smooth(1, 40, 2, 4, 4)
	for i := range z.Data {
		z.Data[i] *= 1e30
	}
	if _, err := feed(t, Defaults(), siteOf("NCHW", z), z, z, 8).Scores(); err == nil || !strings.Contains(err.Error(), "overflow") {
		t.Errorf("error %v, want one with overflow", err)
	}
}

// TestWarnings checks that every score has the warning. PerSample: the parameter of the
// transformation is drawn for each sample. Groups: parts of the samples, for the jackknife.
func TestWarnings(t *testing.T) {
	t.Parallel()
	z, constant := smooth(1, 60, 2, 4, 4), tensor.New(60, 2, 4, 4)
	small := smooth(1, 3, 1, 4, 4)
	for _, c := range []struct {
		name  string
		z, zt tensor.Tensor
		edit  func(*Settings, *measure.Site)
		want  string
	}{
		{"constant", z, constant, nil, "does not vary"},
		{"per sample", z, z, func(_ *Settings, s *measure.Site) { s.PerSample = true }, "per sample"},
		{"feature map is pooled", z, z, func(s *Settings, _ *measure.Site) { s.Positions = 9 }, "from 4 x 4 to 3 x 3"},
		{"memory bound of 1 byte", z, z, func(_ *Settings, s *measure.Site) { s.Budget = 1 }, "need 1 MiB, more than the memory bound"},
		{"few observations", small, small, nil, "by chance"},
		{"one jackknife group", z, z, func(_ *Settings, s *measure.Site) { s.Layout = measure.Layout{N: 60, Block: 60, Groups: 1} }, "too few samples"},
		{"one sample", z.Slice(0, 1), z.Slice(0, 1), nil, "no null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, site := Defaults(), siteOf("NCHW", c.z)
			if c.edit != nil {
				c.edit(&s, &site)
			}
			for name, score := range scoresOf(t, s, site, c.z, c.zt) {
				if !has(score, c.want) {
					t.Errorf("%s: warnings %q, want one with %q", name, score.Warnings, c.want)
				}
			}
		})
	}
}

func TestAConstantLayerHasNoScores(t *testing.T) {
	t.Parallel()
	z := tensor.New(60, 2, 4, 4)
	got := scoresOf(t, Defaults(), siteOf("NCHW", z), z, z)
	// Equivariance, invariance, their nulls, and the rank.
	if len(got) != 5 || got["rank"].Value != 0 {
		t.Fatalf("%d scores %+v, want 5 with rank 0", len(got), got)
	}
	for name, s := range got {
		if name != "rank" && !math.IsNaN(s.Value) {
			t.Errorf("%s is %v, want NaN", name, s.Value)
		}
	}
}

// TestALayerOfLowRank checks scores where only two of sixteen positions vary, so that the scatter
// matrix is singular and the rank is 2.
func TestALayerOfLowRank(t *testing.T) {
	t.Parallel()
	z := smooth(1, 60, 2, 4, 4)
	for i := range z.Data {
		if i%16 != 3 && i%16 != 9 {
			z.Data[i] = 7
		}
	}
	s := Defaults()
	s.Variance = 1
	got := scoresOf(t, s, siteOf("NCHW", z), z, z)
	near(t, "rank", got["rank"].Value, 2, 0)
	near(t, "invariance", got["invariance"].Value, 1, 1e-6)
}

// TestSkip checks which layers are skipped, by their axes: N batch, C channels, D, H and W
// positions in space, T tokens or time, ? unknown. Shapes leave out the batch.
func TestSkip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axes  tensor.Axes
		shape []int
		why   string
	}{
		{"NCHW", []int{3, 4, 4}, ""},
		{"NHWC", []int{4, 4, 3}, ""},
		{"NTC", []int{17, 8}, ""},
		{"NCT", []int{8, 17}, ""},
		{"NC", []int{10}, "no positions"},
		{"NCHW", []int{512, 1, 1}, "single position"},
		{"NTC", []int{2, 8}, "single position"}, // a class token and one other
		{"NCHW", nil, "not known"},
		{"NCHW", []int{3, 0, 4}, "not known"},
		{"N???", []int{3, 4, 4}, "not known"},
		{"NCDHW", []int{3, 4, 4, 4}, "NCDHW"},
	} {
		site := measure.Site{Layer: tensor.Layer{Name: "l", Axes: c.axes, Shape: c.shape}, Layout: measure.NewLayout(100)}
		why := New(Defaults()).Skip(site)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s %v: %q, want %q", c.axes, c.shape, why, c.why)
		}
		if _, err := New(Defaults()).New(site); (err == nil) != (c.why == "") {
			t.Errorf("%s %v: New returns the error %v, want one only if the layer is skipped", c.axes, c.shape, err)
		}
	}
}

func TestBadSettingsAreErrors(t *testing.T) {
	t.Parallel()
	z := smooth(1, 40, 2, 4, 4)
	for _, s := range []Settings{{Variance: 0, Positions: 9}, {Variance: 1.5, Positions: 9}, {Variance: math.NaN(), Positions: 9}, {Variance: 0.9, Positions: 1}} {
		if _, err := New(s).New(siteOf("NCHW", z)); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}
