package figure

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// maxCells is the maximum number of columns and of rows of a heat map.
const maxCells = 400

// drawHeat draws heat maps. Each of rows is one score of a model, a layer, a transformation and so
// on: these are its fields. A panel is one heat map of the figure. If there are too many models for
// a panel each, and the options name no fields, it draws layers (down) by models (across) instead.
func drawHeat(rows []scores.Row, o Options) (*Figure, error) {
	f, err := heatMaps(rows, o)
	if errors.Is(err, errPanels) && o.Across == "" && o.Down == "" {
		o.Down, o.Across = "layer", "model"
		return heatMaps(rows, o)
	}
	return f, err
}

// heatMaps draws a heat map for each panel. Its sides are the fields of its rows (down) and of its
// columns (across). If the options name neither, they are those that the report would show.
func heatMaps(rows []scores.Row, o Options) (*Figure, error) {
	all := report.OverTrials(rows) // means over trials, the repetitions of every random draw
	if o.Across == "" && o.Down == "" {
		sides := report.HeatSides(all, o.measures)
		// summary leaves out single classes, and values of a parameter that have a mean. "pair" is a
		// factor (a property of samples, such as a class) and a transformation.
		if sides.Down != "pair" {
			sides = report.HeatSides(summary(rows), o.measures)
		}
		o.Down, o.Across = sides.Down, sides.Across
	}
	across, down := cmp.Or(o.Across, "transform"), cmp.Or(o.Down, "model")
	rows = matrixRows(rows, all, across, down)
	if !o.Every { // only the main statistics of each measure
		rows = headlines(rows, o.measures)
	}
	if len(rows) == 0 {
		return nil, errEmpty
	}
	ofLayers := slices.ContainsFunc([]Field{across, down}, func(f Field) bool { return f == "layer" || f == "depth" })
	if ofLayers { // rows of whole models have no layer
		rows = slices.DeleteFunc(rows, func(r scores.Row) bool { return r.Layer == "" })
	}
	if down == "pair" { // a factor and a transformation
		o.maxAcross = 2 // panels side by side, because names of pairs are long
	}
	order := curveOrder
	if slices.ContainsFunc([]Field{across, down}, func(f Field) bool { return f == "parameter" || f == "part" }) {
		order = append(slices.Clone(order), "name") // of the transformation, without its parameter
	}
	// divide assigns the rows to panels by the other fields in which they differ.
	parts, err := divide(rows, o, order, shownBySides(across, down)...)
	if err != nil {
		return nil, err
	}
	o = parts.keepTogether(o) // the panels of one model in one line
	s := newStyle(o)
	scale := colourBarOf(parts)
	each, beside := matrixHeight(parts, down, o), panelsAcross(len(parts.groups), o)
	var panels []*plot.Plot
	for _, g := range parts.groups {
		if ofLayers {
			slices.SortStableFunc(g.series[0].rows, func(a, b scores.Row) int { return cmp.Compare(a.Depth, b.Depth) })
		}
		m, err := newMatrix(o.measures, g.series[0].rows, across, down, scale)
		if err != nil {
			return nil, err
		}
		title := g.title
		if parts.ownAxes() { // the panels show different statistics
			title = g.statistic.Title + trailing(g.title)
		}
		p := s.panel(s.fit(s.label, title, panelRoom(o, len(parts.groups))), axisName(across), axisName(down))
		m.style = s
		m.axes(p, panelRoom(o, len(parts.groups))-scaleWidth/vg.Length(beside), each-matrixLabelHeight)
		p.Add(m)
		panels = append(panels, p)
	}
	f := newFigure(panels, nil, o, s)
	f.scale = scale
	if !parts.ownAxes() {
		scale.title = parts.groups[0].statistic.Title
	}
	if o.Height == 0 {
		f.height = f.headHeight() + vg.Length(f.down())*each
	}
	return f, nil
}

