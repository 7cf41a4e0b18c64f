// Package figure draws figures for papers from score rows: as PDF, SVG or PNG, without a browser,
// as wide as one or two columns of a page.
//
//	f, err := figure.Draw(rows, figure.Options{Chart: figure.Depth, Columns: 1})
//	err = f.Write(file, "pdf")
//
// It is a renderer of report.Chart, with a function for each mark. Rows, for instance those
// selected by a scores.Filter, are divided among colours and panels. Unless the options specify
// otherwise, the first field in which they differ (model, transformation, data, ...) determines the
// colour, and the others the panel. Bands and error bars show the rows' intervals. The null is a
// dotted line, with a shaded area below it if higher values are better.
package figure

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Chart is the name of a kind of figure: of one of report.FigureCharts, or Scatter.
type Chart string

// The charts that other packages draw by name.
const (
	Depth        Chart = "depth"
	Parameter    Chart = "parameter"
	Confidence   Chart = "confidence"
	Bars         Chart = "bars"
	Heat         Chart = "heat"
	Distribution Chart = "distribution"
	Scatter      Chart = "scatter" // one score against another; see DrawScatter
)

// Charts lists all kinds of charts.
var Charts = allCharts()

func allCharts() []Chart {
	var out []Chart
	for _, c := range report.FigureCharts {
		out = append(out, Chart(c.Name))
	}
	return append(out, Scatter)
}

// Options specify the content and the appearance of a figure.
type Options struct {
	Chart   Chart
	Columns int     // of the page that the figure spans, 1 (85 mm, the default) or 2 (175 mm)
	Width   float64 // in mm; 0 means the width given by Columns
	Height  float64 // in mm; 0 means computed from the width and the number of panels
	Serif   bool    // a serif font, for papers set in Times
	Title   string
	// Depth is "relative", "absolute", or "" for relative if models differ in depth.
	Depth string
	// Run holds all rows of the run, which determine the first and the last layer of a model for
	// relative depth; nil means the rows that are drawn.
	Run    []scores.Row
	Zoom   bool  // axes span the values instead of the statistic's range
	Colour Field // field shown by colour; "" means the first field that differs
	Panel  Field // field shown by panels; "" means all others that differ
	Across Field // columns of a heat map, or the categories of bars; "" means chosen from the rows
	Down   Field // rows of a heat map
	Labels bool  // label the points of a scatter
	// Highlight is the only value of the field of colours that is drawn in colour, above the others
	// in grey. "" means the first value if there are more than 12; otherwise all have colours.
	Highlight string
	// Descriptors of the rows' measures. A measure without one is shown by its name.
	Measures []measure.Descriptor
	// Every draws all statistics of the rows, not only those that report.Headline selects.
	Every bool
	// Parameters are the titles of the parameters of transformations, such as "angle (degrees)", by
	// name.
	Parameters map[string]string
}

// Formats lists the file formats of Figure.Write.
var Formats = []string{"pdf", "svg", "png"}

// dpi is the resolution of PNG files.
const dpi = 300

var errEmpty = errors.New("no score to draw")

// Draw draws a chart of rows. Rows that summarise others replace them.
func Draw(rows []scores.Row, o Options) (*Figure, error) {
	if o.Columns != 0 && o.Columns != 1 && o.Columns != 2 {
		return nil, fmt.Errorf("a figure spans 1 or 2 columns, not %d", o.Columns)
	}
	if err := checkSize(o); err != nil {
		return nil, err
	}
	for _, f := range []Field{o.Colour, o.Panel, o.Across, o.Down} {
		if f != "" && !slices.Contains(report.FieldNames(), string(f)) {
			return nil, fmt.Errorf("unknown field %q: want one of %s", f,
				strings.Join(report.FieldNames(), ", "))
		}
	}
	if o.Chart == Scatter {
		return nil, errors.New("a scatter needs points: use DrawScatter")
	}
	i := slices.IndexFunc(report.FigureCharts, func(c report.Chart) bool { return c.Name == string(o.Chart) })
	if i < 0 {
		return nil, fmt.Errorf("unknown chart %q: want one of %s", o.Chart, strings.Trim(fmt.Sprint(Charts), "[]"))
	}
	d := &drawing{Options: o, chart: report.FigureCharts[i], style: newStyle(o), measures: report.Describe(rows, o.Measures)}
	f, err := d.draw(rows)
	// With too many models for a panel each, a heat map shows layers by models instead.
	if errors.Is(err, errPanels) && o.Chart == Heat && o.Across == "" && o.Down == "" {
		d.Down, d.Across = "layer", "model"
		return d.draw(rows)
	}
	return f, err
}

// Limits on the width and height of a figure, in mm.
const (
	shortest = 20
	longest  = 2000
)

func checkSize(o Options) error {
	for _, side := range []float64{o.Width, o.Height} {
		if side != 0 && !(side >= shortest && side <= longest) {
			return fmt.Errorf("width and height of a figure must be %d to %d mm, not %g", shortest, longest, side)
		}
	}
	return nil
}

// A drawing turns rows into the panels of a figure.
type drawing struct {
	Options
	chart    report.Chart
	style    style
	measures report.Measures // of the rows
	sides    report.Sides    // the fields of the axes of bars and tiles
	parts    *split
	size     size
	place    func(*scores.Row) float64 // position of a row on the horizontal axis of curves
	scale    *colourBar                // of tiles
}

