package open

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// chooseSamples applies where, split, shuffle (or stratified) and limit, in this order, and
// computes the factors that the entry names.
func chooseSamples(ctx context.Context, d spec.Data, src dataset.Source, seed uint64) (dataset.Source, error) {
	before, after := splitFactors(d)
	src, err := computeFactors(d, src, before)
	if err != nil {
		return nil, err
	}
	if src, err = selectSamples(ctx, d, src, seed); err != nil {
		return nil, err
	}
	return computeFactors(d, src, after)
}

// splitFactors returns the factors that where needs, and those to compute after it, on fewer
// samples.
func splitFactors(d spec.Data) (before, after []string) {
	for _, name := range d.Factors {
		if _, used := d.Where[name]; used {
			before = append(before, name)
		} else {
			after = append(after, name)
		}
	}
	return before, after
}

func computeFactors(d spec.Data, src dataset.Source, names []string) (dataset.Source, error) {
	src, err := dataset.ComputeFactors(src, names)
	if err != nil {
		return nil, d.At("factors").Errorf("%w", err)
	}
	return src, nil
}

func selectSamples(ctx context.Context, d spec.Data, src dataset.Source, seed uint64) (dataset.Source, error) {
	var err error
	if len(d.Where) > 0 {
		conditions := map[string]dataset.Condition{}
		for factor, w := range d.Where {
			conditions[factor] = w.Condition
		}
		if src, err = dataset.Where(ctx, src, conditions); err != nil {
			return nil, d.At("where").Errorf("where: %w", err)
		}
		if src.Len() == 0 {
			return nil, d.At("where").Errorf("where: no sample meets the conditions")
		}
	}
	if k := d.Split; k != nil {
		// The first part or, if of is given, part k.Part of k.Of equal ones.
		from, to := 0.0, k.Fraction
		if k.Of > 0 {
			from, to = float64(k.Part-1)/float64(k.Of), float64(k.Part)/float64(k.Of)
		}
		labelled := src.Classes() != nil
		if src, err = dataset.Split(ctx, src, from, to, dataset.SplitOptions{Seed: k.Seed, Stratified: labelled}); err != nil {
			return nil, d.At("split").Errorf("%w", err)
		}
	}
	if d.Stratified {
		return dataset.RandomSubset(ctx, src, d.Limit, dataset.SplitOptions{Seed: seed, Stratified: true})
	}
	if d.Shuffle {
		src = dataset.Shuffle(src, seed)
	}
	if d.Limit > 0 {
		src = dataset.Limit(src, d.Limit)
	}
	return src, nil
}
