package scores

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// A Tolerance is what a statistic must keep to: at least a number or, with AtMost, at most one.
type Tolerance struct {
	Selector Selector // of a statistic, and perhaps of a transformation and a layer
	Limit    float64
	AtMost   bool
	// Relative reports whether Limit is a fraction of the reference, the statistic without a
	// transformation.
	Relative bool
}

// ParseTolerance parses SCORE >= NUMBER, SCORE <= NUMBER, or with a percentage for a relative one:
// "effective-invariance.ei@tilt >= 0.9", "accuracy.moved >= 95%".
func ParseTolerance(text string) (Tolerance, error) {
	var t Tolerance
	score, limit, ok := strings.Cut(text, ">=")
	if !ok {
		score, limit, ok = strings.Cut(text, "<=")
		t.AtMost = true
	}
	if !ok {
		return t, fmt.Errorf("invalid tolerance %q: write SCORE >= NUMBER or SCORE <= NUMBER, for instance effective-invariance.ei >= 0.9 or accuracy.moved >= 95%%", text)
	}
	var err error
	if t.Selector, err = ParseSelector(strings.TrimSpace(score)); err != nil {
		return t, err
	}
	if t.Selector.Parameter != "" {
		return t, fmt.Errorf("invalid tolerance %q: the values of a transformation are its curve, so leave out =%s", text, t.Selector.Parameter)
	}
	limit, t.Relative = strings.CutSuffix(strings.TrimSpace(limit), "%")
	if t.Limit, err = strconv.ParseFloat(limit, 64); err != nil || math.IsNaN(t.Limit) || math.IsInf(t.Limit, 0) {
		return t, fmt.Errorf("invalid tolerance %q: %q is not a number", text, limit)
	}
	if t.Relative {
		t.Limit /= 100
	}
	return t, nil
}

// String returns the tolerance in the form that ParseTolerance reads.
func (t Tolerance) String() string {
	operator, limit := ">=", strconv.FormatFloat(t.Limit, 'g', -1, 64)
	if t.AtMost {
		operator = "<="
	}
	if t.Relative {
		limit = strconv.FormatFloat(100*t.Limit, 'g', -1, 64) + "%"
	}
	return fmt.Sprintf("%s %s %s", t.Selector, operator, limit)
}

// A State says where a breaking point is.
type State string

// The states.
const (
	Found  State = "found"  // between two strengths that were tried
	Before State = "before" // below the smallest strength that was tried
	Beyond State = "beyond" // above the largest
)

// A BreakingPoint is the smallest strength of a transformation at which a statistic no longer keeps
// to a tolerance. Strengths are distances of a parameter's values from its neutral value, at which
// the transformation changes nothing; values on both sides of it give two points.
type BreakingPoint struct {
	Row       Row // of the statistic, with empty Parameter; its numbers are those at the neutral value or NaN
	Tolerance Tolerance
	Neutral   float64 // value of the parameter
	Side      int     // 1: values above Neutral; -1: below
	State     State
	// Strength is interpolated linearly between two that were tried: NaN unless State is Found.
	Strength float64
	// Low and High are the ends of its 95 % interval: where the lower and the upper ends of the
	// intervals of the statistic cross the tolerance. Before the smallest strength Low is 0, beyond
	// the largest High is infinite. NaN: some score has no interval.
	Low, High float64
	// Smallest and Largest are the strengths that were tried.
	Smallest, Largest float64
	// Area is the mean of the statistic over the strengths from Smallest to Largest, by the
	// trapezoidal rule, and AreaLow and AreaHigh those of the ends of its intervals, which the
	// interval of the mean lies within. NaN with a single strength.
	Area, AreaLow, AreaHigh float64
}

// String describes a breaking point: "12.3 [10.1, 15]", "beyond 45".
func (b BreakingPoint) String() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	var text string
	switch b.State {
	case Before:
		text = "before " + number(b.Smallest)
	case Beyond:
		text = "beyond " + number(b.Largest)
	default:
		text = number(b.Strength)
	}
	switch {
	case math.IsNaN(b.Low) && math.IsNaN(b.High):
	case math.IsInf(b.High, 1) && b.State == Beyond && b.Low >= b.Largest:
	case math.IsInf(b.High, 1):
		text += fmt.Sprintf(" [%s, beyond]", number(b.Low))
	default:
		text += fmt.Sprintf(" [%s, %s]", number(b.Low), number(b.High))
	}
	return text
}