// draw selects the rows that the chart shows, divides them, and draws a panel for each part.
func (d *drawing) draw(rows []scores.Row) (*Figure, error) {
	rows = d.choose(rows)
	if len(rows) == 0 && d.chart.Missing != "" {
		return nil, fmt.Errorf("%w over %s: %s", errEmpty, d.chart.Name, d.chart.Missing)
	}
	if !d.Every {
		main := report.Headlines(rows, d.measures)
		rows = slices.DeleteFunc(rows, func(r scores.Row) bool { return !main[[2]string{r.Measure, r.Statistic}] })
	}
	var err error
	if d.parts, err = d.divide(rows); err != nil {
		if d.Chart == Parameter && len(Field("layer").Distinct(d.measures, rows)) > maxColours && errors.Is(err, errPanels) {
			return nil, fmt.Errorf("%w; --layer chooses layers", err)
		}
		return nil, err
	}
	limit := 0
	if d.sides.Down == "pair" {
		limit = 2 // because names of pairs are long
	}
	d.size = newSize(d.Options, len(d.parts.groups), d.parts.together, limit)
	f := &Figure{size: d.size, style: d.style, title: clean(d.Title)}
	draw, kind := d.lines, lineSwatch
	switch d.chart.Mark {
	case report.BarMark:
		draw, kind = d.bars, patchSwatch
	case report.StepMark:
		draw, kind = d.steps, patchSwatch
	case report.TileMark:
		draw, d.scale = d.tiles, d.colourBar()
		f.scale = d.scale
	}
	if d.scale == nil {
		f.legend = legendOf(d.parts.names, d.parts.highlight, kind)
	}
	for _, g := range d.parts.groups {
		p := d.style.panel(d.style.fit(d.style.label, d.panelTitle(g), d.size.room()))
		if err := draw(p, g); err != nil {
			return nil, err
		}
		f.panels = append(f.panels, p)
	}
	f.setHeight(d.panelHeight(f.panels))
	return f, nil
}

// panelTitle returns the title of a panel. Heat maps of different statistics name them there.
func (d *drawing) panelTitle(g group) string {
	if d.chart.Mark != report.TileMark || !d.parts.severalStatistics() {
		return g.title
	}
	return strings.TrimSuffix(g.statistic.Title+": "+g.title, ": ")
}

// panelHeight returns the height of a panel if the options give none.
func (d *drawing) panelHeight(panels []*plot.Plot) vg.Length {
	switch d.chart.Mark {
	case report.BarMark:
		step := vg.Length(len(d.parts.names))*barHeight + 1.6*vg.Millimeter // bars of one name, and a gap
		return vg.Length(len(d.sides.Down.Distinct(d.measures, d.parts.rows)))*step + 14*vg.Millimeter
	case report.TileMark:
		return d.tilesHeight()
	}
	lines := 0
	for _, p := range panels {
		lines = max(lines, strings.Count(p.X.Label.Text, "\n"))
	}
	return d.size.panelHeight() + vg.Length(lines)*d.style.label.Size*1.2
}

// choose returns the rows that the chart shows, and sets the fields and positions of its axes.
func (d *drawing) choose(rows []scores.Row) []scores.Row {
	switch d.chart.Mark {
	case report.TileMark:
		if d.Across == "" && d.Down == "" {
			d.sides = report.HeatSides(rows, d.measures)
		} else {
			d.sides = report.Sides{Down: cmp.Or(d.Down, "model"), Across: cmp.Or(d.Across, "transform")}
		}
		return d.sides.Rows(rows)
	case report.LineMark:
		rows = d.chart.Rows(rows)
		axis := d.chart.X
		if d.chart.Relative != nil && (d.Depth == "relative" || d.Depth == "" && report.DepthsDiffer(rows)) {
			axis = *d.chart.Relative
		}
		d.chart.X = axis
		d.place = axis.Place(rows)
		if d.Run != nil {
			d.place = axis.Place(d.Run)
		}
		return rows
	case report.BarMark:
		rows = d.chart.Rows(rows)
		d.sides = report.Sides{Down: d.category(rows)}
		return rows
	}
	return d.chart.Rows(rows)
}

// category returns the field of the categories of bars: the requested one, or the first of the
// chart's that has more values than there are colours, or else several. Factors come first if there
// are no rows over all samples.
func (d *drawing) category(rows []scores.Row) Field {
	if d.Across != "" {
		return d.Across
	}
	sides := d.chart.Sides
	if !slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Factor == "" }) {
		sides = slices.Concat([]report.Sides{{Down: "factor"}}, sides)
	}
	for _, most := range []int{maxColours, 1} {
		for _, s := range sides {
			if f := s.Down; f != "parameter" && f != d.Colour && f != d.Panel && len(f.Distinct(d.measures, rows)) > most {
				return f
			}
		}
	}
	return "model"
}

// Write writes the figure in one of the Formats.
func (f *Figure) Write(w io.Writer, format string) error {
	var c vg.CanvasWriterTo
	switch format {
	case "pdf":
		c = vgpdf.New(f.width, f.height)
	case "svg":
		c = &svgCanvas{vgsvg.New(f.width, f.height)}
	case "png":
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dpi))}
	default:
		return fmt.Errorf("figures can be written as %s, not as %q", strings.Join(Formats, ", "), format)
	}
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}
