package firing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Names of statistics. A unit fires at an input if its activation, times its sign, reaches its
// threshold.
const (
	statInvariance = "invariance"  // L / G
	statLocal      = "local-rate"  // L: how often a unit fires on the trajectories of its references
	statGlobal     = "global-rate" // G: how often it fires on all inputs
	statSelective  = "selective"   // fraction of the units that do not fire at every input
	// The others are Settings.Also; see variances for the first four.
	statTransformational = "transformational-variance" // standard deviation over a trajectory
	statSample           = "sample-variance"           // standard deviation over samples
	statNormalised       = "normalised-variance"       // the ratio of these two
	statSame             = "same-equivariance"         // that ratio for maps transformed back
	// L / G of all samples, at thresholds from a normal distribution
	statNormal      = "goodfellow-normal"
	statInformation = "mutual-information" // of firing and the class
)

func (r *run) scores() []measure.PairScore {
	var out []measure.PairScore
	for layer, f := range r.results {
		var all []measure.Score
		for kind, t := range r.trajectories {
			for _, s := range r.firingScores(f, kind) {
				s.Factor = t.factor
				all = append(all, s)
			}
		}
		all = append(all, r.additionalScores(layer, f)...)
		for _, s := range all {
			out = append(out, measure.PairScore{A: layer, B: layer, Score: s})
		}
	}
	return out
}

func (r *run) unitScores(f *layerResult, kind int) []unitScore {
	out := make([]unitScore, f.units.count())
	images := r.referenceCount() * len(r.trajectories[kind].amounts)
	for u := range out {
		out[u] = f.score(u, kind, len(r.readable), images)
	}
	return out
}

// referenceCount returns what the settings ask for, or all inputs with complete trajectories if
// fewer.
func (r *run) referenceCount() int {
	n := 0
	for _, place := range r.readable { // a place is a position in the random order of the samples
		if n < r.references && eligible(r.trajectories, place) {
			n++
		}
	}
	return n
}

// firingScores returns invariance, local rate, global rate and the fraction of selective units. The
// first three are means over the fraction Settings.Top with the highest invariance.
func (r *run) firingScores(f *layerResult, kind int) []measure.Score {
	units := r.unitScores(f, kind)
	n := len(units)
	column := func(field func(v unitScore) float64) []float64 {
		out := make([]float64, n)
		for i, v := range units {
			out[i] = field(v)
		}
		return out
	}
	constant, rare := 0, 0
	for _, v := range units {
		switch {
		case v.rare:
			rare++
		case v.always:
			constant++
		}
	}
	best := ranking(column(func(v unitScore) float64 { return v.score }))
	top := best[:topCount(n, r.settings.Top)]
	meanOfTop := func(statistic string, field func(v unitScore) float64, high float64) measure.Score {
		s := measure.Plain(statistic, meanOver(column(field), top), n)
		s.Max = high
		return s
	}
	// L / G is at most 1 / G. If no values tie with the threshold, that is N / k: N inputs, of
	// which a unit fires at the k = r.rank that activate it most.
	s := meanOfTop(statInvariance, func(v unitScore) float64 { return v.score }, max(float64(len(r.readable))/float64(r.rank), 1/slices.Min(column(func(v unitScore) float64 { return v.global }))))
	s.Low, s.High = r.interval(f, column(func(v unitScore) float64 { return v.score }), best, s.Value)
	s.High = min(s.High, s.Max)
	s.Null = NetworkScore(column(func(v unitScore) float64 { return v.null }), r.settings.Top)
	out := []measure.Score{
		s,
		meanOfTop(statLocal, func(v unitScore) float64 { return v.local }, 1),
		meanOfTop(statGlobal, func(v unitScore) float64 { return v.global }, 1),
	}
	if references := r.referenceCount(); references > r.rank && constant+rare < n {
		warning := fmt.Sprintf("%d references, but a unit fires at about %d of %d inputs: its other references are below its threshold; set references: %d, or take more inputs", references, r.rank, len(r.readable), r.rank)
		out[0].Warnings, out[1].Warnings = append(out[0].Warnings, warning), append(out[1].Warnings, warning)
	}
	selective := measure.Plain(statSelective, 1-float64(constant+rare)/float64(n), n)
	selective.Max = 1
	out = warnConstant(out, constant, rare, n, r.settings.Rate)
	switch channels := f.units.channels; {
	case math.IsNaN(out[0].Value):
	case math.IsNaN(s.Low):
		out[0].Warnings = append(out[0].Warnings, noInterval)
	case fewUnits(channels, len(top)):
		out[0].Warnings = append(out[0].Warnings, fmt.Sprintf(narrowInterval, channels, len(top)))
	}
	return append(out, selective)
}