// BreakingDescriptor describes the rows that BreakingRows returns, as those of a measure.
func BreakingDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "breaking-point", Title: "Breaking points", Level: measure.ModelLevel, Chart: "bars",
		Question: "Up to which strength of a transformation does a score keep to its tolerance?",
		Reading:  "The higher, the stronger the transformation may be. A point without a value lies before the smallest strength that was tried, or beyond the largest: its warning says which.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "breaking-point", Title: "breaking point", About: "The smallest strength of the transformation at which the score no longer keeps to the tolerance, the factor. Strengths are distances from the value that changes nothing.", Range: measure.NotNegative, Direction: measure.Higher},
			{Name: "area", Title: "mean over strengths", About: "The area under the curve of the score, the factor, divided by the range of strengths.", Range: measure.AnyNumber},
		},
	}
}

// BreakingRows returns breaking points as rows: of each a row of the statistic breaking-point, whose
// factor is the tolerance, and for each curve one of the area, whose factor is the score. The variant
// says whether the strengths are above or below the neutral value. A point that is not between two
// strengths has no value, and its state is its warning.
func BreakingRows(study string, points []BreakingPoint) []Row {
	var out []Row
	for _, b := range points {
		r := b.Row
		r.Study, r.Measure, r.Statistic, r.Null = study, "breaking-point", "breaking-point", math.NaN()
		if r.Variant = "above"; b.Side < 0 {
			r.Variant = "below"
		}
		tolerance := b.Tolerance
		tolerance.Selector.Transform = "" // the row names it
		r.Factor, r.Value, r.Low, r.High = tolerance.String(), b.Strength, b.Low, b.High
		if math.IsInf(r.High, 0) || math.IsNaN(r.Value) {
			r.Low, r.High = math.NaN(), math.NaN()
		}
		switch number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }; {
		case b.State == Before:
			r.Warning = "no value: the score is outside of the tolerance at " + number(b.Smallest) + ", the smallest strength that was tried"
		case b.State == Beyond:
			r.Warning = "no value: the score keeps to the tolerance up to " + number(b.Largest) + ", the largest strength that was tried"
		case math.IsInf(b.High, 0):
			r.Warning = "no interval: its upper end is beyond " + number(b.Largest) + ", the largest strength that was tried"
		}
		area := r
		area.Statistic, area.Factor, area.Warning = "area", tolerance.Selector.String(), ""
		area.Value, area.Low, area.High = b.Area, b.AreaLow, b.AreaHigh
		out = append(out, r)
		if !math.IsNaN(b.Area) && !slices.ContainsFunc(out, func(o Row) bool { return pointOf(o) == pointOf(area) }) {
			out = append(out, area)
		}
	}
	return out
}

// BreakingPoints returns the breaking points of all curves that the tolerance selects, in the order
// of their first rows: for each model, layer, data set and transformation with a list of numbers.
// neutral returns the value at which a transformation of a run changes nothing, by its name. Of
// several trials the means count.
//
// A relative tolerance refers to the score at the neutral value or, for accuracy, to that on clean
// data; it is an error if a run has neither.
func BreakingPoints(rows []Row, t Tolerance, neutral func(transform string) (float64, error)) ([]BreakingPoint, error) {
	return breakingPointsOf(rows, nil, t, neutral)
}

// BreakingPointsOfCells is BreakingPoints of cells and the means derived from them. Their
// replicates, where there are some, give the interval of the distance from a relative tolerance:
// the jackknife of the score less the share of the reference, both without the same samples.
func BreakingPointsOfCells(cells []Cell, t Tolerance, neutral func(transform string) (float64, error)) ([]BreakingPoint, error) {
	replicates := map[Row][]measure.Replicate{}
	for _, c := range cells {
		for _, l := range c.Layers {
			for _, s := range l.Scores {
				if c.Measure == t.Selector.Measure && len(s.Replicates) > 1 {
					replicates[pointOf(c.row(l, s))] = s.Replicates
				}
			}
		}
	}
	return breakingPointsOf(Rows("", cells), replicates, t, neutral)
}

