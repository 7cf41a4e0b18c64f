package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/scores/correlation"
)

// A Cloud is a panel of a scatter: points with the line fitted to them.
type Cloud struct {
	Title string
	X     string // title of the horizontal axis
	Fit   *correlation.Fit
}

// DrawScatter draws points with their robust line, the band that holds 95 % of the lines through
// resampled points, and the correlation coefficients. The points' groups determine colours. logit
// specifies that the fits, and so the axis, are on the logit scale.
func DrawScatter(clouds []Cloud, y string, logit bool, o Options) (*Figure, error) {
	if err := checkSize(o); err != nil {
		return nil, err
	}
	if len(clouds) == 0 {
		return nil, errEmpty
	}
	if len(clouds) > maxPanels {
		return nil, fmt.Errorf("the scores need %d panels, but %d is the maximum: select fewer with --model or --data", len(clouds), maxPanels)
	}
	groups := groupsOf(clouds)
	if len(groups) > maxColours {
		return nil, fmt.Errorf("%d groups would have a colour each, but %d is the maximum (%s)", len(groups), maxColours, firstNames(groups))
	}
	s := newStyle(o)
	var panels []*plot.Plot
	for _, c := range clouds {
		p := s.panel(s.fit(s.label, c.Title, panelRoom(o, len(clouds))), s.fold(s.label, c.X, panelRoom(o, len(clouds))), clean(y))
		if logit {
			p.Y.Scale, p.Y.Tick.Marker = logitScale{}, plot.TickerFunc(logitTicks)
		}
		if err := s.addCloud(p, c, groups, logit, o); err != nil {
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

func groupsOf(clouds []Cloud) []string {
	var groups []string
	for _, c := range clouds {
		for _, p := range c.Fit.Points {
			if !slices.Contains(groups, p.Group) {
				groups = append(groups, p.Group)
			}
		}
	}
	return groups
}

func (s style) addCloud(p *plot.Plot, c Cloud, groups []string, logit bool, o Options) error {
	low, high := c.Fit.Points[0].X, c.Fit.Points[0].X
	for _, at := range c.Fit.Points {
		low, high = min(low, at.X), max(high, at.X)
	}
	if err := s.addFit(p, c.Fit, low, high, logit); err != nil {
		return err
	}
	yLow, yHigh := math.Inf(1), math.Inf(-1)
	for i, g := range groups {
		var at plotter.XYs
		for _, q := range c.Fit.Points {
			if q.Group == g {
				at = append(at, plotter.XY{X: q.X, Y: clampProportion(q.Y, logit)})
				yLow, yHigh = min(yLow, clampProportion(q.Y, logit)), max(yHigh, clampProportion(q.Y, logit))
			}
		}
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
	if o.Labels {
		if err := s.addNames(p, c, logit); err != nil {
			return err
		}
	}
	p.Add(&note{style: s, words: []string{
		fmt.Sprintf("r = %.2f %s", c.Fit.Pearson.Value, span(c.Fit.Pearson)),
		fmt.Sprintf("ρ = %.2f %s", c.Fit.Spearman.Value, span(c.Fit.Spearman)),
	}, points: c.Fit.Points, logit: logit})
	pad := 0.04 * max(high-low, 1e-9)
	p.X.Min, p.X.Max = low-pad, high+pad
	p.Y.Min, p.Y.Max = padRange(yLow, yHigh, logit)
	return nil
}

func span(c correlation.Coefficient) string {
	if !finite(c.Low) {
		return ""
	}
	return fmt.Sprintf("[%.2f, %.2f]", c.Low, c.High)
}

// padRange returns the range with a margin around the points.
func padRange(low, high float64, logit bool) (float64, float64) {
	if !logit {
		pad := 0.06 * max(high-low, 1e-9)
		return low - pad, high + pad
	}
	l, h := logitOf(low), logitOf(high)
	pad := 0.08 * max(h-l, 0.1)
	return 1 / (1 + math.Exp(pad-l)), 1 / (1 + math.Exp(-h-pad))
}

// addFit draws the line and its band.
func (s style) addFit(p *plot.Plot, f *correlation.Fit, low, high float64, logit bool) error {
	const steps = 60
	var line, under, over plotter.XYs
	for i := range steps + 1 {
		x := low + (high-low)*float64(i)/steps
		v := f.At(x)
		line = append(line, plotter.XY{X: x, Y: clampProportion(v.Value, logit)})
		if finite(v.Low) && finite(v.High) {
			under, over = append(under, plotter.XY{X: x, Y: clampProportion(v.Low, logit)}), append(over, plotter.XY{X: x, Y: clampProportion(v.High, logit)})
		}
	}
	grey := look{colour: grey}
	if err := addBand(p, under, over, grey, 0.18); err != nil {
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

func (s style) addNames(p *plot.Plot, c Cloud, logit bool) error {
	labels := plotter.XYLabels{}
	for _, q := range c.Fit.Points {
		labels.XYs = append(labels.XYs, plotter.XY{X: q.X, Y: clampProportion(q.Y, logit)})
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

// clampProportion limits a proportion to values that a logit axis can show.
func clampProportion(v float64, logit bool) float64 {
	if logit {
		return min(1-1e-4, max(1e-4, v))
	}
	return v
}

func logitOf(p float64) float64 { return math.Log(p / (1 - p)) }

// A logitScale is an axis with a uniform scale of log p / (1 - p).
type logitScale struct{}

// Normalize implements plot.Normalizer.
func (logitScale) Normalize(low, high, v float64) float64 {
	return (logitOf(v) - logitOf(low)) / (logitOf(high) - logitOf(low))
}

// logitTicks returns ticks at round proportions that do not overlap.
func logitTicks(low, high float64) []plot.Tick {
	var out []plot.Tick
	last := math.Inf(-1)
	for _, p := range []float64{0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999} {
		at := logitScale{}.Normalize(low, high, p)
		if p >= low && p <= high && at-last > 0.09 {
			out = append(out, plot.Tick{Value: p, Label: fmt.Sprint(p)})
			last = at
		}
	}
	return out
}

// A note is a text in the corner of a panel that has the fewest points.
type note struct {
	style  style
	words  []string
	points []correlation.Point
	logit  bool
}

// Plot implements plot.Plotter.
func (n *note) Plot(c draw.Canvas, p *plot.Plot) {
	wide := vg.Length(0)
	for _, words := range n.words {
		wide = max(wide, n.style.wide(n.style.small, words))
	}
	line := n.style.small.Size * 1.25
	wide, high := wide+3*vg.Millimeter, vg.Length(len(n.words))*line+2*vg.Millimeter
	var best vg.Rectangle
	fewest := math.MaxInt
	for _, corner := range []vg.Point{{X: c.Max.X - wide, Y: c.Min.Y}, {X: c.Min.X, Y: c.Max.Y - high}, {X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X - wide, Y: c.Max.Y - high}} {
		box := vg.Rectangle{Min: corner, Max: vg.Point{X: corner.X + wide, Y: corner.Y + high}}
		if held := n.within(box, c, p); held < fewest {
			best, fewest = box, held
		}
	}
	for i, words := range n.words {
		n.style.write(c, n.style.small, words, vg.Point{X: best.Min.X + 1.5*vg.Millimeter, Y: best.Max.Y - vg.Millimeter - vg.Length(i)*line}, left, above)
	}
}

// within returns the number of points in a box.
func (n *note) within(box vg.Rectangle, c draw.Canvas, p *plot.Plot) int {
	x, y := p.Transforms(&c)
	held := 0
	for _, q := range n.points {
		at := vg.Point{X: x(q.X), Y: y(clampProportion(q.Y, n.logit))}
		if at.X >= box.Min.X && at.X <= box.Max.X && at.Y >= box.Min.Y && at.Y <= box.Max.Y {
			held++
		}
	}
	return held
}
