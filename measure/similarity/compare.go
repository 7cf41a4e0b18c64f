package similarity

import (
	"context"
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Options are those of Compare.
type Options struct {
	Settings
	Memory int64     // bytes that may be held, apart from the sources; 0: 1 GiB
	Seed   uint64    // of the order of the samples and of the shuffles
	Names  [2]string // what errors call the two; empty: X and Y
}

// defaultMemory is where Options give none.
const defaultMemory = 1 << 30

// Compare returns the scores of two representations of the same n inputs, x: n x p and y: n x q, each with an interval and a null.
// The statistics come in the order of Names. Groups for the interval and partners for the null are drawn at random, so rows may
// come in any order.
func Compare(ctx context.Context, x, y Source, o Options) ([]measure.Score, error) {
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	n, err := o.check(x, y)
	if err != nil {
		return nil, err
	}
	found, warnings := estimates{}, map[form]string{}
	sizes := sizesOf(x, y)
	used := map[form]int{}
	for _, f := range []form{ofMoments, ofPairs, ofMinibatch} {
		wanted := o.wanted(f)
		if len(wanted) == 0 {
			continue
		}
		used[f] = n
		if most := o.most(f, sizes); most < n {
			used[f] = most
			warnings[f] = fmt.Sprintf("computed on a random %d of %d samples: n x n values of all do not fit the memory bound", most, n)
			if f == ofPairs {
				warnings[f] = fmt.Sprintf("computed on a random %d of %d samples, the bound for statistics of n x n values", most, n)
			}
		}
		if err := o.compute(ctx, x, y, shuffled(o.Seed, n, used[f]), wanted, found); err != nil {
			return nil, err
		}
	}
	return o.scores(found, used, warnings), nil
}

// Value returns one statistic alone, without interval and null.
func Value(ctx context.Context, statistic string, x, y Source, s Settings) (float64, error) {
	s.Statistics = []string{statistic}
	o := Options{Settings: s}
	n, err := o.check(x, y)
	if err != nil {
		return math.NaN(), err
	}
	k, _ := kindOf(statistic)
	r := o.run([]kind{k}, x, y)
	found := estimates{}
	if err := r.compute(ctx, x, y, inOrder(n), o.names(), []kind{k}, found); err != nil {
		return math.NaN(), err
	}
	e := found[statistic]
	if math.IsNaN(e.value) && len(e.warnings) > 0 {
		return e.value, fmt.Errorf("%s: %s", statistic, e.warnings[0])
	}
	return e.value, nil
}

func (o Options) names() [2]string {
	if o.Names == [2]string{} {
		return [2]string{"X", "Y"}
	}
	return o.Names
}

// check holds settings and sources against each other and returns the number of samples.
func (o Options) check(x, y Source) (int, error) {
	if err := o.Settings.check(); err != nil {
		return 0, err
	}
	n, _ := x.Dims()
	m, _ := y.Dims()
	names := o.names()
	if n != m {
		return 0, fmt.Errorf("%s has %d rows and %s %d: row i of both must be the same input", names[0], n, names[1], m)
	}
	for _, k := range o.wanted(ofMoments, ofPairs, ofMinibatch) {
		if n < k.least {
			return 0, fmt.Errorf("%d samples are too few: %s needs %d", n, k.name, k.least)
		}
		if k.name == MutualKNN && o.Neighbours > n-1 {
			return 0, fmt.Errorf("%s: %d samples have at most %d neighbours, not %d", k.name, n, n-1, o.Neighbours)
		}
	}
	return n, nil
}

// extent is the size of a comparison.
type extent struct{ n, p, q int }

func sizesOf(x, y Source) extent {
	n, p := x.Dims()
	_, q := y.Dims()
	return extent{n, p, q}
}

// moments is the number of values in the moments of the pair.
func (s extent) moments() int64 {
	p, q := int64(s.p), int64(s.q)
	return p*p/2 + q*q/2 + p*q
}

// most is how many samples a statistic of a form can be computed on.
func (o Options) most(f form, s extent) int {
	room := int(math.Sqrt(float64(o.Memory) / 32)) // two Gram matrices take half of the memory
	switch {
	case f == ofPairs:
		return min(s.n, o.Samples)
	case f == ofMinibatch, max(s.p, s.q) < s.n-1 && 8*s.moments() <= o.Memory/2:
		return s.n
	}
	return min(s.n, max(o.Samples, room))
}

// groups is the number of groups for a jackknife of n samples: of five samples at least, and as many as fit a third of the memory
// in float32.
func (o Options) groups(n int, s extent) int {
	g := min(measure.MaxGroups, n/5)
	if max(s.p, s.q) < n-1 {
		g = min(g, int(o.Memory/3/(4*s.moments())))
	}
	if g < fewestGroups {
		return 0
	}
	return g
}

// fewestGroups is the number of groups below which there is no interval: its width would be little more than chance.
const fewestGroups = 4

// run fits a run to the statistics.
func (o Options) run(wanted []kind, x, y Source) *run {
	s := sizesOf(x, y)
	r := &run{settings: o.Settings, seed: o.Seed, once: true, wide: float64(s.n)*float64(s.p)*float64(s.q) < 1e7}
	for _, k := range wanted {
		r.wide = r.wide || k.wide
		r.debiased = r.debiased || k.name == DebiasedCKA
	}
	return r
}

// compute adds estimates with interval and null, of the samples in the order given.
func (o Options) compute(ctx context.Context, x, y Source, order []int, wanted []kind, out estimates) error {
	r := o.run(wanted, x, y)
	r.null = true
	r.cuts = cutEvenly(len(order), o.groups(len(order), sizesOf(x, y)))
	return r.compute(ctx, x, y, order, o.names(), wanted, out)
}

// cutEvenly cuts n places into groups; nil for none.
func cutEvenly(n, groups int) []int {
	if groups == 0 {
		return nil
	}
	cuts := make([]int, groups+1)
	for g := range cuts {
		cuts[g] = g * n / groups
	}
	return cuts
}

func (r *run) compute(ctx context.Context, x, y Source, order []int, names [2]string, wanted []kind, out estimates) error {
	var a, b *sample
	err := both(func() (err error) {
		a, err = newSample(ctx, names[0], x, order)
		return err
	}, func() (err error) {
		b, err = newSample(ctx, names[1], y, order)
		return err
	})
	if err != nil {
		return err
	}
	switch wanted[0].form {
	case ofMoments:
		return r.fromMoments(ctx, r.newRepresentation(a), r.newRepresentation(b), wanted, out)
	case ofPairs:
		return r.fromPairs(ctx, r.newRepresentation(a), r.newRepresentation(b), wanted, out)
	}
	e, err := batches(ctx, a, b, arrayBatch, r.cuts)
	out[MinibatchCKA] = e
	return err
}

// arrayBatch is the size of a minibatch of arrays, that of the blocks of a study.
const arrayBatch = 32

// scores lays the estimates out in the order of Names.
func (o Options) scores(found estimates, used map[form]int, warnings map[form]string) []measure.Score {
	var out []measure.Score
	for _, k := range kinds() {
		e, ok := found[k.name]
		if !ok {
			continue
		}
		if w := warnings[k.form]; w != "" {
			e.warnings = append(e.warnings, w)
		}
		out = append(out, e.score(k, used[k.form]))
	}
	return out
}

// score is the estimate as a score of n samples.
func (e estimate) score(k kind, n int) measure.Score {
	s := measure.Plain(k.name, e.value, n)
	s.Null, s.Min, s.Max, s.Warnings = e.null, k.min, k.max, e.warnings
	s.Replicates = e.replicates
	low, high := resample.Jackknife(e.value, n, e.replicates)
	if !math.IsNaN(low) {
		s.Low, s.High = max(low, k.min), min(high, k.max)
	} else if !math.IsNaN(e.value) && e.replicates == nil && !math.IsNaN(e.null) {
		s.Warnings = append(s.Warnings, "no interval: too few samples, or too little memory, for groups to leave out")
	}
	return s
}
