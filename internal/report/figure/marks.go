package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// maxMarkers is the largest number of points of a curve that are marked.
const maxMarkers = 60

// lines draws each series of a panel as a curve, and unless it is grey its intervals and null.
func (d *drawing) lines(p *plot.Plot, g group) error {
	p.X.Label.Text = d.style.fold(d.style.label, d.placeTitle(g), d.size.room())
	p.Y.Label.Text = d.valueTitle(g, d.size.axisLength())
	for _, m := range g.series {
		var value, low, high, null plotter.XYs
		rows := slices.Clone(m.rows)
		slices.SortStableFunc(rows, func(a, b scores.Row) int { return cmp.Compare(d.place(&a), d.place(&b)) })
		for _, r := range rows {
			x := d.place(&r)
			value = append(value, plotter.XY{X: x, Y: r.Value})
			if finite(r.Low) && finite(r.High) {
				low, high = append(low, plotter.XY{X: x, Y: r.Low}), append(high, plotter.XY{X: x, Y: r.High})
			}
			if finite(r.Null) {
				null = append(null, plotter.XY{X: x, Y: r.Null})
			}
		}
		grey := m.look.colour == greyLook.colour
		if len(null) > 0 && !grey {
			dotted := draw.LineStyle{Color: m.look.colour, Width: vg.Points(0.6), Dashes: []vg.Length{0.8, 1.6}}
			line := &plotter.Line{XYs: null, LineStyle: dotted}
			if g.statistic.Direction == measure.Higher {
				line.FillColor = m.look.withOpacity(0.07)
			}
			p.Add(line)
		}
		if len(low) > 1 && !grey {
			p.Add(band(low, high, m.look, 0.2))
		}
		p.Add(&plotter.Line{XYs: value, LineStyle: m.look.line(1)})
		if len(value) <= maxMarkers && !grey {
			p.Add(&plotter.Scatter{XYs: value, GlyphStyle: m.look.mark(1.6)})
		}
	}
	p.Y.Min, p.Y.Max = d.valueRange(g)
	if pad := 0.02 * (p.X.Max - p.X.Min); pad > 0 {
		p.X.Min, p.X.Max = p.X.Min-pad, p.X.Max+pad
	}
	return nil
}

// placeTitle returns the title of the horizontal axis of curves: that of the parameter if the panel
// has only one transformation.
func (d *drawing) placeTitle(g group) string {
	names := Field("name").Distinct(d.measures, g.rows())
	if d.chart.X.Field != "parameter" || len(names) != 1 {
		return d.chart.X.Title
	}
	return cmp.Or(d.Parameters[names[0]], "value of "+names[0])
}

// valueTitle returns the title of a value axis of length room.
func (d *drawing) valueTitle(g group, room vg.Length) string {
	return d.style.fold(d.style.label, g.statistic.Title, room)
}

// valueRange returns the range of a value axis: that of the values with Options.Zoom, else that of
// the statistic if it is [0, 1], so that figures are comparable. Otherwise the axis includes 0 and
// all values.
func (d *drawing) valueRange(g group) (low, high float64) {
	low, high = extent(g)
	switch {
	case d.Zoom:
	case g.statistic.Range == measure.ZeroToOne:
		low, high = min(0, low), max(1, high)
	default:
		low, high = min(0, low), max(0, high)
	}
	from, to := low, high
	margin := cmp.Or(0.03*(high-low), 0.5*max(1e-9, math.Abs(high))) // the second if they are equal
	if d.Zoom || low < 0 {
		from -= margin
	}
	if d.Zoom || high > 1 || g.statistic.Range.High != 1 {
		to += margin
	}
	return from, to
}

