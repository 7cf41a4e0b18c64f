package seis

import (
	"testing"

	"github.com/noether-ml/noether/measure"
)

// Replicates move the subspaces only where they end. Against computing everything anew without each group, on a layer
// of real pictures, that changes the width of an interval by less than a third.
func TestReplicatesMatchTheExactOnes(t *testing.T) {
	t.Parallel()
	z, zt := pictures(t, 600)
	s := Settings{Variance: 0.99, Positions: 12 * 12, Interval: true}
	site := siteOf("NCHW", z)
	scores := scoresOf(t, s, site, z, zt)
	exact := map[string][]measure.Replicate{}
	for group := range maxGroups {
		a, err := New(Settings{Variance: s.Variance, Positions: s.Positions}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for p := range z.Shape[0] {
			if groupOf(p, maxGroups, site.Layout) == group {
				left++
			} else if err := a.Update(&measure.Batch{Place: []int{p}, Index: []int{p}, Clean: z.Slice(p, p+1), Moved: zt.Slice(p, p+1)}); err != nil {
				t.Fatal(err)
			}
		}
		without, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range without {
			exact[v.Statistic] = append(exact[v.Statistic], measure.Replicate{Value: v.Value, Left: left * z.Shape[1]})
		}
	}
	for _, name := range []string{"equivariance", "invariance"} {
		got := scores[name]
		if len(got.Replicates) != maxGroups {
			t.Fatalf("%d replicates", len(got.Replicates))
		}
		for i, r := range got.Replicates {
			near(t, name+" of a replicate", r.Value, exact[name][i].Value, 0.005)
			if r.Left != exact[name][i].Left {
				t.Errorf("%d observations left out, want %d", r.Left, exact[name][i].Left)
			}
		}
		low, high := measure.Jackknife(got.Value, got.N, exact[name])
		ratio := (got.High - got.Low) / (high - low)
		t.Logf("%s %.4f: %.4f to %.4f, exactly %.4f to %.4f", name, got.Value, got.Low, got.High, low, high)
		if !(ratio > 0.67 && ratio < 1.5) {
			t.Errorf("the interval of %s is %.2f times as wide as the exact one", name, ratio)
		}
	}
}

// The interval covers what other samples give, most of the time: of 20 sets of samples, the intervals of at least 14
// hold the score of all.
func TestIntervalsCover(t *testing.T) {
	t.Parallel()
	const sets, n = 20, 200
	pool, poolt := smooth(1, sets*n, 2, 4, 4), smooth(2, sets*n, 2, 4, 4)
	for i := range poolt.Data {
		poolt.Data[i] += pool.Data[i]
	}
	s := Settings{Variance: 0.95, Positions: 100, Interval: true}
	whole := scoresOf(t, s, siteOf("NCHW", pool), pool, poolt)
	for _, name := range []string{"equivariance", "invariance"} {
		covered := 0
		for i := range sets {
			z, zt := pool.Slice(i*n, (i+1)*n), poolt.Slice(i*n, (i+1)*n)
			got := scoresOf(t, s, siteOf("NCHW", z), z, zt)[name]
			if got.Low <= whole[name].Value && whole[name].Value <= got.High {
				covered++
			}
		}
		if covered < 14 {
			t.Errorf("%d of %d intervals of %s hold the score of all samples", covered, sets, name)
		}
	}
}

// Ties are told by their number, so that rounding, which is amplified where a pattern has little variance, does not
// hide them.
func TestAFlipOfRealMapsIsFoundToTie(t *testing.T) {
	t.Parallel()
	z, _ := pictures(t, 200)
	got := scoresOf(t, Settings{Variance: 0.99, Positions: 32 * 32}, siteOf("NCHW", z), z, moved(z, flipped(32, 32)))
	near(t, "equivariance", got["equivariance"].Value, 1, 1e-4)
	if !has(got["invariance"], "tie") {
		t.Errorf("warnings %q", got["invariance"].Warnings)
	}
}
