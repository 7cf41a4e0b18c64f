package figure

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

const (
	barHeight = 2.6 * vg.Millimeter // with the space around it
	maxBars   = 200                 // in a panel
)

// drawBars draws a bar for each row (one score) that summary and, unless o.Every is set, headlines
// (the main statistics of each measure) select, grouped by the field that category returns. If
// there are scores of whole models, those of layers are left out.
func drawBars(rows []scores.Row, o Options) (*Figure, error) {
	rows = numbersOnly(summary(rows))
	if !o.Every {
		rows = headlines(rows, o.measures)
	}
	if plain := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Layer != "" }); len(plain) > 0 {
		rows = plain // prefer scores of whole models to those of layers
	}
	if len(rows) == 0 {
		return nil, errEmpty
	}
	by := category(rows, o)
	names := by.Distinct(o.measures, rows)
	// curveOrder has the fields that are assigned to colours and panels if they differ.
	parts, err := divide(rows, o, curveOrder, by)
	if err != nil {
		return nil, err
	}
	if len(names)*len(parts.names) > maxBars {
		return nil, fmt.Errorf("the figure would have %d bars, but %d is the maximum: select fewer scores", len(names)*len(parts.names), maxBars)
	}
	s := newStyle(o)
	step := vg.Length(len(parts.names))*barHeight + 1.6*vg.Millimeter // bars of one name, and a gap
	var panels []*plot.Plot
	for _, g := range parts.groups {
		p := s.panel(s.fit(s.label, g.title, panelRoom(o, len(parts.groups))), s.valueTitle(g, panelRoom(o, len(parts.groups))), "")
		b := &bars{group: g, measures: o.measures, names: names, by: by, perName: len(parts.names), style: s}
		p.Add(b)
		labelCategories(p, s, names, o, len(parts.groups))
		s.setValueRange(p, g, o) // of the vertical axis, but the values of bars are horizontal
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.Y.Min, p.Y.Max, 0.5-float64(len(names)), 0.5
		panels = append(panels, p)
	}
	legend := parts.legend()
	for i := range legend {
		legend[i].filled = true
	}
	f := newFigure(panels, legend, o, s)
	if o.Height == 0 {
		f.height = f.headHeight() + vg.Length(f.down())*(vg.Length(len(names))*step+14*vg.Millimeter)
	}
	return f, nil
}

// summary returns the rows of an overview, such as means over the values of a parameter and over
// trials (repetitions). If a filter has selected only rows of single values, it returns those, over
// trials.
func summary(rows []scores.Row) []scores.Row {
	if kept := report.Overview(rows); len(kept) > 0 {
		return kept
	}
	return report.OverTrials(rows)
}

// category returns the field of the categories: the requested one, the factors (known properties of
// the samples, or classes) if there are no rows over all samples, or the first field of bar charts
// that differs. The Down of Sides is the field of a vertical axis.
func category(rows []scores.Row, o Options) Field {
	if o.Across != "" {
		return o.Across
	}
	sides := slices.Concat([]report.Sides{{Down: "factor"}}, report.BarsChart.Sides)
	if slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Factor == "" }) {
		sides = sides[1:]
	}
	found := Field("model")
	for _, s := range slices.Backward(sides) {
		if f := s.Down; f != "parameter" && f != o.Colour && f != o.Panel && len(f.Distinct(o.measures, rows)) > 1 {
			found = f
		}
	}
	for _, s := range sides { // prefer a field with more values than there are colours
		if f := s.Down; f != "parameter" && f != o.Colour && f != o.Panel && len(f.Distinct(o.measures, rows)) > maxColours && len(found.Distinct(o.measures, rows)) <= maxColours {
			found = f
		}
	}
	return found
}

// labelCategories labels the vertical axis of a panel with the names of the categories.
func labelCategories(p *plot.Plot, s style, names []string, o Options, panels int) {
	var ticks plot.ConstantTicks
	for i, name := range names {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: s.fit(s.small, name, panelRoom(o, panels)*0.4)})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = ticks, 0, 0
	p.Y.Tick.Label.Color = s.ink
}

// A bars plotter draws the bars of a panel with their intervals and, at each null (the score
// expected by chance), a dashed line.
type bars struct {
	group
	measures report.Measures
	names    []string // of the categories, from top to bottom
	by       Field    // field whose values are the names
	perName  int      // number of bars with the same name, one for each colour
	style    style
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, t := range niceTicks(p.X.Min, p.X.Max) {
		c.StrokeLine2(draw.LineStyle{Color: b.style.hairline, Width: vg.Points(0.4)}, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
	}
	const categoryHeight = 0.84 // of the bars of a name; the distance between names is 1
	band := categoryHeight / float64(b.perName)
	for _, m := range b.group.series { // the rows of one colour, the one with index m.place
		l := m.look
		for _, r := range m.rows {
			at := -float64(slices.Index(b.names, b.by.Of(b.measures, &r))) + categoryHeight/2 - (float64(m.place)+0.5)*band
			middle, half := y(at), (y(at+band*0.42) - y(at))
			c.SetColor(l.withOpacity(0.75))
			c.Fill(vg.Rectangle{Min: vg.Point{X: x(min(0, r.Value)), Y: middle - half}, Max: vg.Point{X: x(max(0, r.Value)), Y: middle + half}}.Path())
			if finite(r.Low) && finite(r.High) {
				ink := draw.LineStyle{Color: b.style.ink, Width: vg.Points(0.6)}
				c.StrokeLine2(ink, x(r.Low), middle, x(r.High), middle)
				for _, end := range []float64{r.Low, r.High} {
					c.StrokeLine2(ink, x(end), middle-half*0.5, x(end), middle+half*0.5)
				}
			}
			if finite(r.Null) {
				c.StrokeLine2(draw.LineStyle{Color: b.style.ink, Width: vg.Points(0.8), Dashes: []vg.Length{1, 1}}, x(r.Null), middle-half, x(r.Null), middle+half)
			}
		}
	}
	c.StrokeLine2(draw.LineStyle{Color: b.style.muted, Width: vg.Points(0.5)}, x(0), c.Min.Y, x(0), c.Max.Y)
}

// DataRange implements plot.DataRanger.
func (b *bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	low, high := extent(b.group)
	return min(0, low), max(0, high), 0.5 - float64(len(b.names)), 0.5
}
