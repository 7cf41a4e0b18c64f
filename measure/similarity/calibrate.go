package similarity

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Calibrated is the Variant of scores that are calibrated by their null.
const Calibrated = "calibrated"

// calibratedShuffles is the number of shuffles of a null that is drawn, if scores are calibrated.
const calibratedShuffles = 40

// A drawnNull is the null of an estimate from shuffles. The zero drawnNull is that of a null in
// closed form, which has no error.
type drawnNull struct {
	draws int
	half  float64 // half-width of the interval of the mean over shuffles; NaN for a single one
}

// setNull sets the null to the mean over shuffles; NaN without any.
func (e *estimate) setNull(nulls []float64) {
	mean, half := resample.Student(nulls)
	e.null, e.drawn = mean, drawnNull{len(nulls), half}
}

// calibratable reports whether the statistic has a largest value, 1, that equal representations
// have, and a null.
func (k statistic) calibratable() bool {
	d, ok := Descriptor().Statistic(k.name)
	return ok && !k.unpaired && d.Range.High == 1 && d.Direction == measure.Higher
}

func (s Settings) checkCalibrated() error {
	if !s.Calibrate {
		return nil
	}
	if !s.Null {
		return fmt.Errorf("calibrate needs the nulls: remove null: false")
	}
	for _, k := range s.selected() {
		if !k.calibratable() {
			return fmt.Errorf("calibrate: %s is no similarity with the largest value 1: list it in an entry without calibrate", k.name)
		}
	}
	return nil
}

// calibrated returns the score as (value - null) / (1 - null), which is 0 on average for
// representations that have nothing in common but their spectra, and 1 for equal ones: the
// adjustment for chance of the Rand index, with a permutation null as in Gröger, Wen and Brbić
// 2026. A shuffle of the rows keeps the singular values of both representations.
func calibrated(raw measure.Score, drawn drawnNull) measure.Score {
	raw.Variant = Calibrated
	room := 1 - raw.Null
	switch {
	case math.IsNaN(raw.Value):
		return raw
	case math.IsNaN(raw.Null):
		return raw.Undefined("not calibrated: the null is not known")
	case room < 1e-9:
		return raw.Undefined("not calibrated: the value by chance is 1, as with as many variables as samples")
	}
	scaled := func(v float64) float64 { return (v - raw.Null) / room }
	out := measure.Plain(raw.Statistic, scaled(raw.Value), raw.N)
	out.Variant, out.Null, out.Min, out.Max = Calibrated, 0, scaled(raw.Min), 1
	out.Warnings = slices.Clone(raw.Warnings)
	for _, r := range raw.Replicates {
		out.Replicates = append(out.Replicates, replicate(scaled(r.Value), r.Left))
	}
	low, high := resample.Jackknife(out.Value, out.N, out.Replicates)
	if math.IsNaN(low) {
		return out
	}
	half := (high - low) / 2
	switch {
	case drawn.draws == 1:
		// Shuffles of unrelated representations spread as their samples do.
		half *= math.Sqrt2
		out.Warnings = append(out.Warnings, "calibrated by a single shuffle, within the bound of time")
	case drawn.draws > 1:
		out.Freedom, out.Spread = float64(drawn.draws-1), drawn.half/room
		half = math.Hypot(half, out.Spread)
	}
	out.Low, out.High = max(out.Value-half, out.Min), min(out.Value+half, 1)
	return out
}