// fewChannels is the number of channels, and of best units, below which intervals have a warning.
const fewChannels = measure.MaxGroups

const (
	noInterval     = "no interval: the best units are of one channel, or of one group of channels"
	narrowInterval = "the interval may be too narrow: it is over the units of %d channels, of which %d count, and not over samples"
)

// fewUnits reports whether an interval over channels has a warning.
func fewUnits(channels, top int) bool { return channels < fewChannels || top < fewChannels }

// warnConstant warns of units that fire at every input: constant ones, and rare ones, which exceed
// their smallest value at less than rate. If all n fire at every input, scores become NaN.
func warnConstant(scores []measure.Score, constant, rare, n int, rate float64) []measure.Score {
	var warnings []string
	if constant == n {
		warnings = append(warnings, fmt.Sprintf("all %d units are constant on these inputs and never selective", n))
	} else if constant > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d units are constant on these inputs and never selective: they fire at every input, with a score of 1", constant, n))
	}
	if rare > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d units exceed their smallest value at fewer than %v of the inputs: that value is their threshold, so they fire at every input, with a score of 1", rare, n, rate))
	}
	for i := range scores {
		if constant+rare == n {
			scores[i].Value, scores[i].Low, scores[i].High, scores[i].Null = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		}
		scores[i].Warnings = append(scores[i].Warnings, warnings...)
	}
	return scores
}

// ranking returns indices by descending value; it is stable.
func ranking(v []float64) []int {
	order := dataset.Indices(len(v))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order
}

func meanOver(v []float64, at []int) float64 {
	var sum float64
	for _, i := range at {
		sum += v[i]
	}
	return sum / float64(len(at))
}

// interval returns the interval of full, the mean of v over the top units. best is in descending
// order of v. The jackknife leaves out groups of channels, since units of one channel are not
// independent. Only groups with top units change the mean, so their number gives the degrees of
// freedom; of one group there is no interval.
func (r *run) interval(f *layerResult, v []float64, best []int, full float64) (low, high float64) {
	groups := min(measure.MaxGroups, f.units.channels)
	if groups < 2 {
		return math.NaN(), math.NaN()
	}
	group := make([]int, len(v)) // of each unit
	size := make([]int, groups)  // units of each group
	for u := range v {
		channel, _, _ := f.units.coordinates(u)
		group[u] = channel % groups
		size[group[u]]++
	}
	informative := map[int]bool{} // groups with top units
	for _, u := range best[:topCount(len(v), r.settings.Top)] {
		informative[group[u]] = true
	}
	if len(informative) < 2 {
		return math.NaN(), math.NaN()
	}
	var left []measure.Replicate
	for g := range groups {
		count := topCount(len(v)-size[g], r.settings.Top)
		var sum float64
		n := 0
		for _, u := range best {
			if n == count {
				break
			}
			if group[u] != g {
				sum += v[u]
				n++
			}
		}
		left = append(left, measure.Replicate{Value: sum / float64(n), Left: size[g]})
	}
	low, high = resample.Jackknife(full, len(v), left)
	half := resample.Refer((high-low)/2, float64(groups-1), float64(len(informative)-1))
	return max(full-half, 0), full + half
}

