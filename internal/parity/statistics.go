package parity

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/tensor"
)

// The statistics of a layer.
const (
	RelativeL2 = "relative-l2"
	SNR        = "snr"
	Cosine     = "cosine"
	Largest    = "largest-difference"
	Saturated  = "saturated"
)

// MeasureName is the measure of the rows that hold these statistics.
const MeasureName = "parity"

// The columns of a sample, before Saturated.
const (
	signalColumn = iota
	noiseColumn
)

// newSums returns an accumulator of the statistics of a layer. x is measure.Batch.Clean, y is
// Transformed. A nil range means that y is not quantised.
func newSums(layer tensor.Layer, layout measure.Layout, s *span) (measure.Accumulator, error) {
	columns := []paired.Column{
		signalColumn: {Transformed: true}, noiseColumn: {Transformed: true},
		{Statistic: Cosine, Transformed: true}, {Statistic: Largest, Transformed: true},
	}
	if s != nil {
		columns = append(columns, paired.Column{Statistic: Saturated, Transformed: true})
	}
	inf := math.Inf(1)
	return paired.New(paired.Spec{
		Descriptor: measure.Descriptor{Name: MeasureName, Statistics: []measure.StatisticDescriptor{
			{Name: RelativeL2, Range: measure.NotNegative}, {Name: Cosine, Range: measure.Range{High: 2}},
			{Name: Largest, Range: measure.Range{High: inf}}, {Name: Saturated, Range: measure.ZeroToOne},
		}},
		Version: 1, StateVersion: 1, Settings: struct{}{},
		Needs:   measure.Needs{Transformed: true},
		Columns: columns,
		Derived: []paired.Derived{{Statistic: RelativeL2, Of: relativeL2, Undefined: "the layer is zero in the original"}},
		Pair: func(out []float64, _ int, x, y []float32) error {
			return pair(out, x, y, s)
		},
	}).New(measure.Site{Layer: layer, Layout: layout})
}

// pair writes the columns of one sample.
func pair(out []float64, x, y []float32, s *span) error {
	var xx, yy, xy, dd, largest float64
	clipped := 0
	for i, v := range x {
		a, b := float64(v), float64(y[i])
		d := a - b
		xx += a * a
		yy += b * b
		xy += a * b
		dd += d * d
		largest = max(largest, math.Abs(d)) // NaN stays
		if s != nil && s.clips(a, b) {
			clipped++
		}
	}
	switch {
	case math.IsNaN(xx) || math.IsInf(xx, 0):
		return &measure.NonFinite{View: "clean"}
	case math.IsNaN(dd) || math.IsInf(dd, 0):
		return &measure.NonFinite{View: "transformed"}
	}
	copy(out, []float64{xx, dd, cosine(xx, yy, xy), largest})
	if s != nil {
		out[4] = float64(clipped) / float64(len(x))
	}
	return nil
}

// cosine returns 1 - x.y / (|x| |y|): 0 for two zero vectors, and 1 for one of them, as in package
// measure/distance.
func cosine(xx, yy, xy float64) float64 {
	switch {
	case xx == 0 && yy == 0:
		return 0
	case xx == 0 || yy == 0:
		return 1
	}
	return max(0, 1-xy/math.Sqrt(xx)/math.Sqrt(yy))
}

// clips reports whether y is an end of the range and x lies beyond it by more than half a step, up
// to rounding.
func (s *span) clips(x, y float64) bool {
	near := s.Step / 4
	return y < s.Low+near && x < s.Low-s.Step/2-near/100 || y > s.High-near && x > s.High+s.Step/2+near/100
}

// relativeL2 is 0 for layers that are zero in both models, and NaN for a layer that is zero in the
// original alone.
func relativeL2(m []float64) float64 {
	switch {
	case m[noiseColumn] == 0:
		return 0
	case m[signalColumn] == 0:
		return math.NaN()
	}
	return math.Sqrt(m[noiseColumn] / m[signalColumn])
}

// snrOf returns the signal-to-noise ratio of a relative l2 distance, in dB. It is infinite where
// the distance is 0.
func snrOf(s measure.Score) measure.Score {
	decibels := func(r float64) float64 { return -20 * math.Log10(r) }
	out := s
	out.Statistic, out.Value, out.Low, out.High = SNR, decibels(s.Value), decibels(s.High), decibels(s.Low)
	out.Min, out.Max, out.Replicates = math.Inf(-1), math.Inf(1), nil
	return out
}
