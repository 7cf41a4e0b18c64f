package figure

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// bins is the number of bins of a histogram. Statistics with bounds, such as effective invariance
// (0 to 1, whether predictions stay the same), concentrate at their bounds, where finer bins would
// only make the peaks narrower.
const bins = 25

// drawDistribution draws a histogram of the rows' values (a row is one score, for instance of one
// sample) for each series, the rows of one colour: the share of the rows in each bin. A group is
// one panel, and its members are series. Unless o.Every is set, headlines selects the main
// statistics of each measure.
func drawDistribution(rows []scores.Row, o Options) (*Figure, error) {
	rows = numbersOnly(slices.Clone(rows))
	if !o.Every {
		rows = headlines(rows, o.measures)
	}
	parts, err := divide(rows, o, curveOrder)
	if err != nil {
		return nil, err
	}
	s := newStyle(o)
	var panels []*plot.Plot
	for _, g := range parts.groups {
		room := panelRoom(o, len(parts.groups))
		shares := strings.ReplaceAll(report.DistributionChart.Y.Title, "{item}", "sample")
		p := s.panel(s.fit(s.label, g.title, room), s.valueTitle(g, room), s.fold(s.label, shares, valueAxisLength(o, len(parts.groups))))
		low, high := bounds(g, o)
		for _, m := range g.series {
			if err := addHistogram(p, m, low, high); err != nil {
				return nil, err
			}
		}
		p.Y.Min, p.X.Min, p.X.Max = 0, low, high
		panels = append(panels, p)
	}
	legend := parts.legend()
	for i := range legend {
		legend[i].filled = true
	}
	return newFigure(panels, legend, o, s), nil
}

// bounds returns the range of a panel's bins.
func bounds(g group, o Options) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, m := range g.series {
		for _, r := range m.rows {
			low, high = min(low, r.Value), max(high, r.Value)
		}
	}
	if g.statistic.Range == measure.ZeroToOne && !o.Zoom {
		low, high = min(0, low), max(1, high)
	}
	if low == high {
		low, high = low-0.5, high+0.5
	}
	return low, high
}

// addHistogram adds the histogram of a series, with bins from low to high, to a plot.
func addHistogram(p *plot.Plot, m member, low, high float64) error {
	shares := histogram(m.rows, low, high)
	l := m.look
	var outline plotter.XYs
	for i, v := range shares {
		from, to := low+(high-low)*float64(i)/bins, low+(high-low)*float64(i+1)/bins
		outline = append(outline, plotter.XY{X: from, Y: v}, plotter.XY{X: to, Y: v})
	}
	floor := plotter.XYs{{X: low, Y: 0}, {X: high, Y: 0}}
	if err := addBand(p, floor, outline, l, 0.12); err != nil {
		return err
	}
	line, err := plotter.NewLine(outline)
	if err != nil {
		return err
	}
	line.LineStyle = l.line(0.9)
	p.Add(line)
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