func (r *run) additionalScores(layer int, f *layerResult) []measure.Score {
	var out []measure.Score
	for _, name := range additionalNames {
		if v := f.additional[name]; v != nil {
			out = append(out, meanOfUnits(name, v))
		}
	}
	if r.settings.also(SameEquivariance) && f.additional[statSame] == nil && r.trajectories[0].tmeasures {
		s := measure.Plain(statSame, math.NaN(), 0)
		s.Warnings = []string{"the transformation has no inverse for feature maps"}
		if !hasFeatureMaps(r.job.A.Layers[layer].Axes) {
			s.Warnings = []string{"the layer has no feature maps"}
		}
		out = append(out, s)
	}
	if f.information[0] != nil {
		out = append(out, r.informationScore(f))
	}
	return out
}

func meanOfUnits(statistic string, v []float64) measure.Score {
	var sum float64
	n := 0
	for _, x := range v {
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	s := measure.Plain(statistic, sum/float64(n), n)
	s.Max = math.Inf(1)
	if n < len(v) {
		why := "their values depend on the transformation only"
		if statistic == statNormal {
			why = "they exceed the normal threshold on transformed samples, but on no sample itself (G = 0)"
		}
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d of %d units are left out: %s", len(v)-n, len(v), why))
	}
	return s
}

// informationScore is a mean over the best units, NaN for fewer than two classes.
func (r *run) informationScore(f *layerResult) measure.Score {
	if math.IsNaN(f.information[0][0]) {
		s := measure.Plain(statInformation, math.NaN(), 0)
		s.Warnings = []string{"the inputs have fewer than two classes: check their labels and `classes` of the data"}
		return s
	}
	units := r.unitScores(f, 0)
	value, null := make([]float64, len(units)), make([]float64, len(units))
	for u, v := range units {
		value[u], null[u] = f.information[v.side][u], f.informationNull[v.side][u]
	}
	s := measure.Plain(statInformation, NetworkScore(value, r.settings.Top), len(value))
	s.Null = NetworkScore(null, r.settings.Top)
	s.Max = math.Ln2 // in nats: a unit fires or does not
	s.Low, s.High = r.interval(f, value, ranking(value), s.Value)
	return s
}

func (r *run) table(layer, kind, lo, hi int) []measure.UnitScore {
	f := r.results[layer]
	out := make([]measure.UnitScore, hi-lo)
	images := r.referenceCount() * len(r.trajectories[kind].amounts)
	additional := func(name string, u int) float64 {
		if v := f.additional[name]; v != nil {
			return v[u]
		}
		return math.NaN()
	}
	for i := range out {
		u := lo + i
		v := f.score(u, kind, len(r.readable), images)
		sign := int(signs[v.side])
		row := measure.UnitScore{
			Layer: layer, Factor: r.trajectories[kind].factor, Unit: u, Sign: sign, Threshold: float64(signs[v.side] * f.q[v.side][u]),
			Global: v.global, Local: v.local, Score: v.score, Null: v.null, Selective: !v.always, Strongest: int(f.strongest[v.side][u]),
			TransformationalVariance: additional(statTransformational, u), SampleVariance: additional(statSample, u), NormalisedVariance: additional(statNormalised, u),
			SameEquivariance: additional(statSame, u), GoodfellowNormal: additional(statNormal, u), MutualInformation: math.NaN(),
		}
		row.Channel, row.Row, row.Column = f.units.coordinates(u)
		if f.information[v.side] != nil {
			row.MutualInformation = f.information[v.side][u]
		}
		out[i] = row
	}
	return out
}

// bestUnits returns the units whose tuning curves are recorded: the best that do not fire at every
// input.
func (r *run) bestUnits(layer, kind int) []int {
	units := r.unitScores(r.results[layer], kind)
	values := make([]float64, len(units))
	for i, v := range units {
		values[i] = v.score
	}
	order := slices.DeleteFunc(ranking(values), func(u int) bool { return units[u].always })
	return order[:min(len(order), r.settings.Curves)]
}
