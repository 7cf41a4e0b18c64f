package probe

import (
	"fmt"
	"math"
	"strconv"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/transform"
)

// A view is one way of moving every sample; the zero view leaves them as they are.
type view struct {
	id   string
	move func(dataset.Sample) transform.Op
}

// drawn moves each sample by one draw of the transformation. Of a list of values each sample gets one.
func (r *run) drawn() view {
	j := r.job
	return view{id: r.viewID("drawn"), move: func(s dataset.Sample) transform.Op { return j.Transform.Draw(j.Key, r.value(s.Index), s.Index) }}
}

// fixed moves each sample by one value of a list.
func (r *run) fixed(value int) view {
	j := r.job
	return view{id: r.viewID(fmt.Sprintf("value %d", value)), move: func(s dataset.Sample) transform.Op { return j.Transform.Draw(j.Key, value, s.Index) }}
}

func (r *run) viewID(what string) string {
	t, k := r.job.Transform, r.job.Key
	return fmt.Sprintf("%s %v %d %q %q %d %s", t.Identity, t.PerTrial, k.Seed, k.Data, k.Transform, k.Trial, what)
}

// value is the index of the value that the sample of an index is moved by.
func (r *run) value(index int) int {
	n := len(r.job.Transform.Values)
	if n == 1 {
		return 0
	}
	k := r.job.Key
	return seed.Rand(k.Seed, "probe: value", k.Data, k.Transform, k.Trial, index).IntN(n)
}

// parameters are the numbers that describe the draws of all samples, brought to [0, 1] over their range.
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

// ranged reports whether a number with a range describes the draws.
func ranged(t *procedure.Transform) bool { return t.Range != nil && t.Range.Low < t.Range.High }

// listed reports whether the transformation has a list of values.
func listed(t *procedure.Transform) bool { return len(t.Values) > 1 }

// A stretch is some samples whose draws are alike: of one value, or of a part of the range.
type stretch struct {
	parameter string // as in scores: the value, or the middle of the part; "" where there is neither
	in        func(i int) bool
}

// stretches divides samples by the value that they were drawn, or by parts of the range of so many.
func (r *run) stretches(parts int) []stretch {
	t := r.job.Transform
	var out []stretch
	switch {
	case listed(t):
		for v, value := range t.Values {
			out = append(out, stretch{value.Parameter, func(i int) bool { return r.value(r.samples.Index[i]) == v }})
		}
	case ranged(t):
		share := r.parameters()
		for k := range parts {
			low, high := float64(k)/float64(parts), float64(k+1)/float64(parts)
			middle := t.Range.Low + (low+high)/2*(t.Range.High-t.Range.Low)
			out = append(out, stretch{strconv.FormatFloat(rounded(middle), 'g', -1, 64),
				func(i int) bool { return share[i] >= low && (share[i] < high || k == parts-1) }})
		}
	default:
		out = append(out, stretch{"", func(int) bool { return true }})
	}
	return out
}

// rounded drops what is beyond nine digits: 0.15000000000000002 is no name.
func rounded(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
	if err != nil {
		return v
	}
	return out
}
