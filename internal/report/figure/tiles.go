package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

const (
	maxTiles    = 400                 // columns and rows of a heat map
	nameHeight  = 2.9 * vg.Millimeter // line height of the names of rows
	labelHeight = 20 * vg.Millimeter  // of titles and names of columns of a panel
	nameWidth   = 3.4 * vg.Millimeter // of a rotated name of a column
	scaleWidth  = 15 * vg.Millimeter  // of a colour bar with its labels and its title
	scaleSteps  = 64                  // rectangles of a colour bar
)

// A matrix holds the values of a heat map, NaN for missing ones.
type matrix struct {
	across, down []string    // names of the columns and of the rows
	values       [][]float64 // down x across
	scale        *colourBar
	style        style
}

// tiles draws the heat map of a panel. The first layer is at the bottom, as in a drawing of a
// network. If the shortened names of layers are equal, their depths are shown.
func (d *drawing) tiles(p *plot.Plot, g group) error {
	down, across := d.sides.Down, d.sides.Across
	rows := g.rows()
	byDepth := func(a, b scores.Row) int { return cmp.Compare(a.Depth, b.Depth) }
	if d.ofLayers() {
		slices.SortStableFunc(rows, byDepth)
	}
	m := &matrix{across: across.Distinct(d.measures, rows), down: down.Distinct(d.measures, rows), scale: d.scale, style: d.style}
	if len(m.across) > maxTiles || len(m.down) > maxTiles {
		return fmt.Errorf("a heat map of %d by %d exceeds %d: select fewer scores", len(m.across), len(m.down), maxTiles)
	}
	// A model that is compared with itself has the same order of layers on both axes.
	if across == "other" && down == "layer" && !slices.ContainsFunc(m.across, func(n string) bool { return !slices.Contains(m.down, n) }) {
		slices.SortFunc(m.across, func(a, b string) int { return slices.Index(m.down, a) - slices.Index(m.down, b) })
	}
	var depths []string
	if down == "layer" {
		slices.Reverse(m.down)
		for _, name := range m.down {
			i := slices.IndexFunc(rows, func(r scores.Row) bool { return r.Layer == name })
			depths = append(depths, fmt.Sprint(rows[i].Depth))
		}
	}
	for range m.down {
		m.values = append(m.values, slices.Repeat([]float64{math.NaN()}, len(m.across)))
	}
	x, y := places(m.across), places(m.down)
	for i := range rows {
		r := &rows[i]
		m.values[y[down.Of(d.measures, r)]][x[across.Of(d.measures, r)]] = r.Value
	}
	p.Add(m)

	room := d.size.room() - scaleWidth/vg.Length(d.size.across)
	fitting := int((d.tilesHeight()-labelHeight)/nameHeight + 0.5) // names of rows that fit
	p.X.Label.Text, p.Y.Label.Text = across.Title(), down.Title()
	if down == "pair" {
		p.Y.Label.Text = ""
	}
	p.X.Tick.Marker = d.style.names(m.across, 1, room*0.3, int(room/nameWidth))
	p.Y.Tick.Marker = d.style.names(m.down, -1, room*0.42, fitting)
	labels := d.style.fitAll(d.style.small, m.down, room*0.42)
	if depths != nil && countDistinct(labels) < len(labels) {
		p.Y.Tick.Marker, p.Y.Label.Text = d.style.names(depths, -1, room, fitting), Field("depth").Title()
	}
	each := 0.5 * room / vg.Length(len(m.across)) // the names of rows have the other half of the width
	if slices.ContainsFunc(m.across, func(n string) bool {
		return utf8.RuneCountInString(n) > 4 && d.style.textWidth(d.style.small, n) > each
	}) {
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, right, below
	}
	p.X.Tick.Length, p.Y.Tick.Length, p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0, 0, 0
	return nil
}

// places returns the index of each name.
func places(names []string) map[string]int {
	out := map[string]int{}
	for i, n := range names {
		out[n] = i
	}
	return out
}

// ofLayers reports whether a side of the heat map shows layers.
func (d *drawing) ofLayers() bool {
	sides := []Field{d.sides.Down, d.sides.Across}
	return slices.Contains(sides, "layer") || slices.Contains(sides, "depth")
}

