package figure

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
)

// DrawScatter draws a panel for each chart. Points of one group have one colour. Too many charts,
// or none, a size out of range and a group in Options.Highlight that does not exist are errors.
func DrawScatter(charts []report.Scatter, o Options) (*Figure, error) {
	if err := checkSize(o); err != nil {
		return nil, err
	}
	if len(charts) == 0 {
		return nil, errEmpty
	}
	if len(charts) > maxPanels {
		return nil, fmt.Errorf("the scores need %d panels, but %d is the maximum: select fewer with --model or --data", len(charts), maxPanels)
	}
	var groups []string
	for _, c := range charts {
		for _, p := range c.Points {
			if !slices.Contains(groups, p.Group) {
				groups = append(groups, p.Group)
			}
		}
	}
	highlight, err := highlighted(groups, o.Highlight)
	if err != nil {
		return nil, err
	}
	s := newStyle(o)
	f := &Figure{size: newSize(o, len(charts), 1, 0), style: s, title: clean(o.Title), legend: legendOf(groups, highlight, dotSwatch)}
	room := f.room()
	for _, c := range charts {
		title := s.fit(s.label, strings.Join(c.Notes, ", "), room)
		if c.Title != "" {
			title = s.fit(s.label, c.Title, room) + "\n" + title
		}
		p := s.panel(title)
		p.X.Label.Text, p.Y.Label.Text = s.fold(s.label, c.X, room), clean(c.Y)
		s.addScatter(p, c, groups, highlight)
		if o.Labels {
			p.Add(&pointNames{chart: c, style: s})
		}
		f.panels = append(f.panels, p)
	}
	f.setHeight(min(f.width/vg.Length(f.across)*0.85, 70*vg.Millimeter))
	return f, nil
}

// addScatter draws the line of a chart with its band, and the points with their error bars.
func (s style) addScatter(p *plot.Plot, c report.Scatter, groups []string, highlight int) {
	line := func(x1, y1, x2, y2 float64, l draw.LineStyle) {
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: x1, Y: y1}, {X: x2, Y: y2}}, LineStyle: l})
	}
	var fit, low, high plotter.XYs
	for _, at := range c.Line {
		fit = append(fit, plotter.XY{X: at.X, Y: at.At})
		low, high = append(low, plotter.XY{X: at.X, Y: at.Low}), append(high, plotter.XY{X: at.X, Y: at.High})
	}
	if len(fit) > 0 {
		p.Add(band(low, high, look{colour: report.Colour("#606060").RGBA()}, 0.18))
		p.Add(&plotter.Line{XYs: fit, LineStyle: draw.LineStyle{Color: s.muted, Width: vg.Points(1)}})
	}
	for i, name := range groups {
		l := lookAt(i, highlight)
		bar := draw.LineStyle{Color: l.withOpacity(0.5), Width: vg.Points(0.6)}
		marks := l.mark(1.9)
		marks.Color = l.withOpacity(0.85)
		var at plotter.XYs
		for _, q := range c.Points {
			if q.Group == name {
				at = append(at, plotter.XY{X: q.X, Y: q.At})
				line(q.Left, q.At, q.Right, q.At, bar)
				line(q.X, q.Low, q.X, q.High, bar)
			}
		}
		p.Add(&plotter.Scatter{XYs: at, GlyphStyle: marks})
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.Left, c.Right, c.Low, c.High
	if len(c.Ticks) > 0 {
		var ticks plot.ConstantTicks
		for _, t := range c.Ticks {
			ticks = append(ticks, plot.Tick{Value: t.At, Label: t.Label})
		}
		p.Y.Tick.Marker = ticks
	}
}

// A pointNames plotter writes the names of points beside them.
type pointNames struct {
	chart report.Scatter
	style style
}

// Plot implements plot.Plotter. A name stands at one of eight positions around its point: where it
// lies within the panel and over as few points as possible. One that fits nowhere, or would lie
// over another name, is left out.
func (n *pointNames) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	t := n.style.text(n.style.small, left, centre)
	t.Font.Size, t.Color = vg.Points(5.5), n.style.muted
	const gap = 3 // points
	var taken, names []vg.Rectangle
	for _, q := range n.chart.Points {
		at := vg.Point{X: x(q.X), Y: y(q.At)}
		taken = append(taken, vg.Rectangle{Min: at.Sub(vg.Point{X: 2, Y: 2}), Max: at.Add(vg.Point{X: 2, Y: 2})})
	}
	for _, q := range n.chart.Points {
		at := vg.Point{X: x(q.X), Y: y(q.At)}
		name := n.style.fit(t.Font, q.Label, 24*vg.Millimeter)
		w, h := t.Width(name), t.Font.Size
		best, least := vg.Rectangle{}, -1
		for _, corner := range []vg.Point{
			{X: at.X + gap, Y: at.Y - h/2}, {X: at.X - gap - w, Y: at.Y - h/2}, {X: at.X - w/2, Y: at.Y + gap}, {X: at.X - w/2, Y: at.Y - gap - h},
			{X: at.X + gap, Y: at.Y + gap}, {X: at.X + gap, Y: at.Y - gap - h}, {X: at.X - gap - w, Y: at.Y + gap}, {X: at.X - gap - w, Y: at.Y - gap - h},
		} {
			box := vg.Rectangle{Min: corner, Max: corner.Add(vg.Point{X: w, Y: h})}
			if box.Min.X < c.Min.X || box.Max.X > c.Max.X || box.Min.Y < c.Min.Y || box.Max.Y > c.Max.Y ||
				slices.ContainsFunc(names, func(other vg.Rectangle) bool { return overlap(box, other) }) {
				continue
			}
			over := 0
			for _, other := range taken {
				if overlap(box, other) {
					over++
				}
			}
			if least < 0 || over < least {
				best, least = box, over
			}
		}
		if least >= 0 {
			names = append(names, best)
			c.FillText(t, vg.Point{X: best.Min.X, Y: best.Min.Y + h/2}, name)
		}
	}
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
