package correlation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/seed"
)

// A Point is a model or a data set with two scores, X and Y.
type Point struct {
	Label string `json:"label"`           // the name of the model or data set
	Group string `json:"group,omitempty"` // group for colouring, for instance the value of a tag (label) of the model; may be empty
	// Unit names the independent unit of the point, such as the training of a checkpoint. Without
	// one, the point is a unit.
	Unit string  `json:"unit,omitempty"`
	X    float64 `json:"x"` // the score, for instance effective invariance
	Y    float64 `json:"y"` // the score to predict, for instance accuracy in [0, 1]
	N    int     `json:"n"` // number of observations of Y, for Logit; 0 if unknown
	// The 95 % intervals of X and Y for drawings; zero if there are none.
	XInterval Interval `json:"-"`
	YInterval Interval `json:"-"`
}

// An Interval is a range of values. The zero Interval stands for none.
type Interval struct{ Low, High float64 }

// Options are the options of Analyse.
type Options struct {
	Logit     bool   // transform Y, a proportion, to the logit scale
	Bootstrap int    // number of resamples for intervals; 0 means 1,000
	Seed      uint64 // seed of the resampling
}

// A Fit describes the relation of X and Y. Its scale is the logit scale with Options.Logit, else
// that of Y.
type Fit struct {
	Points   []Point
	Units    int         // independent units among the points
	Pearson  Coefficient // of X, and Y on the scale of the fit; N is Units
	Spearman Coefficient
	Line     Line // robust regression (see huber) of Y, on the scale of the fit, on X
	// LeaveOneOut holds the errors, prediction minus Y on Y's scale, of lines through the points of
	// all other units. Points without such a line (fewer than two points, or one X) are left out.
	LeaveOneOut []float64
	Warnings    []string

	unitOf    []int   // number of each point's unit, from 0
	members   [][]int // indices of each unit's points
	logit     bool
	medianN   int       // the median of the points' N
	lines     []Line    // lines fitted to the resamples
	residuals []float64 // Y minus the leave-one-out prediction, on the scale of the fit
}

// Analyse returns an error for fewer than four points, equal X, a score that is not finite and,
// with Options.Logit, a Y outside [0, 1], or at 0 or 1 with unknown N.
func Analyse(points []Point, o Options) (*Fit, error) {
	if len(points) < 4 {
		return nil, fmt.Errorf("%w for a correlation: %d; at least 4 are needed", errTooFew, len(points))
	}
	f := &Fit{Points: points, logit: o.Logit, medianN: medianN(points)}
	x, y, err := f.coordinates()
	if err != nil {
		return nil, err
	}
	if f.Line, err = huber(x, y); err != nil {
		return nil, err
	}
	f.findUnits()
	f.Pearson, f.Spearman = pearsonOf(x, y, f.Units), spearmanOf(x, y, f.Units)
	f.warn()
	f.leaveOneOut(x, y)
	o.Bootstrap = cmp.Or(o.Bootstrap, 1000)
	f.resample(x, y, o)
	return f, nil
}

func (f *Fit) findUnits() {
	unitByName := map[string]int{}
	for i, p := range f.Points {
		unit, ok := unitByName[p.Unit]
		if p.Unit == "" || !ok {
			unit = len(f.members)
			f.members = append(f.members, nil)
			if p.Unit != "" {
				unitByName[p.Unit] = unit
			}
		}
		f.unitOf = append(f.unitOf, unit)
		f.members[unit] = append(f.members[unit], i)
	}
	f.Units = len(f.members)
}

// minUnits is the number of independent units below which a fit has a warning.
const minUnits = 6

// Analyse refuses a constant first score.
func (f *Fit) warn() {
	if f.Units < minUnits {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%d independent units: too few to tell a relation from chance", f.Units))
	}
	var values []float64
	for _, p := range f.Points {
		values = append(values, p.Y)
	}
	if isConstant(values) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the second score is %.4g everywhere, so that there is no correlation", values[0]))
	}
	for _, c := range []struct {
		name string
		Coefficient
	}{{"Pearson's r", f.Pearson}, {"Spearman's rho", f.Spearman}} {
		if math.Abs(c.Value) == 1 {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s is exactly %+.0f and has no interval", c.name, c.Value))
		}
	}
}

func medianN(points []Point) int {
	n := make([]float64, len(points))
	for i, p := range points {
		n[i] = float64(p.N)
	}
	return int(median(n))
}

