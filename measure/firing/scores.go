package firing

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Names of statistics.
const (
	statInvariance       = "invariance"
	statLocal            = "local-rate"
	statGlobal           = "global-rate"
	statSelective        = "selective"
	statTransformational = "transformational-variance"
	statSample           = "sample-variance"
	statNormalised       = "normalised-variance"
	statSame             = "same-equivariance"
	statNormal           = "goodfellow-normal"
	statInformation      = "mutual-information"
)

// scores sums up the units of every layer.
func (r *run) scores() []measure.PairScore {
	var out []measure.PairScore
	for layer, f := range r.found {
		var all []measure.Score
		for p, path := range r.paths {
			for _, s := range r.firingScores(f, p) {
				s.Factor = path.factor
				all = append(all, s)
			}
		}
		all = append(all, r.alsoScores(layer, f)...)
		for _, s := range all {
			out = append(out, measure.PairScore{A: layer, B: layer, Score: s})
		}
	}
	return out
}

// verdicts are those of all units of a layer along a path.
func (r *run) verdicts(f *found, path int) []verdict {
	out := make([]verdict, f.units.count())
	images := r.followed() * len(r.paths[path].amounts)
	for u := range out {
		out[u] = f.judge(u, path, len(r.readable), images)
	}
	return out
}

// followed is how many references each unit has.
func (r *run) followed() int {
	n := 0
	for _, place := range r.readable {
		if n < r.references && eligible(r.paths, place) {
			n++
		}
	}
	return n
}

func (r *run) firingScores(f *found, path int) []measure.Score {
	units := r.verdicts(f, path)
	n := len(units)
	by := func(of func(v verdict) float64) []float64 {
		out := make([]float64, n)
		for i, v := range units {
			out[i] = of(v)
		}
		return out
	}
	constant := 0
	for _, v := range units {
		if v.constant {
			constant++
		}
	}
	best := ranking(by(func(v verdict) float64 { return v.score }))
	top := best[:share(n, r.settings.Top)]
	over := func(statistic string, of func(v verdict) float64, high float64) measure.Score {
		s := measure.Plain(statistic, meanOver(by(of), top), n)
		s.Max = high
		return s
	}
	s := over(statInvariance, func(v verdict) float64 { return v.score }, max(float64(len(r.readable))/float64(r.rank), 1/slices.Min(by(func(v verdict) float64 { return v.global }))))
	s.Low, s.High = r.interval(f, by(func(v verdict) float64 { return v.score }), best, s.Value)
	s.High = min(s.High, s.Max)
	s.Null = Network(by(func(v verdict) float64 { return v.null }), r.settings.Top)
	out := []measure.Score{
		s,
		over(statLocal, func(v verdict) float64 { return v.local }, 1),
		over(statGlobal, func(v verdict) float64 { return v.global }, 1),
	}
	selective := measure.Plain(statSelective, 1-float64(constant)/float64(n), n)
	selective.Max = 1
	return append(constantUnits(out, constant, n), selective)
}

// constantUnits warns of units that fire always. Where no unit is selective there is nothing to score.
func constantUnits(scores []measure.Score, constant, n int) []measure.Score {
	if constant == 0 {
		return scores
	}
	warning := fmt.Sprintf("%d of %d units are constant on these inputs and never selective: they fire always, with a score of 1", constant, n)
	if constant == n {
		warning = fmt.Sprintf("all %d units are constant on these inputs and never selective", n)
	}
	for i := range scores {
		if constant == n {
			scores[i].Value, scores[i].Low, scores[i].High, scores[i].Null = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		}
		scores[i].Warnings = append(scores[i].Warnings, warning)
	}
	return scores
}

// ranking lists units by value, the highest first; of equal ones the first.
func ranking(v []float64) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return v[order[a]] > v[order[b]] })
	return order
}

func meanOver(v []float64, at []int) float64 {
	var sum float64
	for _, i := range at {
		sum += v[i]
	}
	return sum / float64(len(at))
}

