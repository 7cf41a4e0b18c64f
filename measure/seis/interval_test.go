package seis

import (
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// TestReplicatesAreScoresOfHalves checks that the replicates, from which an interval is computed,
// are the scores of the half-samples if all singular vectors are kept (Variance 1). A half-sample
// is four of eight groups of samples (resample.HalfSamples). groupOf returns the group of the
// sample at a place, its position in the order of reading. smooth(seed, samples, channels, rows,
// columns) returns random feature maps, and scoresOf the scores of activations (see seis_test.go).
func TestReplicatesAreScoresOfHalves(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 200, 3, 4, 4), smooth(2, 200, 3, 4, 4)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	s, site := Settings{Variance: 1, Positions: 100, Interval: true}, siteOf("NCHW", z)
	scores := scoresOf(t, s, site, z, zt)
	wantReplicates := map[string][]measure.Replicate{}
	for half := range resample.HalfSamples {
		a, err := New(Settings{Variance: 1, Positions: 100}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		left := 0 // samples that are left out; an observation is one channel of one sample
		for p := range z.Shape[0] {
			if !resample.InHalf(half, groupOf(p, maxGroups, site.Layout)) {
				left++
			} else if err := a.Update(&measure.Batch{Place: []int{p}, Index: []int{p}, Clean: z.Slice(p, p+1), Transformed: zt.Slice(p, p+1)}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want[:2] { // equivariance and invariance
			wantReplicates[w.Statistic] = append(wantReplicates[w.Statistic], measure.Replicate{Value: w.Value, Left: left * z.Shape[1]})
		}
	}
	for name, want := range wantReplicates {
		resample.WidenHalves(want)
		if n := len(scores[name].Replicates); n != len(want) {
			t.Fatalf("%s has %d replicates, want %d", name, n, len(want))
		}
		for i, r := range scores[name].Replicates {
			near(t, name+" of a half", r.Value, want[i].Value, 1e-4)
			if r.Left != want[i].Left {
				t.Errorf("%d observations left out, want %d", r.Left, want[i].Left)
			}
		}
	}
}

// TestIntervalWidths checks that intervals have the width that follows from the standard deviation
// of the scores of 40 sample sets, and contain the mean of these scores. The rank is the number of
// leading singular vectors that a score uses. In the first case it is small and differs between
// sample sets; in the second, many canonical correlations are nearly equal, so that their vectors
// change with the samples.
func TestIntervalWidths(t *testing.T) {
	t.Parallel()
	const sets = 40
	for _, c := range []struct{ n, channels, side int }{{100, 4, 4}, {60, 4, 9}} {
		values, widths, bounds := map[string][]float64{}, map[string]float64{}, map[string][][2]float64{}
		for i := range sets {
			z, zt := smooth(uint64(2*i), c.n, c.channels, c.side, c.side), smooth(uint64(2*i+1), c.n, c.channels, c.side, c.side)
			for j := range zt.Data {
				zt.Data[j] += z.Data[j]
			}
			got := scoresOf(t, Settings{Variance: 0.98, Positions: 100, Interval: true}, siteOf("NCHW", z), z, zt)
			for _, name := range []string{"equivariance", "invariance"} {
				s := got[name]
				values[name] = append(values[name], s.Value)
				widths[name] += (s.High - s.Low) / 2 / sets
				bounds[name] = append(bounds[name], [2]float64{s.Low, s.High})
			}
		}
		for name, v := range values {
			mean, sd := stat.MeanStdDev(v, nil)
			covered := 0
			for _, b := range bounds[name] {
				if b[0] <= mean && mean <= b[1] {
					covered++
				}
			}
			ratio := widths[name] / (2.447 * sd) // 2.447: 97.5 % quantile of Student's t with 6 degrees of freedom, for seven half-samples
			t.Logf("%d x %d, %s: %.4f +- %.4f, intervals %.2f times as wide, %d of %d contain the mean", c.side, c.side, name, mean, sd, ratio, covered, sets)
			if !(ratio > 0.6 && ratio < 1.4) || covered < 34 {
				t.Errorf("%d x %d: intervals of %s are %.2f times as wide as they should be, want 0.6 to 1.4, and %d of %d contain the mean, want 34 or more", c.side, c.side, name, ratio, covered, sets)
			}
		}
	}
}

// TestTiesOfFlippedImages checks that a flip of real images, whose canonical correlations are all
// 1, gives the warning of ties (equal correlations). Rounding, amplified in directions of little
// variance, makes some of the correlations differ, so the warning is given if more than one in
// twenty tie.
func TestTiesOfFlippedImages(t *testing.T) {
	t.Parallel()
	z, _ := images(t, 200)
	got := scoresOf(t, Settings{Variance: 0.99, Positions: 32 * 32}, siteOf("NCHW", z), z, permuted(z, flipOrder(32, 32)))
	near(t, "equivariance", got["equivariance"].Value, 1, 1e-4)
	if !has(got["invariance"], "tie") {
		t.Errorf("warnings %q, want one of ties", got["invariance"].Warnings)
	}
}
