package similarity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Options are the options of Compare.
type Options struct {
	Settings
	Memory int64     // bytes that may be held, apart from the sources; 0: 1 GiB
	Seed   uint64    // of the order of the samples and of the shuffles
	Names  [2]string // what errors call x and y; empty: X and Y
}

// defaultMemory is Options.Memory where none is given, in bytes.
const defaultMemory = 1 << 30

// Compare returns scores of x: n x p and y: n x q, in the order of Names. Jackknife groups and
// shuffles are random, so rows may be in any common order.
func Compare(ctx context.Context, x, y Source, o Options) ([]measure.Score, error) {
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	n, err := o.check(x, y)
	if err != nil {
		return nil, err
	}
	found, warnings := estimates{}, map[input]string{}
	size := dimensionsOf(x, y)
	used := map[input]int{}
	for _, in := range []input{momentInput, pairwiseInput, minibatchInput} {
		selected := o.selected(in)
		if len(selected) == 0 {
			continue
		}
		used[in] = o.maxSamples(in, size)
		if used[in] < n {
			warnings[in] = fmt.Sprintf("computed on a random %d of %d samples: n x n values of all do not fit the memory bound", used[in], n)
			if in == pairwiseInput {
				warnings[in] = fmt.Sprintf("computed on a random %d of %d samples, the bound for statistics of n x n values", used[in], n)
			}
		}
		r := o.calculator(selected, x, y)
		r.null = o.Null
		if o.Interval || in == minibatchInput { // minibatches lie within groups
			r.cuts = cutEvenly(used[in], o.groups(used[in], size))
		}
		if err := r.compute(ctx, x, y, shuffled(o.Seed, n, used[in]), o.names(), selected, found); err != nil {
			return nil, err
		}
	}
	var out []measure.Score
	for _, k := range o.selected() {
		e := found[k.name]
		if w := warnings[k.input]; w != "" {
			e.warnings = append(e.warnings, w)
		}
		out = append(out, e.scores(k.name, used[k.input], o.Settings)...)
	}
	return out, nil
}

// Value returns one statistic without interval and null, NaN with an error that says why if
// undefined.
func Value(ctx context.Context, name string, x, y Source, s Settings) (float64, error) {
	s.Statistics = []string{name}
	o := Options{Settings: s}
	n, err := o.check(x, y)
	if err != nil {
		return math.NaN(), err
	}
	selected, found := o.selected(), estimates{}
	if err := o.calculator(selected, x, y).compute(ctx, x, y, identityOrder(n), o.names(), selected, found); err != nil {
		return math.NaN(), err
	}
	e := found[name]
	if math.IsNaN(e.value) && len(e.warnings) > 0 {
		return e.value, fmt.Errorf("%s: %s", name, e.warnings[0])
	}
	return e.value, nil
}

func (o Options) names() [2]string {
	if o.Names == [2]string{} {
		return [2]string{"X", "Y"}
	}
	return o.Names
}

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
	for _, k := range o.selected() {
		if n < k.minSamples {
			return 0, fmt.Errorf("%d samples are too few: %s needs %d", n, k.name, k.minSamples)
		}
		if k.neighbours && o.Neighbours > n-1 {
			return 0, fmt.Errorf("%s: %d samples have at most %d neighbours, not %d", k.name, n, n-1, o.Neighbours)
		}
	}
	return n, nil
}

// dimensions are the numbers of samples and of the variables of x and y.
type dimensions struct{ n, p, q int }

func dimensionsOf(x, y Source) dimensions {
	n, p := x.Dims()
	_, q := y.Dims()
	return dimensions{n, p, q}
}

func (s dimensions) moments() int64 {
	p, q := int64(s.p), int64(s.q)
	return p*p/2 + q*q/2 + p*q
}

// maxSamples returns how many samples a kind of input takes: moments, n x n pairs, or minibatches.
func (o Options) maxSamples(in input, s dimensions) int {
	bound := int(math.Sqrt(float64(o.Memory) / 32)) // two Gram matrices take half of the memory
	switch {
	case in == pairwiseInput:
		return min(s.n, o.Samples)
	case in == minibatchInput, max(s.p, s.q) < s.n-1 && 8*s.moments() <= o.Memory/2:
		return s.n
	}
	return min(s.n, max(o.Samples, bound))
}

// groups returns the number of jackknife groups, 0 for none, of five samples or more, with moments
// in a third of the memory.
func (o Options) groups(n int, s dimensions) int {
	g := min(measure.MaxGroups, n/5)
	if max(s.p, s.q) < n-1 {
		g = min(g, int(o.Memory/3/(4*s.moments())))
	}
	if g < fewestGroups {
		return 0
	}
	return g
}