func breakingPointsOf(rows []Row, replicates map[Row][]measure.Replicate, t Tolerance, neutral func(transform string) (float64, error)) ([]BreakingPoint, error) {
	matching := t.Selector.matching(rows)
	if len(matching) == 0 {
		return nil, t.Selector.noMatch(rows)
	}
	curves := map[Row][]Row{} // by the row without what varies along a curve
	var order []Row
	for _, r := range prefer(matching, func(r Row) bool { return r.Trial == MeanOverTrials }) {
		if _, err := strconv.ParseFloat(r.Parameter, 64); err != nil {
			continue
		}
		key := curveOf(r)
		if curves[key] == nil {
			order = append(order, key)
		}
		curves[key] = append(curves[key], r)
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("%s: no transformation has a list of numbers: give it values, such as rotate: {values: [5, 10, 20, 40]}", t.Selector)
	}
	var out []BreakingPoint
	for _, key := range order {
		zero, err := neutral(key.Transform)
		if err != nil {
			return nil, err
		}
		points, err := breakingPoints(curves[key], rows, replicates, t, zero)
		if err != nil {
			return nil, err
		}
		out = append(out, points...)
	}
	return out, nil
}

// curveOf returns a row with what all rows of its curve have in common.
func curveOf(r Row) Row {
	r.Parameter, r.Value, r.Low, r.High, r.Null, r.N, r.Warning, r.P, r.PAdjusted = "", 0, 0, 0, 0, 0, "", 0, 0
	return r
}

// pointOf returns a row with what identifies it.
func pointOf(r Row) Row {
	key := curveOf(r)
	key.Parameter = r.Parameter
	return key
}

// A curvePoint is a strength with a statistic and its interval.
type curvePoint struct {
	strength, value, low, high float64
	n                          int
	replicates                 []measure.Replicate // perhaps none
}

func breakingPoints(curve, rows []Row, replicates map[Row][]measure.Replicate, t Tolerance, neutral float64) ([]BreakingPoint, error) {
	nan := math.NaN()
	point := func(r Row, strength float64) curvePoint {
		return curvePoint{strength, r.Value, r.Low, r.High, r.N, replicates[pointOf(r)]}
	}
	clean := curvePoint{value: nan, low: nan, high: nan}
	sides := map[int][]curvePoint{}
	for _, r := range curve {
		v, _ := strconv.ParseFloat(r.Parameter, 64)
		p := point(r, math.Abs(v-neutral))
		if math.IsNaN(p.value) {
			return nil, fmt.Errorf("%s=%s: %s has no value (%s)", r.Describe(), r.Parameter, t.Selector, r.Warning)
		}
		if v == neutral {
			clean = p
			continue
		}
		side := 1
		if v < neutral {
			side = -1
		}
		sides[side] = append(sides[side], p)
	}
	if math.IsNaN(clean.value) {
		if r, ok := cleanScore(curve[0], rows); ok {
			clean = point(r, 0)
		}
	}
	limit := t.Limit
	if t.Relative {
		if math.IsNaN(clean.value) {
			return nil, fmt.Errorf("%s: the tolerance is relative, and there is no score without the transformation: add %v to the values of %s, or give an absolute tolerance",
				t, neutral, curve[0].Transform)
		}
		limit *= clean.value
	}
	base := curveOf(curve[0])
	base.Value, base.Low, base.High, base.Null, base.N = clean.value, clean.low, clean.high, nan, curve[0].N
	var out []BreakingPoint
	for _, side := range []int{1, -1} {
		points := sides[side]
		if len(points) == 0 {
			continue
		}
		slices.SortFunc(points, func(a, b curvePoint) int { return cmp.Compare(a.strength, b.strength) })
		if !math.IsNaN(clean.value) {
			points = slices.Insert(points, 0, clean)
		}
		b := BreakingPoint{Row: base, Tolerance: t, Neutral: neutral, Side: side, Smallest: points[0].strength, Largest: points[len(points)-1].strength}
		b.integrate(points)
		if t.Relative {
			points = againstReference(points, clean, t.Limit)
		}
		b.cross(points, limit)
		out = append(out, b)
	}
	return out, nil
}

