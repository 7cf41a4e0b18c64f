package probe

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

func rmse(predicted, want []float64) float64 {
	var sum float64
	for i, p := range predicted {
		sum += (p - want[i]) * (p - want[i])
	}
	return math.Sqrt(sum / float64(len(want)))
}

// r2 returns 1 - sum (y - p)^2 / sum (y - mean y)^2 for predictions p and values y; NaN if y is
// constant.
func r2(predicted, want []float64) float64 {
	mean := stat.Mean(want, nil)
	var errors, spread float64
	for i, y := range want {
		errors += (predicted[i] - y) * (predicted[i] - y)
		spread += (y - mean) * (y - mean)
	}
	if spread <= 1e-24*float64(len(want))*mean*mean { // rounding
		return math.NaN()
	}
	return 1 - errors/spread
}

func accuracy(predicted, want []float64) float64 {
	correct := 0
	for i, p := range predicted {
		if p == want[i] {
			correct++
		}
	}
	return float64(correct) / float64(len(want))
}

// f1 returns the mean of F1 = 2 TP / (2 TP + FP + FN) over the classes that occur in want.
func f1(predicted, want []float64) float64 {
	type count struct{ correct, predicted, want float64 }
	classes := map[float64]*count{}
	for _, y := range want {
		if classes[y] == nil {
			classes[y] = &count{}
		}
		classes[y].want++
	}
	for i, p := range predicted {
		if c := classes[p]; c != nil {
			c.predicted++
			if p == want[i] {
				c.correct++
			}
		}
	}
	var sum float64
	for _, y := range slices.Sorted(maps.Keys(classes)) {
		c := classes[y]
		sum += 2 * c.correct / (c.predicted + c.want)
	}
	return sum / float64(len(classes))
}

const maxGroups = 20

// An estimate is a statistic of several networks, probes with different seeds, tested on the same n
// samples. Without probes, seeds is 1.
type estimate struct {
	name  string
	n     int // number of test samples
	seeds int // number of networks, not counting those of the null, that is, of chance
	// compute returns the statistic on some of the samples, by index. Networks 0, 1, ... are those
	// of the seeds; -1, -2, ... are their nulls; seeds, seeds + 1, ... those of the parts.
	compute   func(network int, samples []int) float64
	trained   bool    // the networks are probes, and not layers without one
	parts     []int   // for each network that was trained without some of the training samples, their number
	training  int     // number of training samples
	noNull    bool    // the statistic has no null
	min, max  float64 // range of the statistic; both 0 if unknown
	undefined string  // warning if the value is NaN
}

// oneTraining is the warning of scores of a probe that other seeds do not change.
const oneTraining = "the interval is over test samples: it leaves out that other training samples give another probe"

// The interval combines the spread over test samples (a jackknife) and over networks: of several
// seeds, or of one probe that was trained without parts of the training samples (another jackknife).
func (e estimate) score() measure.Score {
	all := dataset.Indices(e.n)
	values := make([]float64, e.seeds)
	for s := range values {
		values[s] = e.compute(s, all)
	}
	out := measure.Plain(e.name, stat.Mean(values, nil), e.n)
	out.Min, out.Max = e.min, e.max
	if !e.noNull {
		out.Null = 0
		for s := range e.seeds {
			out.Null += e.compute(-1-s, all) / float64(e.seeds)
		}
	}
	if math.IsNaN(out.Value) {
		if e.undefined != "" {
			out.Warnings = append(out.Warnings, e.undefined)
		}
		return out
	}
	out.Replicates = e.replicates()
	low, high := resample.Jackknife(out.Value, e.n, out.Replicates)
	if math.IsNaN(low) {
		return out
	}
	half := (high - low) / 2
	switch {
	case len(values) > 1:
		_, out.Spread = resample.Student(values)
		out.Freedom = float64(len(values) - 1)
	case len(e.parts) > 1:
		var without []measure.Replicate
		for k, left := range e.parts {
			without = append(without, measure.Replicate{Value: e.compute(e.seeds+k, all), Left: left})
		}
		low, high := resample.Jackknife(out.Value, e.training, without)
		out.Spread, out.Freedom = (high-low)/2, float64(len(e.parts)-1)
	case e.trained:
		out.Warnings = append(out.Warnings, oneTraining)
	}
	half = math.Hypot(half, out.Spread)
	out.Low, out.High = out.Value-half, out.Value+half
	if e.min < e.max {
		out.Low, out.High = max(out.Low, e.min), min(out.High, e.max)
	}
	return out
}

// replicates returns the statistic without each group, as a mean over networks; nil if one is NaN.
func (e estimate) replicates() []measure.Replicate {
	groups := min(maxGroups, e.n/2)
	var out []measure.Replicate
	for g := range groups {
		var others []int
		for i := range e.n {
			if i%groups != g {
				others = append(others, i)
			}
		}
		var sum float64
		for s := range e.seeds {
			sum += e.compute(s, others)
		}
		if math.IsNaN(sum) {
			return nil
		}
		out = append(out, measure.Replicate{Value: sum / float64(e.seeds), Left: e.n - len(others)})
	}
	return out
}

func take(values []float64, samples []int) []float64 {
	out := make([]float64, len(samples))
	for k, i := range samples {
		out[k] = values[i]
	}
	return out
}
