package seis

import (
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure"
)

// Any two groups are in a set together as often as ten sets allow, and all groups and sets have five.
func TestHalvesAreBalanced(t *testing.T) {
	t.Parallel()
	at := func(set, group int) int {
		if halves[set][group] == '+' {
			return 1
		}
		return -1
	}
	for i := range maxGroups {
		row, column, others := 0, 0, 0
		for j := range maxGroups {
			row += at(i, j)
			column += at(j, i)
			together := 0
			for k := range maxGroups {
				together += at(k, i) * at(k, j)
			}
			if i != j && (together < -2 || together > 2) {
				t.Errorf("groups %d and %d are together %d times more than apart", i, j, together)
			}
			if i != j {
				others += together
			}
		}
		if row != 0 || column != 0 || others != -maxGroups {
			t.Errorf("set and group %d: %d and %d more than half, and %d with the others", i, row, column, others)
		}
	}
}

// Where the subspaces are the whole space, replicates are the scores of halves of the samples.
func TestReplicatesAreScoresOfHalves(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 200, 3, 4, 4), smooth(2, 200, 3, 4, 4)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	s, site := Settings{Variance: 1, Positions: 100, Interval: true}, siteOf("NCHW", z)
	scores := scoresOf(t, s, site, z, zt)
	exact := map[string][]measure.Replicate{}
	for set := range halves {
		a, err := New(Settings{Variance: 1, Positions: 100}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for p := range z.Shape[0] {
			if halves[set][groupOf(p, maxGroups, site.Layout)] != '+' {
				left++
			} else if err := a.Update(&measure.Batch{Place: []int{p}, Index: []int{p}, Clean: z.Slice(p, p+1), Moved: zt.Slice(p, p+1)}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want[:2] {
			exact[w.Statistic] = append(exact[w.Statistic], measure.Replicate{Value: w.Value, Left: left * z.Shape[1]})
		}
	}
	for name, want := range exact {
		widen(want)
		for i, r := range scores[name].Replicates {
			near(t, name+" of a half", r.Value, want[i].Value, 1e-4)
			if r.Left != want[i].Left {
				t.Errorf("%d observations left out, want %d", r.Left, want[i].Left)
			}
		}
	}
}

// Intervals are as wide as scores of fresh samples spread, and hold the mean of these: where ranks are few and jump, and where canonical
// correlations are so many that their vectors mix.
func TestIntervalsAreAsWideAsTheyShouldBe(t *testing.T) {
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
			ratio := widths[name] / (2.262 * sd)
			t.Logf("%d x %d, %s: %.4f +- %.4f, %.2f times as wide, %d of %d hold it", c.side, c.side, name, mean, sd, ratio, covered, sets)
			if !(ratio > 0.6 && ratio < 1.4) || covered < 34 {
				t.Errorf("%d x %d: intervals of %s are %.2f times as wide as they should be, and %d of %d hold the mean", c.side, c.side, name, ratio, covered, sets)
			}
		}
	}
}

// Ties are told by their number, so that rounding, which is amplified where a pattern has little variance, does not
// hide them.
func TestAFlipOfRealMapsIsFoundToTie(t *testing.T) {
	t.Parallel()
	z, _ := images(t, 200)
	got := scoresOf(t, Settings{Variance: 0.99, Positions: 32 * 32}, siteOf("NCHW", z), z, moved(z, flipped(32, 32)))
	near(t, "equivariance", got["equivariance"].Value, 1, 1e-4)
	if !has(got["invariance"], "tie") {
		t.Errorf("warnings %q", got["invariance"].Warnings)
	}
}