func (f *Fit) coordinates() (x, y []float64, err error) {
	for _, p := range f.Points {
		if f.logit && (p.Y < 0 || p.Y > 1) {
			return nil, nil, fmt.Errorf("%s: %g is outside [0, 1] and has no logit", p.Label, p.Y)
		}
		if !isFinite(p.X) || !isFinite(p.Y) {
			return nil, nil, fmt.Errorf("%s: a score is not a finite number (%g, %g)", p.Label, p.X, p.Y)
		}
		x, y = append(x, p.X), append(y, f.toFitScale(p.Y, p.N))
	}
	for i, v := range y {
		if !isFinite(v) {
			return nil, nil, fmt.Errorf("%s: the logit of %g needs the number of samples", f.Points[i].Label, f.Points[i].Y)
		}
	}
	return x, y, nil
}

func (f *Fit) toFitScale(y float64, n int) float64 {
	if f.logit {
		return Logit(y, n)
	}
	return y
}

func (f *Fit) fromFitScale(y float64, n int) float64 {
	if f.logit {
		return InverseLogit(y, n)
	}
	return y
}

// leaveOneOut fills LeaveOneOut.
func (f *Fit) leaveOneOut(x, y []float64) {
	for i := range x {
		others := func(v []float64) (out []float64) {
			for k, other := range v {
				if f.unitOf[k] != f.unitOf[i] {
					out = append(out, other)
				}
			}
			return out
		}
		line, err := huber(others(x), others(y))
		if err != nil {
			continue
		}
		f.residuals = append(f.residuals, y[i]-line.At(x[i]))
		f.LeaveOneOut = append(f.LeaveOneOut, f.fromFitScale(line.At(x[i]), f.Points[i].N)-f.Points[i].Y)
	}
}

// resample fits o.Bootstrap lines to units, with all their points, drawn with replacement. Draws
// with a single x give no line; there are at most ten for each line.
func (f *Fit) resample(x, y []float64, o Options) {
	rand := seed.Rand(o.Seed, "correlation")
	for attempts := 0; len(f.lines) < o.Bootstrap && attempts < 10*o.Bootstrap; attempts++ {
		var drawnX, drawnY []float64
		for range f.Units {
			for _, i := range f.members[rand.IntN(f.Units)] {
				drawnX, drawnY = append(drawnX, x[i]), append(drawnY, y[i])
			}
		}
		if line, err := huber(drawnX, drawnY); err == nil {
			f.lines = append(f.lines, line)
		}
	}
}

// MeanAbsoluteError returns the mean of the absolute leave-one-out errors, NaN if there are none.
func (f *Fit) MeanAbsoluteError() float64 {
	var sum float64
	for _, e := range f.LeaveOneOut {
		sum += math.Abs(e)
	}
	return sum / float64(len(f.LeaveOneOut))
}

// A Value is a number with its 95 % interval.
type Value struct{ Value, Low, High float64 }

// At returns the line at x, on the scale of Y, with the interval of 95 % of the resampled lines,
// NaN for fewer than 40.
func (f *Fit) At(x float64) Value {
	return f.interval(x, func(int) float64 { return 0 })
}

// Predict predicts Y of a single model or data set. The interval combines the line's uncertainty
// with the scatter of leave-one-out residuals; it may be NaN, as that of At.
func (f *Fit) Predict(x float64) Value {
	if len(f.residuals) == 0 {
		return f.At(x)
	}
	return f.interval(x, func(i int) float64 { return f.residuals[i%len(f.residuals)] })
}

// interval takes 2.5 % and 97.5 % quantiles of the resampled lines at x, plus residual(i) for line
// i. Lines are in random order, so residuals need not be drawn. Below 40 lines, 2.5 % are less than
// one, and it is NaN.
func (f *Fit) interval(x float64, residual func(i int) float64) Value {
	v := Value{Value: f.fromFitScale(f.Line.At(x), f.medianN), Low: math.NaN(), High: math.NaN()}
	if len(f.lines) < 40 {
		return v
	}
	values := make([]float64, len(f.lines))
	for i, l := range f.lines {
		values[i] = l.At(x) + residual(i)
	}
	slices.Sort(values)
	v.Low = f.fromFitScale(stat.Quantile(0.025, stat.LinInterp, values, nil), f.medianN)
	v.High = f.fromFitScale(stat.Quantile(0.975, stat.LinInterp, values, nil), f.medianN)
	return v
}
