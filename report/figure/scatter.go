package figure

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/report"
)

// DrawScatter draws a panel for each chart: points with their robust line, the band that holds 95 %
// of the lines through resampled points, and the correlation coefficients. The points' groups
// determine colours.
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
	if len(groups) > maxColours {
		return nil, fmt.Errorf("%d groups would have a colour each, but %d is the maximum (%s)", len(groups), maxColours, firstNames(groups))
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
		if err := s.addScatter(p, c, groups, o.Labels); err != nil {
			return nil, err
		}
		panels = append(panels, p)
	}
	var legend []entry
	for i, g := range groups {
		legend = append(legend, entry{name: clean(g), look: lookOf(i), dots: true})
	}
	f := newFigure(panels, legend, o, s)
	if o.Height == 0 {
		f.height = f.headHeight() + vg.Length(f.down())*min(f.width/vg.Length(f.across)*0.85, 70*vg.Millimeter)
	}
	return f, nil
}

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

func (s style) addScatter(p *plot.Plot, c report.Scatter, groups []string, labels bool) error {
	if err := s.addFit(p, c.Line); err != nil {
		return err
	}
	var all plotter.XYs
	of := make([]plotter.XYs, len(groups))
	for _, q := range c.Points {
		at, i := plotter.XY{X: q.X, Y: q.At}, slices.Index(groups, q.Group)
		all, of[i] = append(all, at), append(of[i], at)
	}
	for i, at := range of {
		if len(at) == 0 {
			continue
		}
		marks, err := plotter.NewScatter(at)
		if err != nil {
			return err
		}
		marks.GlyphStyle = lookOf(i).mark(1.9)
		marks.GlyphStyle.Color = lookOf(i).withOpacity(0.85)
		p.Add(marks)
	}
	if labels {
		if err := s.addNames(p, c, all); err != nil {
			return err
		}
	}
	low, high, _, _ := plotter.XYRange(all)
	pad := 0.04 * max(high-low, 1e-9)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low-pad, high+pad, c.Low, c.High
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

func (s style) addNames(p *plot.Plot, c report.Scatter, at plotter.XYs) error {
	labels := plotter.XYLabels{XYs: at}
	for _, q := range c.Points {
		labels.Labels = append(labels.Labels, s.fit(s.small, q.Label, 24*vg.Millimeter))
	}
	names, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range names.TextStyle {
		names.TextStyle[i] = s.text(s.small, left, centre)
		names.TextStyle[i].Font.Size, names.TextStyle[i].Color = vg.Points(5.5), s.muted
	}
	names.Offset = vg.Point{X: vg.Points(3)}
	p.Add(names)
	return nil
}
