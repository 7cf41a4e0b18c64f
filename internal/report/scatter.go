package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores/correlation"
)

// A Scatter describes a chart of points with the line fitted to them, as data. Vertical positions
// are those on the axis: accuracies, or their logits.
type Scatter struct {
	Title  string         `json:"title"`
	X      string         `json:"x"` // titles of the axes
	Y      string         `json:"y"`
	Left   float64        `json:"left"` // range of the horizontal axis
	Right  float64        `json:"right"`
	Low    float64        `json:"low"` // range of the vertical axis
	High   float64        `json:"high"`
	Ticks  []Tick         `json:"ticks,omitempty"` // of the vertical axis; none on a linear scale
	Points []ScatterPoint `json:"points"`
	Line   []LinePoint    `json:"line,omitempty"`
	Notes  []string       `json:"-"` // correlation coefficients, or why there are none
}

// A Tick is a labelled position on an axis.
type Tick struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// A ScatterPoint is a point with its position on the vertical axis, and the ends of its error bars,
// which equal the position if there are none.
type ScatterPoint struct {
	correlation.Point
	At    float64 `json:"at"`
	Left  float64 `json:"left"`
	Right float64 `json:"right"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A LinePoint is a point of the fitted line. Low and High bound its confidence band, or equal At if
// there is no band.
type LinePoint struct {
	X    float64 `json:"x"`
	At   float64 `json:"at"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const lineSteps = 40 // segments of the fitted line

// NewScatter describes points, at least one, and their fit, which may be nil. x and y are the
// titles of the axes. logit specifies that the vertical axis is on the logit scale.
func NewScatter(points []correlation.Point, fit *correlation.Fit, title, x, y string, logit bool) Scatter {
	// scale returns the vertical position of v, on the logit scale an accuracy over n samples (0:
	// unknown).
	scale := func(v float64, n int) float64 {
		if !logit {
			return v
		}
		return correlation.Logit(min(1-1e-6, max(1e-6, v)), n)
	}
	s := Scatter{Title: title, X: x, Y: y, Left: math.Inf(1), Right: math.Inf(-1), Low: math.Inf(1), High: math.Inf(-1)}
	left, right := points[0].X, points[0].X
	bottom, top := points[0].Y, points[0].Y
	for _, p := range points {
		at := scale(p.Y, p.N)
		q := ScatterPoint{p, at, p.X, p.X, at, at}
		if i := p.XInterval; i != (correlation.Interval{}) {
			q.Left, q.Right = i.Low, i.High
		}
		if i := p.YInterval; i != (correlation.Interval{}) {
			q.Low, q.High = scale(i.Low, p.N), scale(i.High, p.N)
		}
		s.Points = append(s.Points, q)
		s.Left, s.Right, s.Low, s.High = min(s.Left, q.Left), max(s.Right, q.Right), min(s.Low, q.Low), max(s.High, q.High)
		left, right = min(left, p.X), max(right, p.X)
		bottom, top = min(bottom, p.Y), max(top, p.Y)
	}
	s.Left, s.Right = widenAxis(s.Left, s.Right)
	low, high := widenAxis(bottom, top)
	// On the logit scale 0 and 1 are infinitely far. If widening would bring an end of the range three
	// times nearer to one of them, that end stays and only the other end moves.
	if logit {
		switch {
		case high > 1-(1-top)/3:
			low, high = min(bottom, top-minAxisRange), top
		case low < bottom/3:
			low, high = bottom, max(top, bottom+minAxisRange)
		}
	}
	if low > 0 || !logit {
		s.Low = min(s.Low, scale(low, 0))
	}
	if high < 1 || !logit {
		s.High = max(s.High, scale(high, 0))
	}
	switch {
	case fit == nil:
	case math.IsNaN(fit.Pearson.Value):
		s.Notes = []string{"no correlation: all scores are equal"}
	default:
		s.Notes = []string{coefficient("r", fit.Pearson), coefficient("ρ", fit.Spearman)}
		for i := range lineSteps + 1 {
			x := left + (right-left)*float64(i)/lineSteps
			v := fit.At(x)
			at := LinePoint{x, scale(v.Value, 0), scale(v.Value, 0), scale(v.Value, 0)}
			if finite(v.Low) && finite(v.High) {
				at.Low, at.High = scale(v.Low, 0), scale(v.High, 0)
			}
			s.Line = append(s.Line, at)
			s.Low, s.High = min(s.Low, at.At), max(s.High, at.At)
		}
	}
	margin, side := max(0.06*(s.High-s.Low), 1e-9), 0.04*(s.Right-s.Left)
	s.Low, s.High, s.Left, s.Right = s.Low-margin, s.High+margin, s.Left-side, s.Right+side
	if logit {
		s.Y += " (logit scale)"
		s.Ticks = logitTicks(s.Low, s.High)
	}
	return s
}

// minAxisRange is the smallest range of an axis, so that differences that are too small to matter
// do not span the chart. For values outside [0, 1] it is a fraction of the largest magnitude.
const minAxisRange = 0.06

// widenAxis returns the range of an axis for values from low to high.
func widenAxis(low, high float64) (from, to float64) {
	least := minAxisRange
	if low < 0 || high > 1 {
		least *= max(math.Abs(low), math.Abs(high))
	}
	if high-low >= least {
		return low, high
	}
	from, to = (low+high-least)/2, (low+high+least)/2
	switch {
	case low < 0 || high > 1:
	case from < 0:
		from, to = 0, least
	case to > 1:
		from, to = 1-least, 1
	}
	return from, to
}

func coefficient(name string, c correlation.Coefficient) string {
	if !finite(c.Low) {
		return fmt.Sprintf("%s = %.2f", name, c.Value)
	}
	return fmt.Sprintf("%s = %.2f [%.2f, %.2f]", name, c.Value, c.Low, c.High)
}

var proportions = []float64{0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999}

// logitTicks returns ticks between two logits that do not overlap: at round proportions spread over
// the scale, or in even steps where fewer than four of those fit.
func logitTicks(low, high float64) []Tick {
	from, to := correlation.InverseLogit(low, 0), correlation.InverseLogit(high, 0)
	positions := slices.DeleteFunc(slices.Clone(proportions), func(p float64) bool { return p < from || p > to })
	if len(positions) < 4 {
		positions = nil
		step := 0.1
		for i := 0; (to-from)/step < 4 && step > 1e-9; i++ { // 0.1, 0.05, 0.02, 0.01, ...
			step /= []float64{2, 2.5, 2}[i%3]
		}
		for k := math.Ceil(from / step); k*step <= to; k++ {
			positions = append(positions, k*step)
		}
	}
	var out []Tick
	for _, p := range positions {
		l := correlation.Logit(p, 0)
		if len(out) == 0 || l-out[len(out)-1].At > 0.1*(high-low) {
			out = append(out, Tick{l, fmt.Sprintf("%.6g%%", 100*p)})
		}
	}
	return out
}
