package spec

import (
	"context"

	"github.com/noether-ml/noether/dataset"
)

// chooseSamples selects the samples of an entry of a study file's data by its keys where, split,
// shuffle (or stratified) and limit, in this order, and computes the factors, properties of
// samples, that the key factors names.
func (d Data) chooseSamples(ctx context.Context, src dataset.Source, seed uint64) (dataset.Source, error) {
	before, after := d.splitFactors()
	src, err := d.computeFactors(src, before)
	if err != nil {
		return nil, err
	}
	if src, err = d.selectSamples(ctx, src, seed); err != nil {
		return nil, err
	}
	return d.computeFactors(src, after)
}

// splitFactors returns the factors to compute before the selection, because the key where uses
// them, and those to compute after it, on fewer samples.
func (d Data) splitFactors() (before, after []string) {
	for _, name := range d.Factors {
		if _, used := d.Where[name]; used {
			before = append(before, name)
		} else {
			after = append(after, name)
		}
	}
	return before, after
}

func (d Data) computeFactors(src dataset.Source, names []string) (dataset.Source, error) {
	src, err := dataset.ComputeFactors(src, names)
	if err != nil {
		return nil, d.node.Get("factors").Errorf("%w", err)
	}
	return src, nil
}

// selectSamples applies the keys where, split, stratified, shuffle and limit.
func (d Data) selectSamples(ctx context.Context, src dataset.Source, seed uint64) (dataset.Source, error) {
	var err error
	if len(d.Where) > 0 {
		if src, err = dataset.Where(ctx, src, d.conditions()); err != nil {
			return nil, d.node.Get("where").Errorf("where: %w", err)
		}
		if src.Len() == 0 {
			return nil, d.node.Get("where").Errorf("where: no sample meets the conditions")
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
			return nil, d.node.Get("split").Errorf("%w", err)
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

func (d Data) conditions() map[string]dataset.Condition {
	out := map[string]dataset.Condition{}
	for factor, w := range d.Where {
		out[factor] = w.Condition
	}
	return out
}
