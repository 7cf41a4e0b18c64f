package stitching

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// scores returns the accuracy with the trained stitch, the gain over the untrained stitch, and the
// penalty, the accuracy of b alone less that with the trained stitch. untrained and trained have 1
// for each test image that is classified correctly with that stitch, else 0.
func (r *run) scores(untrained, trained []float64) []measure.Score {
	accuracy := meanOf("accuracy", trained, nil, 0)
	accuracy.Low, accuracy.High = resample.Wilson(accuracy.Value, len(trained))
	gain := meanOf("gain", trained, untrained, -1)
	if r.settings.Epochs > 0 && !math.IsNaN(gain.Low) {
		gain.Warnings = append(gain.Warnings, trainingWarning)
	}
	return []measure.Score{accuracy, gain, meanOf("penalty", r.correctB, trained, -1)}
}

// The interval of gain was measured to be too narrow: docs/explanation/intervals-and-nulls.md.
const trainingWarning = "the interval is too narrow: it leaves out that other training images give other stitches"

// meanOf returns the mean of a or, if b is not nil, of a - b, with an interval between low and 1.
func meanOf(statistic string, a, b []float64, low float64) measure.Score {
	v := append([]float64(nil), a...)
	var sum float64
	for i := range v {
		if b != nil {
			v[i] -= b[i]
		}
		sum += v[i]
	}
	s := measure.Plain(statistic, sum/float64(len(v)), len(v))
	s.Min, s.Max = low, 1
	s.Replicates = resample.MeanWithoutGroups(v)
	if l, h := resample.Jackknife(s.Value, len(v), s.Replicates); !math.IsNaN(l) {
		s.Low, s.High = max(l, s.Min), min(h, s.Max)
	}
	return s
}

func undefined(why string) []measure.Score {
	var out []measure.Score
	for _, s := range Descriptor().Statistics {
		out = append(out, measure.Plain(s.Name, 0, 0).Undefined(why))
	}
	return out
}
