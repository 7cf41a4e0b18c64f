package similarity

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// subsets returns x and y at positions, y at shuffle unless nil. x's positions determine folds.
func (r *calculator) subsets(ctx context.Context, x, y *representation, at, shuffle []int) *subsetPair {
	v := &subsetPair{ctx: ctx, settings: r.settings, x: &subset{of: x, at: at}, y: &subset{of: y, at: at}, place: at, seed: r.seed}
	if shuffle != nil {
		v.y.at = shuffle
	}
	return v
}

// A resampling is a statistic with its estimate under way.
type resampling struct {
	statistic
	estimate
	cost float64 // multiplications, roughly, to compute it once
}

// resampled computes statistics with statistic.compute into out; the null is the mean over
// shuffles. All share the Gram matrices and axes of a choice of samples.
func (r *calculator) resampled(ctx context.Context, selected []statistic, x, y *representation, out estimates) error {
	var work []*resampling
	whole := r.subsets(ctx, x, y, identityOrder(x.n), nil)
	for _, k := range selected {
		// With columns, n x p and p x q values are in memory; maxPoints take 1 GiB.
		if k.columns && max(x.n*x.p, x.n*y.p, x.p*y.p) > maxPoints {
			out[k.name] = undefinedEstimate(fmt.Sprintf("%d samples of %d and %d variables are too many for %s: set pool: mean, or a smaller limit", x.n, x.p, y.p, k.name))
			continue
		}
		value, err := whole.evaluate(k)
		if err != nil {
			return err
		}
		e := estimate{value: value, null: math.NaN(), warnings: whole.warnings}
		switch {
		case !math.IsNaN(value) && !math.IsInf(value, 0):
			work = append(work, &resampling{k, e, k.cost(float64(x.n), float64(x.p), float64(y.p))})
		case len(e.warnings) == 0:
			e = undefinedEstimate("the values are beyond the range of " + k.name + ": multiply the matrix by a constant")
		}
		out[k.name] = e
	}
	if err := r.replicates(ctx, work, x, y); err != nil {
		return err
	}
	if err := r.shuffledPairs(ctx, work, x, y); err != nil {
		return err
	}
	for _, w := range work {
		out[w.name] = w.estimate
	}
	return nil
}

// evaluate leaves the statistic's warnings in v.warnings.
func (v *subsetPair) evaluate(k statistic) (float64, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	v.warnings = nil
	if !k.neighbours {
		v.near = nil // n x n values that only the statistics of neighbours use
	}
	value, err := k.compute(v)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.name, err)
	}
	v.x.grams[raw], v.y.grams[raw] = nil, nil // not centred: few statistics need them, and they are n x n
	return value, nil
}

// replicates scales values to n samples if they grow with a power of it (exponent). Of more than
// ten groups, expensive statistics leave out two at a time.
func (r *calculator) replicates(ctx context.Context, work []*resampling, x, y *representation) error {
	pairs := func(w *resampling) bool { return len(r.cuts) > 11 && 20*w.cost > manyMultiplications }
	for _, inPairs := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(work), func(w *resampling) bool { return pairs(w) != inPairs })
		if len(some) == 0 || len(r.cuts) == 0 {
			continue
		}
		cuts := r.cuts
		if inPairs {
			cuts = everySecond(cuts)
		}
		for g := range len(cuts) - 1 {
			left := cuts[g+1] - cuts[g]
			v := r.subsets(ctx, x, y, slices.Delete(identityOrder(x.n), cuts[g], cuts[g+1]), nil)
			for _, w := range some {
				if v.n() < w.minSamples || w.neighbours && r.settings.Neighbours > v.n()-1 {
					continue
				}
				value, err := v.evaluate(w.statistic)
				if err != nil {
					return err
				}
				value *= math.Pow(float64(x.n)/float64(v.n()), w.exponent)
				w.estimate.replicates = append(w.estimate.replicates, replicate(value, left))
			}
		}
	}
	return nil
}

// everySecond returns the cuts of groups of twice the size.
func everySecond(cuts []int) []int {
	var out []int
	for i := 0; i < len(cuts)-1; i += 2 {
		out = append(out, cuts[i])
	}
	return append(out, cuts[len(cuts)-1])
}

// shuffledPairs sets the nulls: 0 by statistic.zeroNull, else the mean over one to ten shuffles (40
// if calibrated);
// unpaired ones stay NaN.
func (r *calculator) shuffledPairs(ctx context.Context, work []*resampling, x, y *representation) error {
	if !r.null {
		return nil
	}
	draws := func(w *resampling) int {
		if w.unpaired || w.zeroNull != nil && w.zeroNull(r.settings) {
			return 0
		}
		return int(min(float64(r.settings.shuffles()), max(1, manyMultiplications/10/w.cost)))
	}
	most := 0
	nulls := make([][]float64, len(work)) // of each statistic, over shuffles
	for _, w := range work {
		most = max(most, draws(w))
		if !w.unpaired {
			w.null = 0
		}
	}
	g := r.generator()
	for d := range most {
		v := r.subsets(ctx, x, y, identityOrder(x.n), g.Perm(x.n))
		for i, w := range work {
			if d >= draws(w) {
				continue
			}
			value, err := v.evaluate(w.statistic)
			if err != nil {
				return err
			}
			nulls[i] = append(nulls[i], value)
		}
	}
	for i, w := range work {
		if len(nulls[i]) > 0 {
			w.setNull(nulls[i])
		}
	}
	return nil
}

// manyMultiplications: if twenty replicates take more, they leave out two groups at a time.
// Shuffles take at most a tenth, but there is one.
const manyMultiplications = 4e10