// extent returns the range of all values of a panel.
func extent(g group) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, r := range g.rows() {
		for _, v := range []float64{r.Value, r.Low, r.High, r.Null} {
			if finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high
}

// band returns the area between two curves over the same x.
func band(low, high plotter.XYs, l look, opacity float64) plot.Plotter {
	outline := slices.Clone(high)
	for _, at := range slices.Backward(low) {
		outline = append(outline, at)
	}
	return &plotter.Polygon{XYs: []plotter.XYs{outline}, Color: l.withOpacity(opacity)}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// bins is the number of bins of a histogram. Finer ones would only make peaks narrower.
const bins = 25

// steps draws a histogram of the values of each series: the share of the rows in each bin.
func (d *drawing) steps(p *plot.Plot, g group) error {
	shares := strings.ReplaceAll(report.DistributionChart.Y.Title, "{item}", "sample")
	p.X.Label.Text = d.valueTitle(g, d.size.room())
	p.Y.Label.Text = d.style.fold(d.style.label, shares, d.size.axisLength())
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range g.rows() {
		low, high = min(low, r.Value), max(high, r.Value)
	}
	if g.statistic.Range == measure.ZeroToOne && !d.Zoom {
		low, high = min(0, low), max(1, high)
	}
	if low == high {
		low, high = low-0.5, high+0.5
	}
	for _, m := range g.series {
		var outline plotter.XYs
		shares := histogram(m.rows, low, high)
		for i, v := range append(shares, shares[bins-1]) {
			outline = append(outline, plotter.XY{X: low + (high-low)*float64(i)/bins, Y: v})
		}
		p.Add(&plotter.Line{XYs: outline, StepStyle: plotter.PostStep, LineStyle: m.look.line(0.9),
			FillColor: m.look.withOpacity(0.12)})
	}
	p.Y.Min, p.X.Min, p.X.Max = 0, low, high
	return nil
}

// histogram returns the share of the values in each bin.
func histogram(rows []scores.Row, low, high float64) []float64 {
	shares := make([]float64, bins)
	for _, r := range rows {
		i := int((r.Value - low) / (high - low) * bins)
		shares[min(max(i, 0), bins-1)] += 1 / float64(len(rows))
	}
	return shares
}

const (
	barHeight = 2.6 * vg.Millimeter // with the space around it
	maxBars   = 200                 // in a panel
)

// bars draws a bar for each row, grouped by the field of the vertical axis, with its interval and,
// at its null, a dashed tick.
func (d *drawing) bars(p *plot.Plot, g group) error {
	names := d.sides.Down.Distinct(d.measures, d.parts.rows)
	if n := len(names) * len(d.parts.names); n > maxBars {
		return fmt.Errorf("the figure would have %d bars, but %d is the maximum: select fewer scores", n, maxBars)
	}
	p.X.Label.Text = d.valueTitle(g, d.size.room())
	low, high := d.valueRange(g)
	top, bottom := 0.5, 0.5-float64(len(names))
	p.Add(&plotter.Grid{Vertical: draw.LineStyle{Color: d.style.hairline, Width: vg.Points(0.4)}})
	line := func(x1, y1, x2, y2 float64, style draw.LineStyle) {
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: x1, Y: y1}, {X: x2, Y: y2}}, LineStyle: style})
	}
	ink := draw.LineStyle{Color: d.style.ink, Width: vg.Points(0.6)}
	dashed := draw.LineStyle{Color: d.style.ink, Width: vg.Points(0.8), Dashes: []vg.Length{1, 1}}
	const share = 0.84 // of the distance between names, which is 1, that their bars take
	band := share / float64(len(d.parts.names))
	half := 0.42 * band
	for _, m := range g.series {
		for _, r := range m.rows {
			name := slices.Index(names, d.sides.Down.Of(d.measures, &r))
			y := share/2 - float64(name) - (float64(m.place)+0.5)*band
			p.Add(&plotter.Polygon{Color: m.look.withOpacity(0.75),
				XYs: []plotter.XYs{{{X: 0, Y: y - half}, {X: r.Value, Y: y - half}, {X: r.Value, Y: y + half}, {X: 0, Y: y + half}}}})
			if finite(r.Low) && finite(r.High) {
				line(r.Low, y, r.High, y, ink)
				line(r.Low, y-half/2, r.Low, y+half/2, ink)
				line(r.High, y-half/2, r.High, y+half/2, ink)
			}
			if finite(r.Null) {
				line(r.Null, y-half, r.Null, y+half, dashed)
			}
		}
	}
	line(0, bottom, 0, top, draw.LineStyle{Color: d.style.muted, Width: vg.Points(0.5)})
	var ticks plot.ConstantTicks
	for i, name := range names {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: d.style.fit(d.style.small, name, d.size.room()*0.4)})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width, p.Y.Tick.Label.Color = ticks, 0, 0, d.style.ink
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low, high, bottom, top
	return nil
}
