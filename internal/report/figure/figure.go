// Package figure draws figures for papers from score rows: as PDF, SVG or PNG, without a browser,
// as wide as one or two columns of a page.
//
//	f, err := figure.Draw(rows, figure.Options{Chart: figure.Depth, Columns: 1})
//	err = f.Write(file, "pdf")
//
// Terms of the scores: a run is one execution of a study. The depth of a layer is the number of
// operations on the longest path from the input, and the null of a score is what chance alone
// gives. A factor is a property of samples, such as their class, to which a row is limited.
//
// Rows, for instance those selected by a scores.Filter, are divided among colours and panels.
// Unless the options specify otherwise, the first field in which they differ (model,
// transformation, data, ...) determines the colour, and the others the panel. Bands and
// error bars show the rows' 95 % intervals. The null is a dotted line, with a shaded area below it
// if higher values are better (measure.Direction).
package figure

import (
	"errors"
	"fmt"
	"io"
	"math"
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

// A Chart is a kind of figure.
type Chart string

// The kinds of charts.
const (
	Depth        Chart = "depth"        // curves over the depth of layers
	Parameter    Chart = "parameter"    // curves over the values of a transformation's parameter
	Confidence   Chart = "confidence"   // curves over the least confidence of detected boxes
	Bars         Chart = "bars"         // a bar for each model, transformation or class
	Heat         Chart = "heat"         // a matrix in colours
	Distribution Chart = "distribution" // histograms of the rows' values, for instance of samples
	// One score against another with a fitted line and its band; see DrawScatter.
	Scatter Chart = "scatter"
)

// Charts lists all kinds of charts.
var Charts = []Chart{Depth, Parameter, Confidence, Bars, Heat, Distribution, Scatter}

// Options specify the content and the appearance of a figure.
type Options struct {
	Chart   Chart
	Columns int     // of the page that the figure spans, 1 (85 mm, the default) or 2 (175 mm)
	Width   float64 // in mm; 0 means the width given by Columns
	Height  float64 // in mm; 0 means computed from the width and the number of panels
	Serif   bool    // a serif font, for papers set in Times
	Title   string
	// Depth is "relative" (0 is the first measured layer of a model, 1 the last), "absolute", or ""
	// for relative if models differ in depth.
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
	// Every draws all statistics of the rows, not only those of which one end of the range is
	// better (measure.Direction).
	Every bool
	// Parameters are the titles of the parameters of transformations, such as "angle (degrees)", by
	// name.
	Parameters map[string]string

	measures  report.Measures // measures of the rows that are drawn
	maxAcross int             // maximum number of panels side by side; 0 means as many as fit
}

// Formats lists the file formats of Figure.Write.
var Formats = []string{"pdf", "svg", "png"}

// dpi is the resolution of PNG files.
const dpi = 300

// A Figure is a laid-out figure that can be written.
type Figure struct {
	style         style
	title         string
	panels        []*plot.Plot
	across        int // number of panels side by side
	legend        []entry
	scale         *colourBar // of a heat map
	width, height vg.Length
}

// Draw draws a chart of rows. Rows that summarise others (means over the values of a parameter, and
// over trials, the repetitions of the random draws) replace the rows that they summarise.
func Draw(rows []scores.Row, o Options) (*Figure, error) {
	if o.Columns != 0 && o.Columns != 1 && o.Columns != 2 {
		return nil, fmt.Errorf("a figure spans 1 or 2 columns, not %d", o.Columns)
	}
	if err := checkSize(o); err != nil {
		return nil, err
	}
	for _, f := range []Field{o.Colour, o.Panel, o.Across, o.Down} {
		if f != "" && !slices.Contains(report.FieldNames(), string(f)) {
			return nil, fmt.Errorf("unknown field %q: want one of %s", f, strings.Join(report.FieldNames(), ", "))
		}
	}
	o.measures = report.Describe(rows, o.Measures)
	switch o.Chart {
	case Depth:
		return drawDepth(rows, o)
	case Parameter:
		return drawParameter(rows, o)
	case Confidence:
		return drawConfidence(rows, o)
	case Bars:
		return drawBars(rows, o)
	case Heat:
		return drawHeat(rows, o)
	case Distribution:
		return drawDistribution(rows, o)
	case Scatter:
		return nil, errors.New("a scatter needs points: use DrawScatter")
	}
	return nil, fmt.Errorf("unknown chart %q: want one of %s", o.Chart, strings.Trim(fmt.Sprint(Charts), "[]"))
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

// newFigure lays out panels. clean replaces characters that could mislead a reader.
func newFigure(panels []*plot.Plot, legend []entry, o Options, s style) *Figure {
	f := &Figure{style: s, title: clean(o.Title), panels: panels, legend: legend, width: width(o)}
	f.across = panelsAcross(len(panels), o)
	f.height = vg.Length(o.Height) * vg.Millimeter
	if f.height == 0 {
		f.height = vg.Length(f.down())*panelHeight(len(panels), o) + f.headHeight()
	}
	return f
}

// width returns the width of a figure.
func width(o Options) vg.Length {
	switch {
	case o.Width != 0:
		return vg.Length(o.Width) * vg.Millimeter
	case o.Columns == 2:
		return 175 * vg.Millimeter
	}
	return 85 * vg.Millimeter
}

// panelHeight returns the height of a panel of curves if the figure's height is not given.
func panelHeight(panels int, o Options) vg.Length {
	if o.Height != 0 {
		down := (panels + panelsAcross(panels, o) - 1) / panelsAcross(panels, o)
		return vg.Length(o.Height) * vg.Millimeter / vg.Length(max(1, down))
	}
	const aspect, most = 0.74, 62 * vg.Millimeter // height by width, and the largest height
	return min(width(o)/vg.Length(panelsAcross(panels, o))*aspect, most)
}

// panelsAcross returns the number of panels side by side.
func panelsAcross(panels int, o Options) int {
	each := 55 * vg.Millimeter // smallest width of a panel
	if width(o) < 120*vg.Millimeter {
		each = 40 * vg.Millimeter // two panels in one column of a page
	}
	most := max(1, int(width(o)/each))
	if o.maxAcross > 0 {
		most = min(most, o.maxAcross)
	}
	if panels == 4 && most == 3 { // two rows of two instead of three and one
		return 2
	}
	return max(1, min(panels, most))
}

// down returns the number of rows of panels.
func (f *Figure) down() int { return (len(f.panels) + f.across - 1) / f.across }

// draw draws title, legend and panels on a canvas.
func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(f.style.ground)
	c.Fill(c.Rectangle.Path())
	if f.title != "" {
		f.style.write(c, f.style.heading, f.title, vg.Point{X: c.Center().X, Y: c.Max.Y - 1*vg.Millimeter}, middle, below)
	}
	c = draw.Crop(c, 0, 0, 0, -f.titleHeight())
	f.drawLegend(c)
	c = draw.Crop(c, 0, 0, 0, -f.legendHeight())
	if f.scale != nil {
		f.scale.draw(c, f.style)
		c = draw.Crop(c, 0, -scaleWidth, 0, 0)
	}
	f.drawPanels(c)
}

// drawPanels draws the panels in tiles. Their data areas have the same size: each tile is cropped
// until its margins are the largest that any panel needs.
func (f *Figure) drawPanels(c draw.Canvas) {
	gap := 2.5 * vg.Millimeter
	tiles := draw.Tiles{Rows: f.down(), Cols: f.across, PadX: gap, PadY: gap, PadTop: gap / 2, PadBottom: gap / 3, PadLeft: gap / 3, PadRight: gap / 2}
	most := margins{} // the largest that any panel needs
	for i, p := range f.panels {
		most = most.max(marginsOf(p, tiles.At(c, i%f.across, i/f.across)))
	}
	for i, p := range f.panels {
		tile := tiles.At(c, i%f.across, i/f.across)
		own := marginsOf(p, tile)
		data := tile.Size()
		p.X.Tick.Marker = spaced{p.X.Tick.Marker, data.X - most.left - most.right, func(label string) vg.Length { return f.style.textWidth(p.X.Tick.Label.Font, label)*unrotated(&p.X) + 3 }}
		p.Y.Tick.Marker = spaced{p.Y.Tick.Marker, data.Y - most.bottom - most.top, func(string) vg.Length { return p.Y.Tick.Label.Font.Size }}
		p.Draw(draw.Crop(tile, most.left-own.left, own.right-most.right, most.bottom-own.bottom, own.top-most.top))
	}
}

// A spaced ticker leaves out ticks of the embedded ticker until the labels of the rest do not
// touch.
type spaced struct {
	plot.Ticker
	room   vg.Length                    // length of the axis
	extent func(label string) vg.Length // length that a label takes along the axis, with a gap
}

// Ticks implements plot.Ticker. Of the labelled ticks it keeps all, every second, every fifth and
// so on; a tick at 0 stays. It returns none if not even two of them fit.
func (s spaced) Ticks(low, high float64) []plot.Tick {
	all := slices.DeleteFunc(s.Ticker.Ticks(low, high), func(t plot.Tick) bool { return t.Label == "" })
	zero := max(0, slices.IndexFunc(all, func(t plot.Tick) bool { return t.Value == 0 }))
	for _, every := range []int{1, 2, 5, 10, 20, 50} {
		var kept []plot.Tick
		for i, t := range all {
			if (i-zero)%every == 0 {
				kept = append(kept, t)
			}
		}
		if len(kept) < 2 || s.apart(kept, high-low) {
			return kept
		}
	}
	return nil
}

// apart reports whether the labels of ticks have a gap between them.
func (s spaced) apart(ticks []plot.Tick, span float64) bool {
	for i, t := range ticks[1:] {
		distance := vg.Length(math.Abs(t.Value-ticks[i].Value)/span) * s.room
		if distance < (s.extent(t.Label)+s.extent(ticks[i].Label))/2 {
			return false
		}
	}
	return true
}

// unrotated is the share of a label's width that it takes along the axis: 0 for a rotated label,
// since the next one can begin beneath it.
func unrotated(a *plot.Axis) vg.Length {
	if a.Tick.Label.Rotation != 0 {
		return 0
	}
	return 1
}

// margins is the space for axes, labels and titles around the data area of a panel.
type margins struct{ left, right, bottom, top vg.Length }

func marginsOf(p *plot.Plot, tile draw.Canvas) margins {
	data := p.DataCanvas(tile)
	return margins{data.Min.X - tile.Min.X, tile.Max.X - data.Max.X, data.Min.Y - tile.Min.Y, tile.Max.Y - data.Max.Y}
}

func (m margins) max(o margins) margins {
	return margins{max(m.left, o.left), max(m.right, o.right), max(m.bottom, o.bottom), max(m.top, o.top)}
}

// headHeight returns the height of the title and the legend, above the panels.
func (f *Figure) headHeight() vg.Length { return f.titleHeight() + f.legendHeight() }

func (f *Figure) titleHeight() vg.Length {
	if f.title == "" {
		return 0
	}
	return f.style.heading.Size * 1.6
}
