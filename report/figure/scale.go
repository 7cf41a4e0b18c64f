package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/measure"
)

var grey = color.RGBA{0x60, 0x60, 0x60, 255}

// viridis at eighths: perceptually uniform from dark to light, also for colour-blind readers and in
// greyscale (Smith and van der Walt 2015).
var viridis = []color.RGBA{
	{68, 1, 84, 255}, {71, 45, 123, 255}, {59, 82, 139, 255}, {44, 114, 142, 255}, {33, 145, 140, 255},
	{40, 174, 128, 255}, {94, 201, 98, 255}, {173, 220, 48, 255}, {253, 231, 37, 255},
}

// A colourScale maps values to colours and draws the colour bar.
type colourScale struct {
	low, high float64
	title     string
}

const scaleWidth = 15 * vg.Millimeter

// scaleOf returns a scale from 0 to 1 if that is the range of all statistics, otherwise over the
// range of the values.
func scaleOf(parts *split) *colourScale {
	s := &colourScale{low: math.Inf(1), high: math.Inf(-1)}
	unit := true
	for _, g := range parts.groups {
		for _, m := range g.series {
			for _, r := range m.rows {
				s.low, s.high = min(s.low, r.Value), max(s.high, r.Value)
			}
		}
		unit = unit && g.statistic.Range == measure.ZeroToOne
	}
	if unit {
		s.low, s.high = min(0, s.low), max(1, s.high)
	}
	if s.low == s.high {
		s.low, s.high = s.low-0.5, s.high+0.5
	}
	return s
}

// colour returns the colour of a value, grey for NaN.
func (s *colourScale) colour(v float64) color.Color {
	if !finite(v) {
		return color.Gray{0xe4}
	}
	at := min(1, max(0, (v-s.low)/(s.high-s.low))) * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	a, b, t := viridis[i], viridis[i+1], at-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// draw draws the colour bar along the right side of a canvas.
func (s *colourScale) draw(c draw.Canvas, style style) {
	const steps = 64
	x := c.Max.X - scaleWidth + 3*vg.Millimeter
	low, high := c.Min.Y+10*vg.Millimeter, c.Max.Y-8*vg.Millimeter
	step := (high - low) / steps
	for i := range steps {
		c.SetColor(s.colour(s.low + (s.high-s.low)*(float64(i)+0.5)/steps))
		y := low + vg.Length(i)*step
		c.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + 2.5*vg.Millimeter, Y: y + step*1.04}}.Path())
	}
	for _, t := range niceTicks(s.low, s.high) {
		y := low + vg.Length((t.Value-s.low)/(s.high-s.low))*(high-low)
		style.write(c, style.small, t.Label, vg.Point{X: x + 3.2*vg.Millimeter, Y: y}, left, centre)
	}
	t := style.text(style.small, middle, above)
	t.Rotation = math.Pi / 2
	c.FillText(t, vg.Point{X: x + 8*vg.Millimeter, Y: (low + high) / 2}, style.fit(style.small, s.title, high-low))
}