// matrixRows returns the scores that a heat map with the given sides shows. all holds one score for
// all trials, with each value of a transformation's parameter, such as an angle, apart
// (report.OverTrials). A part is an interval of the parameter's range, such as a quarter.
func matrixRows(rows, all []scores.Row, across, down Field) []scores.Row {
	switch {
	case across == "part" || down == "part":
		return numbersOnly(inParts(all))
	case across == "parameter" || down == "parameter":
		return numbersOnly(slices.DeleteFunc(all, func(r scores.Row) bool { return r.Parameter == "" || r.Factor != "" }))
	}
	return numbersOnly(summary(rows))
}

// inParts returns the scores of single parts of a transformation's range, in order of the parts. It
// replaces the parameter by the name of the part; see report.Parts.
func inParts(rows []scores.Row) []scores.Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Parameter == "" })
	parts, order := report.Parts(rows)
	for i := range rows {
		rows[i].Parameter = parts[i]
	}
	slices.SortStableFunc(rows, func(a, b scores.Row) int {
		return cmp.Compare(slices.Index(order, a.Parameter), slices.Index(order, b.Parameter))
	})
	return rows
}

// matrixLabelHeight is the height of titles and column names of a panel.
const matrixLabelHeight = 20 * vg.Millimeter

// matrixHeight returns the height of a panel with room for the name of each row, within bounds.
func matrixHeight(parts *split, down Field, o Options) vg.Length {
	if o.Height != 0 {
		return panelHeight(len(parts.groups), o)
	}
	most := 0
	for _, g := range parts.groups {
		most = max(most, len(down.Distinct(o.measures, g.series[0].rows)))
	}
	return min(max(vg.Length(most)*nameHeight, 18*vg.Millimeter), 130*vg.Millimeter) + matrixLabelHeight
}

// nameHeight is the line height of names.
const nameHeight = 2.9 * vg.Millimeter

// trailing returns a title with a colon before it, or "".
func trailing(title string) string {
	if title == "" {
		return ""
	}
	return ": " + title
}

// axisName returns the title of an axis that shows a field.
func axisName(f Field) string {
	if f == "pair" {
		return ""
	}
	return f.Title()
}

// shownBySides returns the fields that the sides of a heat map show, so that they divide no panels.
// A score of two models has the fields reference and compared.
func shownBySides(across, down Field) []Field {
	shown := []Field{across, down}
	for side, also := range map[Field][]Field{
		"reference": {"model"}, "compared": {"model"}, "depth": {"layer"}, "parameter": {"transform"}, "part": {"transform"},
		"pair": {"factor", "transform", "name"},
	} {
		if slices.Contains(shown[:2], side) {
			shown = append(shown, also...)
		}
	}
	return shown
}

// A matrix holds the values of a heat map, NaN for missing ones.
type matrix struct {
	across, down []string    // names of the columns and of the rows
	values       [][]float64 // down x across
	depths       []string    // of the rows, if these are layers; shown if the shortened names are equal
	scale        *colourBar
	style        style
}

// newMatrix returns the values of scores by the fields of the columns (across) and of the rows
// (down). More than maxCells rows or columns are an error.
func newMatrix(measures report.Measures, rows []scores.Row, across, down Field, scale *colourBar) (*matrix, error) {
	m := &matrix{across: across.Distinct(measures, rows), down: down.Distinct(measures, rows), scale: scale}
	if len(m.across) > maxCells || len(m.down) > maxCells {
		return nil, fmt.Errorf("a heat map of %d by %d exceeds %d: select fewer scores", len(m.across), len(m.down), maxCells)
	}
	if across == "other" && down == "layer" { // layers of one model by those of another or its own
		m.across = m.orderLike(m.down, m.across)
	}
	if down == "layer" { // the first layer at the bottom, as in a drawing of a network
		slices.Reverse(m.down)
		for _, name := range m.down {
			i := slices.IndexFunc(rows, func(r scores.Row) bool { return r.Layer == name })
			m.depths = append(m.depths, fmt.Sprint(rows[i].Depth))
		}
	}
	for range m.down {
		m.values = append(m.values, slices.Repeat([]float64{math.NaN()}, len(m.across)))
	}
	indices := func(names []string) map[string]int {
		place := map[string]int{}
		for i, n := range names {
			place[n] = i
		}
		return place
	}
	x, y := indices(m.across), indices(m.down)
	for i := range rows {
		r := &rows[i]
		m.values[y[down.Of(measures, r)]][x[across.Of(measures, r)]] = r.Value
	}
	return m, nil
}

