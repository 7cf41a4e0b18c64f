package figure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// curveOrder is the order in which the fields that differ between curves are assigned to colours
// and panels. They are fields of rows, each of which is one score of the table of scores. The field
// transform includes the value of the parameter.
var curveOrder = append(slices.DeleteFunc(slices.Clone(report.DepthChart.Colour), func(f Field) bool { return f == "parameter" }), "layer", "statistic")

// drawDepth draws curves over the depth of layers: the number of nodes on the longest path from the
// input. Comparisons of two layers with different names are left out. It is an error if no row
// remains.
func drawDepth(rows []scores.Row, o Options) (*Figure, error) {
	rows = numbersOnly(report.Overview(rows)) // means over parameter values and trials
	rows = slices.DeleteFunc(rows, func(r scores.Row) bool {
		// Depth is negative for whole models.
		return r.Depth < 0 || r.OtherLayer != "" && r.OtherLayer != r.Layer
	})
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w over depth: no measure here is one of layers", errEmpty)
	}
	x, title := func(r *scores.Row) float64 { return float64(r.Depth) }, report.DepthChart.X.Title
	if o.Depth == "relative" || o.Depth == "" && report.DepthsDiffer(rows) {
		run := o.Run // all rows of the run: 0 is the first layer of a model in them, 1 the last
		if run == nil {
			run = rows
		}
		x, title = report.RelativeDepth(run), report.DepthChart.Relative.Title
	}
	return curves(rows, o, x, func(group) string { return title }, "layer")
}

// drawParameter draws curves over the numeric values of a transformation's parameter, such as an
// angle, averaged over trials (repetitions of all random draws). Rows with a factor (a class or
// other limit to the samples) are drawn only if there are no others.
func drawParameter(rows []scores.Row, o Options) (*Figure, error) {
	rows = numbersOnly(slices.DeleteFunc(report.OverTrials(rows), func(r scores.Row) bool { return math.IsNaN(parameter(&r)) }))
	plain := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Factor != "" })
	if len(plain) > 0 {
		rows = plain
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w over a parameter: no transformation here has a list of numbers", errEmpty)
	}
	title := func(g group) string {
		var of []scores.Row
		for _, m := range g.series {
			of = append(of, m.rows...)
		}
		names := Field("name").Distinct(o.measures, of)
		if len(names) != 1 {
			return report.ParameterChart.X.Title
		}
		return clean(cmp.Or(o.Parameters[names[0]], "value of "+names[0]))
	}
	f, err := curves(rows, o, parameter, title, "transform", "parameter")
	if err != nil && len(Field("layer").Distinct(o.measures, rows)) > maxColours && !errors.Is(err, errEmpty) {
		return nil, fmt.Errorf("%w; --layer chooses layers", err)
	}
	return f, err
}

// drawConfidence draws scores over the least confidence of the detected boxes that they count.
func drawConfidence(rows []scores.Row, o Options) (*Figure, error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return math.IsNaN(report.Confidence(&r)) })
	rows = numbersOnly(report.Overview(rows))
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w over confidence: dense-equivariance alone has scores by confidence", errEmpty)
	}
	return curves(rows, o, report.Confidence, func(group) string { return report.ConfidenceChart.X.Title }, "factor")
}