// tilesHeight returns the height of a heat map with room for the name of each row, within bounds.
func (d *drawing) tilesHeight() vg.Length {
	if d.size.height != 0 {
		return d.size.panelHeight()
	}
	most := 0
	for _, g := range d.parts.groups {
		most = max(most, len(d.sides.Down.Distinct(d.measures, g.rows())))
	}
	return min(max(vg.Length(most)*nameHeight, 18*vg.Millimeter), 130*vg.Millimeter) + labelHeight
}

// names returns ticks that label every row or column, or only some at equal steps, so that there
// are at most as many labels as most says. The i-th lies at sign * i on the axis. room is the
// largest width of a label.
func (s style) names(all []string, sign float64, room vg.Length, most int) plot.ConstantTicks {
	every := max(1, (len(all)+most-1)/max(1, most))
	var out plot.ConstantTicks
	for i, label := range s.fitAll(s.small, all, room) {
		if i%every == 0 {
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
			tile := vg.Rectangle{
				Min: vg.Point{X: x(float64(j) - 0.5), Y: y(-float64(i) - 0.5)},
				Max: vg.Point{X: x(float64(j) + 0.5), Y: y(-float64(i) + 0.5)},
			}
			ground := m.scale.At(v)
			c.SetColor(ground)
			c.Fill(tile.Path())
			m.label(c, tile, v, ground)
		}
	}
}

// label writes a value into its tile if it fits.
func (m *matrix) label(c draw.Canvas, tile vg.Rectangle, v float64, ground color.Color) {
	words := fmt.Sprintf("%.2f", v)
	switch {
	case words == "-0.00":
		words = "0.00"
	case !finite(v):
		words = "–"
	case math.Abs(v) >= 10:
		words = report.Number(v)
	}
	size, font := tile.Size(), m.style.small
	if m.style.textWidth(font, "0.00") > size.X*0.9 || m.style.textWidth(font, words) > size.X || font.Size*1.1 > size.Y {
		return
	}
	t := m.style.text(font, middle, centre)
	t.Color = report.Ink(ground)
	c.FillText(t, vg.Point{X: (tile.Min.X + tile.Max.X) / 2, Y: (tile.Min.Y + tile.Max.Y) / 2}, words)
}

// DataRange implements plot.DataRanger.
func (m *matrix) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(m.across)) - 0.5, 0.5 - float64(len(m.down)), 0.5
}

// A colourBar is the colour scale of a heat map with its title.
type colourBar struct {
	report.ColourScale
	title string
}

// colourBar returns the colour bar that all panels share, over [0, 1] if that is the range of all
// statistics. It has a title if there is one statistic.
func (d *drawing) colourBar() *colourBar {
	var values []float64
	of := d.parts.groups[0].statistic.Range
	for _, g := range d.parts.groups {
		if g.statistic.Range != of {
			of = measure.AnyNumber
		}
	}
	for _, r := range d.parts.rows {
		values = append(values, r.Value)
	}
	bar := &colourBar{ColourScale: report.NewColourScale(values, of)}
	if !d.parts.severalStatistics() {
		bar.title = d.parts.groups[0].statistic.Title
	}
	return bar
}

// draw draws the colour bar along the right side of a canvas.
func (s *colourBar) draw(c draw.Canvas, style style) {
	x := c.Max.X - scaleWidth + 3*vg.Millimeter
	low, high := c.Min.Y+10*vg.Millimeter, c.Max.Y-8*vg.Millimeter
	step := (high - low) / scaleSteps
	for i := range scaleSteps {
		c.SetColor(s.At(s.Low + (s.High-s.Low)*(float64(i)+0.5)/scaleSteps))
		y := low + vg.Length(i)*step
		// A rectangle is a little higher than a step, so that no gap shows.
		c.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + 2.5*vg.Millimeter, Y: y + step*1.04}}.Path())
	}
	for _, t := range niceTicks(s.Low, s.High) {
		y := low + vg.Length((t.Value-s.Low)/(s.High-s.Low))*(high-low)
		style.write(c, style.small, t.Label, vg.Point{X: x + 3.2*vg.Millimeter, Y: y}, left, centre)
	}
	t := style.text(style.small, middle, below)
	t.Rotation = math.Pi / 2
	c.FillText(t, vg.Point{X: x + 8*vg.Millimeter, Y: (c.Min.Y + c.Max.Y) / 2}, style.fit(style.small, s.title, c.Max.Y-c.Min.Y))
}
