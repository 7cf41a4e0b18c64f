package dense

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/measure/paired"
)

// This file compares maps of values: f(T(x)) with tau f(x), the map f(x) moved as T moves the
// image.

const (
	relativeError = iota
	samplePSNR
	meanSquare // the mean squared difference
	meanAngle  // between vectors, such as normals
)

// fields holds the actions tau that were computed before.
func addValues(spec *paired.Spec, f *decoded.Format, s Settings, fields *action.Cache) {
	spec.Columns = make([]paired.Column, meanAngle) // meanAngle is added for vectors only
	spec.Columns[relativeError] = paired.Column{Statistic: "relative-error", Sample: "relative-error", Transformed: true}
	spec.Columns[samplePSNR] = paired.Column{Sample: "psnr", Transformed: true}
	if f.Vectors != decoded.NoVectors {
		spec.Columns = append(spec.Columns, paired.Column{Statistic: "angle", Sample: "angle", Transformed: true})
	}
	spec.Derived = []paired.Derived{{Statistic: "psnr", Shuffled: true, Undefined: "the maps are equal, so the ratio is infinite",
		Of: func(m []float64) float64 { return psnr(m[meanSquare], s.Peak) }}}
	spec.Action = func(measure.Site) (paired.Action, error) {
		return &valueAction{format: f, settings: s, fields: fields}, nil
	}
}

func psnr(meanSquare, peak float64) float64 {
	if meanSquare == 0 {
		return math.NaN()
	}
	return 10 * math.Log10(peak*peak/meanSquare)
}

// A row of tau f(x) is the moved map, then for each position 1 if it counts and 0 if not. Positions
// whose value depends on what lies outside the map do not count.
type valueAction struct {
	format   *decoded.Format
	settings Settings
	fields   *action.Cache // the actions tau
}

func (a *valueAction) Len() int { return (a.format.Channels + 1) * a.format.Height * a.format.Width }

func (a *valueAction) Act(dst []float32, _ []float64, z []float32, move measure.Motion) error {
	f := a.format
	points, ok := measure.PointMapOf(move, f.Height, f.Width)
	if !ok {
		return paired.ErrLeftOut
	}
	field := a.fields.Of(points, action.Grid{Height: f.Height, Width: f.Width, Margin: a.settings.Margin})
	if field.N == 0 {
		return paired.ErrLeftOut
	}
	n := len(z)
	counted := dst[n:]
	clear(counted)
	for _, r := range field.Counted {
		for at := r.From; at < r.To; at++ {
			counted[at] = 1
		}
	}
	// nil: channels are not permuted; no floor
	field.Act(dst[:n], z, action.Layout{Channels: f.Channels, Planes: true}, nil, nil)
	if f.Vectors != decoded.NoVectors {
		m, err := newMotion(move, f.Height, f.Width)
		if err != nil {
			return err
		}
		m.nearestOrthogonal(f).apply(dst[:n], f.Height*f.Width)
	}
	return nil
}

func (a *valueAction) Pair(out []float64, acted, transformed []float32) error {
	n, plane := len(transformed), a.format.Height*a.format.Width
	counted := acted[n:]
	var difference, norm, other float64
	count := 0
	for i, v := range transformed {
		if counted[i%plane] == 0 {
			continue
		}
		x, y := float64(acted[i]), float64(v)
		difference += (x - y) * (x - y)
		norm += x * x
		other += y * y
		count++
	}
	switch {
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return &measure.NonFinite{View: "clean"}
	case math.IsNaN(other) || math.IsInf(other, 0):
		return &measure.NonFinite{View: "transformed"}
	case difference == 0:
		out[relativeError] = 0
	case norm == 0:
		out[relativeError] = 1
	default:
		out[relativeError] = math.Sqrt(difference / norm)
	}
	out[meanSquare] = difference / float64(count)
	out[samplePSNR] = psnr(out[meanSquare], a.settings.Peak)
	if a.format.Vectors != decoded.NoVectors {
		out[meanAngle] = angle(acted[:n], transformed, counted)
	}
	return nil
}
