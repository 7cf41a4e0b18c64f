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

// DrawScatter draws a panel for each chart: points with the line of a robust regression, the band
// that holds 95 % of the lines fitted to resampled points, and the correlation coefficients. Points
// of one group have one colour. Too many charts, or none, a size out of range and a group in
// Options.Highlight that does not exist are errors.
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
	groups := groupsOf(charts)
	highlight, err := highlighted(groups, o.Highlight)
	if err != nil {
		return nil, err
	}
	s := newStyle(o)
	room := panelRoom(o, len(charts))
	var panels []*plot.Plot
	for _, c := range charts {
		title := s.fit(s.label, strings.Join(c.Notes, ", "), room)
		if c.Title != "" {
			title = s.fit(s.label, c.Title, room) + "\n" + title
		}
		p := s.panel(title, s.fold(s.label, c.X, room), clean(c.Y))
		looks := make([]look, len(groups))
		for i := range groups {
			looks[i] = lookAt(i, highlight)
		}
		if err := s.addScatter(p, c, groups, looks); err != nil {
			return nil, err
		}
		if o.Labels {
			p.Add(&pointNames{chart: c, style: s})
		}
		panels = append(panels, p)
	}
	legend := legendOf(groups, highlight)
	for i := range legend {
		legend[i].dots = true
	}
	f := newFigure(panels, legend, o, s)
	if o.Height == 0 {
		f.height = f.headHeight() + vg.Length(f.down())*min(f.width/vg.Length(f.across)*0.85, 70*vg.Millimeter)
	}
	return f, nil
}

// groupsOf returns the distinct groups of the points of all charts.
func groupsOf(charts []report.Scatter) []string {
	var groups []string
	for _, c := range charts {
		for _, p := range c.Points {
			if !slices.Contains(groups, p.Group) {
				groups = append(groups, p.Group)
			}
		}
	}
	return groups
}

// addScatter draws the points of a chart with their error bars, and its line. looks has the look of
// each group. A point is at X and, on the vertical axis, at At; Left and Right are the ends of its
// horizontal error bar, Low and High those of the vertical one. Left, Right, Low and High of the
// chart are the ends of its axes.
func (s style) addScatter(p *plot.Plot, c report.Scatter, groups []string, looks []look) error {
	if err := s.addFit(p, c.Line); err != nil {
		return err
	}
	of := make([]plotter.XYs, len(groups))
	for _, q := range c.Points {
		i := slices.Index(groups, q.Group)
		of[i] = append(of[i], plotter.XY{X: q.X, Y: q.At})
		for _, bar := range []plotter.XYs{{{X: q.Left, Y: q.At}, {X: q.Right, Y: q.At}}, {{X: q.X, Y: q.Low}, {X: q.X, Y: q.High}}} {
			l, err := plotter.NewLine(bar)
			if err != nil {
				return err
			}
			l.LineStyle = draw.LineStyle{Color: looks[i].withOpacity(0.5), Width: vg.Points(0.6)}
			if bar[0] != bar[1] {
				p.Add(l)
			}
		}
	}
	for i, at := range of {
		if len(at) == 0 {
			continue
		}
		marks, err := plotter.NewScatter(at)
		if err != nil {
			return err
		}
		marks.GlyphStyle = looks[i].mark(1.9)
		marks.GlyphStyle.Color = looks[i].withOpacity(0.85)
		p.Add(marks)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.Left, c.Right, c.Low, c.High
	if len(c.Ticks) > 0 {
		var ticks plot.ConstantTicks
		for _, t := range c.Ticks {
			ticks = append(ticks, plot.Tick{Value: t.At, Label: t.Label})
		}
		p.Y.Tick.Marker = ticks
	}
	return nil
}

// addFit draws the line and its band.
func (s style) addFit(p *plot.Plot, fit []report.LinePoint) error {
	var line, low, high plotter.XYs
	for _, at := range fit {
		line = append(line, plotter.XY{X: at.X, Y: at.At})
		low, high = append(low, plotter.XY{X: at.X, Y: at.Low}), append(high, plotter.XY{X: at.X, Y: at.High})
	}
	if len(line) == 0 {
		return nil
	}
	if err := addBand(p, low, high, look{colour: report.Colour("#606060").RGBA()}, 0.18); err != nil {
		return err
	}
	l, err := plotter.NewLine(line)
	if err != nil {
		return err
	}
	l.LineStyle = draw.LineStyle{Color: s.muted, Width: vg.Points(1)}
	p.Add(l)
	return nil
}

// A pointNames plotter writes the names of points beside them.
type pointNames struct {
	chart report.Scatter
	style style
}

// Plot implements plot.Plotter. A name stands at one of eight positions around its point, right,
// left, above, below or between two of these: where it lies within the panel and over as few points
// as possible. One that fits nowhere in the panel, or would lie over another name, is left out.
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
