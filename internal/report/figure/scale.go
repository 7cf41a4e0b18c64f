package figure

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
)

// A colourBar is the colour scale of a heat map with its title.
type colourBar struct {
	report.ColourScale
	title string
}

// scaleWidth is the width of a colour bar with its labels and its title.
const scaleWidth = 15 * vg.Millimeter

// colourBarOf returns the colour bar that all panels (heat maps) of a figure share, over [0, 1] if
// that is the range of all statistics. Each of parts.groups holds the scores of one panel.
func colourBarOf(parts *split) *colourBar {
	var values []float64
	of := parts.groups[0].statistic.Range
	for _, g := range parts.groups {
		for _, m := range g.series {
			for _, r := range m.rows {
				values = append(values, r.Value)
			}
		}
		if g.statistic.Range != of {
			of = measure.AnyNumber
		}
	}
	return &colourBar{ColourScale: report.NewColourScale(values, of)}
}

// draw draws the colour bar along the right side of a canvas.
func (s *colourBar) draw(c draw.Canvas, style style) {
	const steps = 64 // rectangles, each a little higher than a step, so that no gap shows
	x := c.Max.X - scaleWidth + 3*vg.Millimeter
	low, high := c.Min.Y+10*vg.Millimeter, c.Max.Y-8*vg.Millimeter
	step := (high - low) / steps
	for i := range steps {
		c.SetColor(s.At(s.Low + (s.High-s.Low)*(float64(i)+0.5)/steps))
		y := low + vg.Length(i)*step
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