// parameter returns the value of a row's parameter, NaN if it has none.
func parameter(r *scores.Row) float64 {
	v, err := strconv.ParseFloat(r.Parameter, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// curves draws lines over x, whose title may differ between panels. The fields in onAxis are shown
// by the x axis and get no colour.
func curves(rows []scores.Row, o Options, x func(*scores.Row) float64, title func(group) string, onAxis ...Field) (*Figure, error) {
	if !o.Every {
		rows = headlines(rows, o.measures) // the main statistics of each measure
	}
	order := slices.Clone(curveOrder)
	if slices.Contains(onAxis, "parameter") {
		order = append(order, "name") // of the transformation, without the value of its parameter
	}
	parts, err := divide(rows, o, order, onAxis...) // into panels, and series of one colour each
	if err != nil {
		return nil, err
	}
	o = parts.keepTogether(o) // the panels of one model in one line
	s := newStyle(o)
	var panels []*plot.Plot
	for _, g := range parts.groups {
		p := s.panel(s.fit(s.label, g.title, panelRoom(o, len(parts.groups))), s.fold(s.label, title(g), panelRoom(o, len(parts.groups))), s.valueTitle(g, valueAxisLength(o, len(parts.groups))))
		for _, m := range g.series {
			if err := addCurve(p, m, x, g.statistic); err != nil {
				return nil, err
			}
		}
		s.setValueRange(p, g, o)
		panels = append(panels, p)
	}
	f := newFigure(panels, parts.legend(), o, s)
	if o.Height == 0 { // titles of several lines make the figure higher, not the data area lower
		lines := 1
		for _, p := range panels {
			lines = max(lines, 1+strings.Count(p.X.Label.Text, "\n"))
		}
		f.height += vg.Length(f.down()*(lines-1)) * s.label.Size * 1.2
	}
	return f, nil
}

// panelRoom returns the width available to the title of a panel.
func panelRoom(o Options, panels int) vg.Length {
	return width(o)/vg.Length(panelsAcross(panels, o)) - 10*vg.Millimeter // less the vertical axis
}

// valueTitle returns the title of a value axis that has the given length.
func (s style) valueTitle(g group, room vg.Length) string {
	return s.fold(s.label, g.statistic.Title, room)
}

// valueAxisLength returns the length of a vertical value axis.
func valueAxisLength(o Options, panels int) vg.Length {
	return panelHeight(panels, o) - 11*vg.Millimeter // less the title and the horizontal axis
}

// setValueRange sets the range of the value axis: that of the values with Options.Zoom, else that
// of the statistic if it is [0, 1], so that figures are comparable. Otherwise the axis includes 0
// and all values. It also widens the horizontal axis by 2 % at both ends.
func (s style) setValueRange(p *plot.Plot, g group, o Options) {
	low, high := extent(g)
	switch {
	case o.Zoom:
	case g.statistic.Range == measure.ZeroToOne:
		low, high = min(0, low), max(1, high)
	default:
		low, high = min(0, low), max(0, high)
	}
	margin := cmp.Or(0.03*(high-low), 0.5*max(1e-9, math.Abs(high))) // the second if they are equal
	p.Y.Min, p.Y.Max = low, high
	if o.Zoom || low < 0 {
		p.Y.Min -= margin
	}
	if o.Zoom || high > 1 || g.statistic.Range.High != 1 {
		p.Y.Max += margin
	}
	if pad := 0.02 * (p.X.Max - p.X.Min); pad > 0 {
		p.X.Min, p.X.Max = p.X.Min-pad, p.X.Max+pad
	}
}

// extent returns the range of all values of a panel.
func extent(g group) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, m := range g.series {
		for _, r := range m.rows {
			for _, v := range []float64{r.Value, r.Low, r.High, r.Null} {
				if finite(v) {
					low, high = min(low, v), max(high, v)
				}
			}
		}
	}
	return low, high
}

// maxMarkers is the largest number of points of a curve that are marked.
const maxMarkers = 60

// addCurve draws a series as a line over x, with a band for its intervals and its null (the score
// by chance). Grey lines, the many beside a highlighted one, have neither.
func addCurve(p *plot.Plot, m member, x func(*scores.Row) float64, about measure.StatisticDescriptor) error {
	rows := slices.Clone(m.rows)
	slices.SortStableFunc(rows, func(a, b scores.Row) int { return cmp.Compare(x(&a), x(&b)) })
	l, grey := m.look, m.look.colour == greyLook.colour
	var value, low, high, null plotter.XYs
	for i := range rows {
		r, at := &rows[i], x(&rows[i])
		value = append(value, plotter.XY{X: at, Y: r.Value})
		if finite(r.Low) && finite(r.High) {
			low, high = append(low, plotter.XY{X: at, Y: r.Low}), append(high, plotter.XY{X: at, Y: r.High})
		}
		if finite(r.Null) {
			null = append(null, plotter.XY{X: at, Y: r.Null})
		}
	}
	if !grey { // the bands of many lines would hide the lines
		if err := addNull(p, null, l, about); err != nil {
			return err
		}
		if err := addBand(p, low, high, l, 0.2); err != nil {
			return err
		}
	}
	line, err := plotter.NewLine(value)
	if err != nil {
		return err
	}
	line.LineStyle = l.line(1)
	p.Add(line)
	if len(value) <= maxMarkers && !grey {
		marks, err := plotter.NewScatter(value)
		if err != nil {
			return err
		}
		marks.GlyphStyle = l.mark(1.6)
		p.Add(marks)
	}
	return nil
}

// addNull draws the null as a dotted line, with a shaded area below it if higher is better.
func addNull(p *plot.Plot, null plotter.XYs, l look, about measure.StatisticDescriptor) error {
	if len(null) == 0 {
		return nil
	}
	if about.Direction == measure.Higher && len(null) > 1 {
		floor := slices.Clone(null)
		for i := range floor {
			floor[i].Y = min(0, null[i].Y)
		}
		if err := addBand(p, floor, null, l, 0.07); err != nil {
			return err
		}
	}
	line, err := plotter.NewLine(null)
	if err != nil {
		return err
	}
	line.LineStyle = l.line(0.6)
	line.LineStyle.Dashes = []vg.Length{0.8, 1.6}
	p.Add(line)
	return nil
}

// addBand fills the area between two curves over the same x.
func addBand(p *plot.Plot, low, high plotter.XYs, l look, opacity float64) error {
	if len(low) < 2 {
		return nil
	}
	outline := slices.Clone(high)
	for _, at := range slices.Backward(low) {
		outline = append(outline, at)
	}
	band, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = l.withOpacity(opacity), 0
	p.Add(band)
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// numbersOnly returns the rows whose value is a number.
func numbersOnly(rows []scores.Row) []scores.Row {
	return slices.DeleteFunc(rows, func(r scores.Row) bool { return !finite(r.Value) })
}