// againstReference returns points with the intervals of their differences from a share of the
// reference, about the points, where replicates give them.
func againstReference(points []curvePoint, reference curvePoint, share float64) []curvePoint {
	limits := slices.Clone(reference.replicates)
	for i := range limits {
		limits[i].Value *= share
	}
	out := slices.Clone(points)
	for i, p := range out {
		if differences, ok := pairedReplicates(limits, p.replicates); ok && p.n == reference.n {
			low, high := resample.Jackknife(p.value-share*reference.value, p.n, differences)
			if half := (high - low) / 2; half > 0 {
				out[i].low, out[i].high = p.value-half, p.value+half
			}
		}
	}
	return out
}

// cleanScore returns the accuracy, mAP or mean IoU on clean data for one on transformed data: the
// statistic clean, or clean-map, of the same measure for moved, or moved-map.
func cleanScore(r Row, rows []Row) (Row, bool) {
	if rest, moved := strings.CutPrefix(r.Statistic, "moved"); moved {
		for _, o := range rows {
			if o.Measure == r.Measure && o.Statistic == "clean"+rest && o.Model == r.Model && o.Data == r.Data && o.Factor == r.Factor && o.Study == r.Study {
				return o, true
			}
		}
	}
	return Row{}, false
}

// cross finds where the statistic and the ends of its interval first leave the tolerance.
func (b *BreakingPoint) cross(points []curvePoint, limit float64) {
	of := func(value func(curvePoint) float64) (float64, State) {
		return crossing(points, value, limit, b.Tolerance.AtMost)
	}
	b.Strength, b.State = of(func(p curvePoint) float64 { return p.value })
	if b.State != Found {
		b.Strength = math.NaN()
	}
	worse, better := func(p curvePoint) float64 { return p.low }, func(p curvePoint) float64 { return p.high }
	if b.Tolerance.AtMost {
		worse, better = better, worse
	}
	if slices.ContainsFunc(points, func(p curvePoint) bool { return math.IsNaN(p.low) || math.IsNaN(p.high) }) {
		b.Low, b.High = math.NaN(), math.NaN()
		return
	}
	var state State
	b.Low, state = of(worse)
	if state == Beyond {
		b.Low = b.Largest
	}
	if b.High, state = of(better); state == Before {
		b.High = b.Smallest
	}
}

// crossing returns the smallest strength at which value leaves the tolerance: 0 before the first
// point, infinite beyond the last.
func crossing(points []curvePoint, value func(curvePoint) float64, limit float64, atMost bool) (float64, State) {
	margin := func(p curvePoint) float64 { // negative where the tolerance is exceeded
		if atMost {
			return limit - value(p)
		}
		return value(p) - limit
	}
	for i, p := range points {
		m := margin(p)
		switch {
		case m >= 0:
		case i == 0 && p.strength == 0:
			return 0, Found // also without the transformation
		case i == 0:
			return 0, Before
		default:
			before := points[i-1]
			m0 := margin(before)
			return before.strength + (p.strength-before.strength)*m0/(m0-m), Found
		}
	}
	return math.Inf(1), Beyond
}

func (b *BreakingPoint) integrate(points []curvePoint) {
	mean := func(value func(curvePoint) float64) float64 {
		var sum float64
		for i := range points[1:] {
			p, q := points[i], points[i+1]
			sum += (q.strength - p.strength) * (value(p) + value(q)) / 2
		}
		return sum / (b.Largest - b.Smallest) // NaN for a single point
	}
	b.Area = mean(func(p curvePoint) float64 { return p.value })
	b.AreaLow = mean(func(p curvePoint) float64 { return p.low })
	b.AreaHigh = mean(func(p curvePoint) float64 { return p.high })
}