// interval is that of the mean over the top units, by a jackknife over groups of channels: what as many other channels would give. Units of one
// channel at different places are too much alike to count as several.
func (r *run) interval(f *found, v []float64, best []int, full float64) (low, high float64) {
	groups := min(measure.MaxGroups, f.units.channels)
	if groups < 2 {
		return math.NaN(), math.NaN()
	}
	of := make([]int, len(v))
	size := make([]int, groups)
	for u := range v {
		channel, _, _ := f.units.place(u)
		of[u] = channel % groups
		size[of[u]]++
	}
	var left []measure.Replicate
	for g := range groups {
		want := share(len(v)-size[g], r.settings.Top)
		var sum float64
		n := 0
		for _, u := range best {
			if n == want {
				break
			}
			if of[u] != g {
				sum += v[u]
				n++
			}
		}
		left = append(left, measure.Replicate{Value: sum / float64(n), Left: size[g]})
	}
	low, high = resample.Jackknife(full, len(v), left)
	return max(low, 0), high
}

// alsoScores are the means over units of what Settings.Also names.
func (r *run) alsoScores(layer int, f *found) []measure.Score {
	var out []measure.Score
	for _, name := range []string{statTransformational, statSample, statNormalised, statSame, statNormal} {
		if v := f.also[name]; v != nil {
			out = append(out, meanOfUnits(name, v))
		}
	}
	if r.settings.also(SameEquivariance) && f.also[statSame] == nil && r.paths[0].matrix {
		s := measure.Plain(statSame, math.NaN(), 0)
		s.Warnings = []string{"the transformation has no inverse that feature maps could be moved back by"}
		if !movable(r.job.A.Layers[layer].Axes) {
			s.Warnings = []string{"the layer has no feature maps that could be moved back"}
		}
		out = append(out, s)
	}
	if f.info[0] != nil {
		out = append(out, r.informationScore(f))
	}
	return out
}

// meanOfUnits is the mean over units, without those at which the quantity is infinite.
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
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d of %d units are left out: nothing but the transformation moves them", len(v)-n, len(v)))
	}
	return s
}

// informationScore is the mean over the top share of units by their information about the class. Without two classes there is none to have.
func (r *run) informationScore(f *found) measure.Score {
	if math.IsNaN(f.info[0][0]) {
		s := measure.Plain(statInformation, math.NaN(), 0)
		s.Warnings = []string{"the inputs are not of two classes or more that firing could tell of: look at their labels, and at `classes` of the data"}
		return s
	}
	verdicts := r.verdicts(f, 0)
	value, null := make([]float64, len(verdicts)), make([]float64, len(verdicts))
	for u, v := range verdicts {
		value[u], null[u] = f.info[v.side][u], f.infoNull[v.side][u]
	}
	s := measure.Plain(statInformation, Network(value, r.settings.Top), len(value))
	s.Null = Network(null, r.settings.Top)
	s.Max = math.Ln2
	s.Low, s.High = r.interval(f, value, ranking(value), s.Value)
	return s
}

// table is what was found of units of a layer along a path.
func (r *run) table(layer, path, lo, hi int) []measure.UnitScore {
	f := r.found[layer]
	out := make([]measure.UnitScore, hi-lo)
	images := r.followed() * len(r.paths[path].amounts)
	also := func(name string, u int) float64 {
		if v := f.also[name]; v != nil {
			return v[u]
		}
		return math.NaN()
	}
	for i := range out {
		u := lo + i
		v := f.judge(u, path, len(r.readable), images)
		sign := int(signs[v.side])
		row := measure.UnitScore{
			Layer: layer, Factor: r.paths[path].factor, Unit: u, Sign: sign, Threshold: float64(signs[v.side] * f.q[v.side][u]),
			Global: v.global, Local: v.local, Score: v.score, Null: v.null, Selective: !v.constant, Strongest: int(f.best[v.side][u]),
			TransformationalVariance: also(statTransformational, u), SampleVariance: also(statSample, u), NormalisedVariance: also(statNormalised, u),
			SameEquivariance: also(statSame, u), GoodfellowNormal: also(statNormal, u), MutualInformation: math.NaN(),
		}
		row.Channel, row.Row, row.Column = f.units.place(u)
		if f.info[v.side] != nil {
			row.MutualInformation = f.info[v.side][u]
		}
		out[i] = row
	}
	return out
}

// chosen are the units of a layer whose curves along a path are kept: the best selective ones.
func (r *run) chosen(layer, path int) []int {
	verdicts := r.verdicts(r.found[layer], path)
	values := make([]float64, len(verdicts))
	for i, v := range verdicts {
		values[i] = v.score
	}
	order := slices.DeleteFunc(ranking(values), func(u int) bool { return verdicts[u].constant })
	return order[:min(len(order), r.settings.Curves)]
}