// fewestGroups: with fewer, an interval's width would vary too much.
const fewestGroups = 4

// calculator has neither interval nor null, and products in float64 if a statistic needs that or
// float32 saves no time.
func (o Options) calculator(selected []statistic, x, y Source) *calculator {
	s := dimensionsOf(x, y)
	r := &calculator{settings: o.Settings, seed: o.Seed, onePair: true, float64: float64(s.n)*float64(s.p)*float64(s.q) < 1e7}
	for _, k := range selected {
		r.float64 = r.float64 || k.float64
		r.debiased = r.debiased || k.name == DebiasedCKA
	}
	return r
}

// cutEvenly returns where each group of n samples begins, and then n; nil for no groups.
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

// compute adds the estimates of statistics of one kind of input to out; order lists the rows that
// are samples.
func (r *calculator) compute(ctx context.Context, x, y Source, order []int, names [2]string, selected []statistic, out estimates) error {
	var a, b *centredSample
	err := inParallel(func() (err error) {
		a, err = newCentredSample(ctx, names[0], x, order)
		return err
	}, func() (err error) {
		b, err = newCentredSample(ctx, names[1], y, order)
		return err
	})
	if err != nil {
		return err
	}
	switch selected[0].input {
	case momentInput:
		return r.fromMoments(ctx, r.newRepresentation(a), r.newRepresentation(b), selected, out)
	case pairwiseInput:
		return r.fromPairs(ctx, r.newRepresentation(a), r.newRepresentation(b), selected, out)
	}
	const batchSize = 32 // as the blocks (consecutive samples) of a study
	out[MinibatchCKA], err = minibatchCKA(ctx, a, b, batchSize, r.cuts)
	return err
}

// wideIntervalWarning is the warning of statistics whose intervals were measured to be too wide:
// see docs/explanation/intervals-and-nulls.md. They have fewer than wideBelow samples.
const wideIntervalWarning = "the interval is wider than needed: it contains the expected value in more than 98 % of cases"

// dependsOnSampleSize reports whether the expected value of a statistic changes with the number of
// samples: canonical correlations of a limited number of samples are too high, distances grow with
// it, and neighbours come nearer.
func dependsOnSampleSize(name string) bool {
	if slices.Contains([]string{CCA, SVCCA, PWCCA, Procrustes, LinearRegression}, name) {
		return true
	}
	return slices.ContainsFunc(knownStatistics(), func(k statistic) bool { return k.name == name && (k.exponent != 0 || k.neighbours) })
}

// scores returns an estimate as a score of n samples, and with Settings.Calibrate as a calibrated
// one too.
func (e estimate) scores(name string, n int, s Settings) []measure.Score {
	raw := e.score(name, n, s.Interval)
	if !s.Calibrate {
		return []measure.Score{raw}
	}
	return []measure.Score{raw, calibrated(raw, e.drawn)}
}

// score returns an estimate as a score of n samples, without interval and replicates if interval is
// false, even those of minibatch CKA.
func (e estimate) score(name string, n int, interval bool) measure.Score {
	s := e.scoreOf(name, n, interval)
	if dependsOnSampleSize(name) && !math.IsNaN(e.value) {
		s.Warnings = append(slices.Clip(s.Warnings), measure.SampleSizeWarning(n))
	}
	return s
}

func (e estimate) scoreOf(name string, n int, interval bool) measure.Score {
	s := measure.Plain(name, e.value, n)
	d, ok := Descriptor().Statistic(name)
	if !ok {
		d, _ = GeometryDescriptor().Statistic(name)
	}
	s.Null, s.Min, s.Max, s.Warnings = e.null, d.Range.Low, d.Range.High, e.warnings
	if !interval {
		return s
	}
	s.Replicates = e.replicates
	low, high := resample.Jackknife(e.value, n, e.replicates)
	if !math.IsNaN(low) {
		s.Low, s.High = max(low, s.Min), min(high, s.Max)
		if slices.ContainsFunc(knownStatistics(), func(k statistic) bool { return k.name == name && n < k.wideBelow }) {
			s.Warnings = append(s.Warnings, wideIntervalWarning)
		}
	} else if !math.IsNaN(e.value) && e.replicates == nil && !math.IsNaN(e.null) {
		s.Warnings = append(s.Warnings, "no interval: too few samples, or too little memory, for groups to leave out")
	}
	return s
}
