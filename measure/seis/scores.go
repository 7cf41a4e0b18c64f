package seis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Warnings; correlations are canonical, clean with transformed. Patterns are principal components
// over positions.
const (
	warnPerSample = "the transformation is drawn per sample: SEIS assumes one linear map for all (per: trial)"
	warnTies      = "canonical correlations tie: invariance depends on the solver"
	warnConstant  = "the layer does not vary over these samples: nothing to correlate"
	warnFew       = "fewer observations than patterns: correlations are 1 by chance, compare the null"
	warnNoNull    = "no null: no sample has another to be paired with"
	warnNoMemory  = "no interval: its groups of samples need %d MiB, more than the memory bound"
	warnNoGroups  = "no interval: too few samples for eight groups"
	warnSingular  = "no interval: half of the samples do not span the layer's patterns"
)

func (a *accumulator) Scores() ([]measure.Score, error) {
	defer a.measure.scorers.begin()()
	a, err := a.withPending()
	if err != nil {
		return nil, err
	}
	if a.total.N < 2 {
		return nil, measure.ErrTooFew
	}
	clean, v, err := a.subspaces() // v: the principal subspace of the transformed feature maps
	if err != nil {
		return nil, err
	}
	u := clean.space // that of the clean ones; K is the dimension of a subspace
	t := table{n: a.total.N, rank: min(u.K, v.K), warnings: a.warnings()}
	if t.rank == 0 {
		nan := math.NaN()
		t.warnings = append(t.warnings, warnConstant)
		t.scores, t.null = result{nan, nan, false}, result{nan, nan, false} // false: no ties
		return t.rows(a.null != nil), nil
	}
	if t.n <= u.K+v.K {
		t.warnings = append(t.warnings, warnFew)
	}
	d := a.maps.positions() // observations are 2 d values: d clean ones, then d transformed ones
	f := newBases(clean, v)
	c := f.coordinates(a.total.Between(0, d, 2*d))
	if t.scores, err = resultOf(c.leading()); err != nil {
		return nil, fmt.Errorf("seis: %w", err)
	}
	if err := a.nullScores(f, &t); err != nil {
		return nil, fmt.Errorf("seis, null: %w", err)
	}
	if a.groups.len() > 0 {
		if err := a.interval(c, &t); errors.Is(err, errSingular) {
			t.warnings = append(t.warnings, warnSingular)
		} else if err != nil {
			return nil, err
		}
	}
	return t.rows(a.null != nil), nil
}

// warnings returns those that concern all statistics.
func (a *accumulator) warnings() []string {
	var w []string
	if a.poolingWarning != "" {
		w = append(w, a.poolingWarning)
	}
	if a.site.PerSample {
		w = append(w, warnPerSample)
	}
	if a.measure.settings.Interval && a.groups.len() == 0 {
		if intervalGroups(a.site.Layout) == 0 {
			w = append(w, warnNoGroups)
		} else {
			need := a.measure.memory(a.site, a.maps)
			w = append(w, fmt.Sprintf(warnNoMemory, need.all()>>20+1))
		}
	}
	return w
}

func formatGrid(grid []int) string {
	if len(grid) == 1 {
		return fmt.Sprint(grid[0])
	}
	return fmt.Sprintf("%d x %d", grid[0], grid[1])
}

func (a *accumulator) nullScores(f *bases, t *table) (err error) {
	switch {
	case a.null == nil:
	case a.null.N == 0:
		t.warnings = append(t.warnings, warnNoNull)
		t.null = result{math.NaN(), math.NaN(), false}
	default:
		// A sample alone in its part is in no shuffled pair, so the sums are scaled up.
		t.null, err = resultOf(f.shuffled(a.null.Data, float64(a.total.N)/float64(a.null.N)))
	}
	return err
}

type table struct {
	n, rank      int          // number of observations, and of canonical correlations
	scores, null result       // of the pairs (x and T(x) of a sample), and of shuffled pairs
	replicates   []replicate  // scores of halves of the samples; empty: there is no interval
	shifts       [2][]float64 // for both scores: corrections of the replicates (resample.RankSpread.Shifts)
	warnings     []string
}

// null asks for the statistics of shuffled pairs.
func (t table) rows(null bool) []measure.Score {
	nan := math.NaN()
	equivariance := t.row("equivariance", t.shifts[0], func(r result) float64 { return r.equivariance })
	invariance := t.row("invariance", t.shifts[1], func(r result) float64 { return r.invariance })
	if t.scores.ties {
		invariance.Warnings = append(invariance.Warnings[:len(t.warnings):len(t.warnings)], warnTies)
	}
	rank := measure.Plain("rank", float64(t.rank), t.n)
	rank.Warnings = t.warnings
	out := []measure.Score{equivariance, invariance, rank}
	if !null {
		out[0].Null, out[1].Null = nan, nan
		return t.warnSampleSize(out)
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"null-equivariance", t.null.equivariance}, {"null-invariance", t.null.invariance}} {
		row := measure.Plain(s.name, s.value, t.n)
		row.Warnings = t.warnings
		out = append(out, row)
	}
	return t.warnSampleSize(out)
}

// warnSampleSize warns of scores of few observations for each pattern.
func (t table) warnSampleSize(all []measure.Score) []measure.Score {
	if t.n >= manyObservations*t.rank {
		return all
	}
	for i := range all {
		all[i].Warnings = append(slices.Clip(all[i].Warnings), measure.SampleSizeWarning(t.n))
	}
	return all
}

// manyObservations is the number of observations of a pattern from which on scores hardly depend on
// it: those of twice as many differ by less than 0.02 in docs/explanation/intervals-and-nulls.md.
const manyObservations = 100

func (t table) row(statistic string, shifts []float64, score func(result) float64) measure.Score {
	s := measure.Plain(statistic, score(t.scores), t.n)
	s.Null, s.Warnings = score(t.null), t.warnings
	s.Min, s.Max = 0, 1
	for i, r := range t.replicates {
		s.Replicates = append(s.Replicates, measure.Replicate{Value: score(r.result) + shifts[i], Left: r.left})
	}
	// Scale the deviations of the few halves from their mean, so that the interval is wide enough.
	resample.WidenHalves(s.Replicates)
	s.Low, s.High = resample.Jackknife(s.Value, s.N, s.Replicates)
	s.Low, s.High = max(s.Low, s.Min), min(s.High, s.Max) // NaN stays NaN
	return s
}
