package probe

import (
	"fmt"
	"math"
	"strconv"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/transform"
)

// The zero sampleTransform leaves samples unchanged.
type sampleTransform struct {
	id    string                            // identifies the transformed representations among those that are stored
	op    func(dataset.Sample) transform.Op // the transformation of a sample; nil: none
	pairs bool                              // the data hold each sample clean (not transformed) and transformed: take the transformed one
}

// randomTransform draws once per sample, from a list one of its values. With ReadyPairs the data
// hold x and T(x). The job's Key seeds the draws.
func (r *run) randomTransform() sampleTransform {
	j := r.job
	if j.Transform == procedure.ReadyPairs {
		return sampleTransform{id: r.transformID("pairs"), pairs: true}
	}
	return sampleTransform{id: r.transformID("drawn"), op: func(s dataset.Sample) transform.Op { return j.Transform.Draw(j.Key, r.value(s.Index), s.Index) }}
}

func (r *run) valueTransform(value int) sampleTransform {
	j := r.job
	return sampleTransform{id: r.transformID(fmt.Sprintf("value %d", value)), op: func(s dataset.Sample) transform.Op { return j.Transform.Draw(j.Key, value, s.Index) }}
}

// transformID returns the id of a sampleTransform. choice states how it chooses among the values.
// PerTrial: the transformation is drawn once for a trial, not for each sample.
func (r *run) transformID(choice string) string {
	t, k := r.job.Transform, r.job.Key
	return fmt.Sprintf("%s %v %d %q %q %d %s", t.Identity, t.PerTrial, k.Seed, k.Data, k.Transform, k.Trial, choice)
}

// value returns the index of the listed value that is drawn for the sample.
func (r *run) value(index int) int {
	n := len(r.job.Transform.Values)
	if n == 1 {
		return 0
	}
	k := r.job.Key
	return seed.Rand(k.Seed, "probe: value", k.Data, k.Transform, k.Trial, index).IntN(n)
}

// parameters scales parameters to [0, 1]; NaN without one. There must be a range (see ranged).
func (r *run) parameters() []float64 {
	j := r.job
	width := j.Transform.Range.High - j.Transform.Range.Low
	out := make([]float64, r.samples.Len())
	for i, index := range r.samples.Index {
		p, ok := transform.Parameter(j.Transform.Draw(j.Key, r.value(index), index))
		if out[i] = (p - j.Transform.Range.Low) / width; !ok {
			out[i] = math.NaN()
		}
	}
	return out
}

func ranged(t *procedure.Transform) bool { return t.Range != nil && t.Range.Low < t.Range.High }

func listed(t *procedure.Transform) bool { return len(t.Values) > 1 }

// A parameterBin has one value of the transformation, or one part of its range.
type parameterBin struct {
	// parameter is a column of the scores: the value, the midpoint of the part, or "".
	parameter string
	contains  func(i int) bool // whether sample i is in the bin
}

func (r *run) parameterBins(parts int) []parameterBin {
	t := r.job.Transform
	var out []parameterBin
	switch {
	case listed(t):
		for v, value := range t.Values {
			out = append(out, parameterBin{value.Parameter, func(i int) bool { return r.value(r.samples.Index[i]) == v }})
		}
	case ranged(t):
		fraction := r.parameters()
		for k := range parts {
			low, high := float64(k)/float64(parts), float64(k+1)/float64(parts)
			midpoint := t.Range.Low + (low+high)/2*(t.Range.High-t.Range.Low)
			out = append(out, parameterBin{strconv.FormatFloat(round(midpoint), 'g', -1, 64),
				func(i int) bool { return fraction[i] >= low && (fraction[i] < high || k == parts-1) }})
		}
	default:
		out = append(out, parameterBin{"", func(int) bool { return true }})
	}
	return out
}

// round rounds to nine significant digits, so that 0.15000000000000002 becomes 0.15.
func round(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
	if err != nil {
		return v
	}
	return out
}