// orderLike returns names in the given order if they are the same set, so that a model compared
// with itself has the same order on both axes.
func (m *matrix) orderLike(order, names []string) []string {
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int {
		i, j := slices.Index(order, a), slices.Index(order, b)
		if i < 0 || j < 0 {
			return 0
		}
		return i - j
	})
	return out
}

// axes sets up the axes of a panel of width room and height high. A name of a column takes at most
// 0.3 of the width, that of a row at most 0.42.
func (m *matrix) axes(p *plot.Plot, room, high vg.Length) {
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(m.across))-0.5, 0.5-float64(len(m.down)), 0.5
	const columnNameWidth = 3.4 * vg.Millimeter // of a rotated name
	p.X.Tick.Marker = m.ticks(m.across, 1, room*0.3, int(room/columnNameWidth))
	p.Y.Tick.Marker = m.ticks(m.down, -1, room*0.42, int(high/nameHeight+0.5))
	if labels := m.style.fitAll(m.style.small, m.down, room*0.42); m.depths != nil && countDistinct(labels) < len(labels) {
		p.Y.Tick.Marker, p.Y.Label.Text = m.ticks(m.depths, -1, room, int(high/nameHeight+0.5)), Field("depth").Title()
	}
	if m.rotates(room) {
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, right, below
	}
	p.X.Tick.Length, p.Y.Tick.Length, p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0, 0, 0
}

// rotates reports whether the names of columns are too long to stand side by side in a panel of the
// given width, of which they have half, beside the names of rows.
func (m *matrix) rotates(room vg.Length) bool {
	each := 0.5 * room / vg.Length(len(m.across))
	return slices.ContainsFunc(m.across, func(n string) bool {
		return utf8.RuneCountInString(n) > 4 && m.style.textWidth(m.style.small, n) > each
	})
}

// ticks labels every row or column, or only some at equal steps, so that there are at most as many
// labels as most says. The i-th row or column lies at sign * i on the axis. room is the largest
// width of a label.
func (m *matrix) ticks(names []string, sign float64, room vg.Length, most int) plot.ConstantTicks {
	every := (len(names) + most - 1) / max(1, most)
	labels := m.style.fitAll(m.style.small, names, room)
	var out plot.ConstantTicks
	for i, label := range labels {
		if i%max(1, every) == 0 {
			out = append(out, plot.Tick{Value: sign * float64(i), Label: label})
		}
	}
	return out
}

// Plot implements plot.Plotter.
func (m *matrix) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range m.values {
		for j, v := range row {
			cell := vg.Rectangle{
				Min: vg.Point{X: x(float64(j) - 0.5), Y: y(-float64(i) - 0.5)},
				Max: vg.Point{X: x(float64(j) + 0.5), Y: y(-float64(i) + 0.5)},
			}
			ground := m.scale.At(v)
			c.SetColor(ground)
			c.Fill(cell.Path())
			m.label(c, cell, v, ground)
		}
	}
}

// label writes a value into its cell if it fits.
func (m *matrix) label(c draw.Canvas, cell vg.Rectangle, v float64, ground color.Color) {
	words := fmt.Sprintf("%.2f", v)
	switch {
	case words == "-0.00":
		words = "0.00"
	case !finite(v):
		words = "–"
	case math.Abs(v) >= 10:
		words = report.Number(v)
	}
	size := cell.Size()
	if m.style.textWidth(m.style.small, "0.00") > size.X*0.9 || m.style.textWidth(m.style.small, words) > size.X || m.style.small.Size*1.1 > size.Y {
		return
	}
	t := m.style.text(m.style.small, middle, centre)
	t.Color = report.Ink(ground)
	c.FillText(t, vg.Point{X: (cell.Min.X + cell.Max.X) / 2, Y: (cell.Min.Y + cell.Max.Y) / 2}, words)
}

// DataRange implements plot.DataRanger.
func (m *matrix) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(m.across)) - 0.5, 0.5 - float64(len(m.down)), 0.5
}
