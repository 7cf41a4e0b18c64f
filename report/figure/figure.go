// Package figure draws figures for papers from the rows of scores: as PDF, SVG or PNG, without a
// browser, in the widths of one and of two columns.
//
//	f, err := figure.Draw(rows, figure.Options{Chart: figure.Depth, Columns: 1})
//	err = f.Write(file, "pdf")
//
// The rows that are left by a filter (scores.Filter) are divided among panels and colours: the
// first field in which they differ (model, transformation, statistic, data, ...) is told by colour,
// the others by panels, unless the options say otherwise. Bands and bars with caps are the rows' 95
// % intervals; the null is a shaded floor where higher values are the more invariant ones, else a
// dotted line.
package figure

import (
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

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// A Chart is a kind of figure.
type Chart string

// The kinds of charts.
const (
	Depth        Chart = "depth"        // curves over the depth of layers
	Parameter    Chart = "parameter"    // curves over the values of a transformation's parameter
	Bars         Chart = "bars"         // a bar for each model, transformation or class
	Heat         Chart = "heat"         // a matrix in colours
	Distribution Chart = "distribution" // histograms of the rows' values: rows of samples, say
	// One score against another with a line and its band; see DrawScatter.
	Scatter Chart = "scatter"
)

// Charts are the kinds that Draw draws, and Scatter.
var Charts = []Chart{Depth, Parameter, Bars, Heat, Distribution, Scatter}

// Options say how a figure looks.
type Options struct {
	Chart    Chart
	Columns  int     // of the page that the figure spans, 1 (85 mm, the default) or 2 (175 mm)
	Width    float64 // in mm; 0: as Columns has it
	Height   float64 // in mm; 0: from the width and the number of panels
	Serif    bool    // letters with serifs, for papers set in Times
	Title    string
	Relative bool  // depth from 0, the first layer measured, to 1, the last
	Zoom     bool  // axes span the values, rather than the statistic's whole range
	Colour   Field // told by colour; "": the first field that differs
	Panel    Field // told by panels; "": all others that differ
	Across   Field // columns of a heat map; "": chosen by the rows
	Down     Field // rows of a heat map
	Labels   bool  // a scatter's points bear their names
	// Of the rows' measures; a measure without one is shown by its name.
	Measures []measure.Descriptor
	// Draw every statistic that the rows hold, not just those worth a first look.
	Every bool

	measures report.Measures // of the rows that are drawn
	across   int             // panels beside each other at most; 0: as many as fit
}

// Formats are the formats of files.
var Formats = []string{"pdf", "svg", "png"}

// dpi of PNG files; vector formats have none.
const dpi = 300

// A Figure is drawn and can be written.
type Figure struct {
	style         style
	title         string
	panels        []*plot.Plot
	across        int // panels in a row
	legend        []entry
	scale         *colourScale // of a heat map
	width, height vg.Length
}

// Draw draws a chart of rows. Rows that stand for others (means over values and trials) are
// preferred to what they stand for.
func Draw(rows []scores.Row, o Options) (*Figure, error) {
	if o.Columns != 0 && o.Columns != 1 && o.Columns != 2 {
		return nil, fmt.Errorf("a figure spans 1 or 2 columns, not %d", o.Columns)
	}
	if err := checkSize(o); err != nil {
		return nil, err
	}
	for _, f := range []Field{o.Colour, o.Panel, o.Across, o.Down} {
		if _, ok := fields[f]; !ok && f != "" {
			return nil, fmt.Errorf("there is no field %q: it is one of %s", f, strings.Join(FieldNames(), ", "))
		}
	}
	o.measures = report.Describe(rows, o.Measures)
	switch o.Chart {
	case Depth:
		return drawDepth(rows, o)
	case Parameter:
		return drawParameter(rows, o)
	case Bars:
		return drawBars(rows, o)
	case Heat:
		return drawHeat(rows, o)
	case Distribution:
		return drawDistribution(rows, o)
	case Scatter:
		return nil, errors.New("a scatter is drawn of points: see DrawScatter")
	}
	return nil, fmt.Errorf("there is no chart %q: it is one of %s", o.Chart, strings.Trim(fmt.Sprint(Charts), "[]"))
}

// The bounds of a figure's sides, in mm: beyond them a slip is likelier than a wish.
const (
	shortest = 20
	longest  = 2000
)

func checkSize(o Options) error {
	for _, side := range []float64{o.Width, o.Height} {
		if side != 0 && !(side >= shortest && side <= longest) {
			return fmt.Errorf("a figure is %d to %d mm wide and high, not %g", shortest, longest, side)
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
		c = &svgCanvas{Canvas: vgsvg.New(f.width, f.height), style: f.style}
	case "png":
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dpi))}
	default:
		return fmt.Errorf("figures are written as %s, not as %q", strings.Join(Formats, ", "), format)
	}
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// newFigure lays panels out.
func newFigure(panels []*plot.Plot, legend []entry, o Options, s style) *Figure {
	f := &Figure{style: s, title: clean(o.Title), panels: panels, legend: legend, width: width(o)}
	f.across = panelsAcross(len(panels), o)
	f.height = vg.Length(o.Height) * vg.Millimeter
	if f.height == 0 {
		f.height = vg.Length(f.down())*panelHeight(len(panels), o) + f.headHeight()
	}
	return f
}

func width(o Options) vg.Length {
	switch {
	case o.Width != 0:
		return vg.Length(o.Width) * vg.Millimeter
	case o.Columns == 2:
		return 175 * vg.Millimeter
	}
	return 85 * vg.Millimeter
}

// panelHeight is that of a panel of curves where the figure's height is not given.
func panelHeight(panels int, o Options) vg.Length {
	if o.Height != 0 {
		down := (panels + panelsAcross(panels, o) - 1) / panelsAcross(panels, o)
		return vg.Length(o.Height) * vg.Millimeter / vg.Length(max(1, down))
	}
	return min(width(o)/vg.Length(panelsAcross(panels, o))*0.74, 62*vg.Millimeter)
}

// panelsAcross is how many panels stand beside each other.
func panelsAcross(panels int, o Options) int {
	each := 55 * vg.Millimeter
	if width(o) < 120*vg.Millimeter {
		each = 40 * vg.Millimeter
	}
	most := max(1, int(width(o)/each))
	if o.across > 0 {
		most = min(most, o.across)
	}
	if panels == 4 && most == 3 {
		return 2
	}
	return max(1, min(panels, most))
}

func (f *Figure) down() int { return (len(f.panels) + f.across - 1) / f.across }

// draw puts title, legend and panels onto a canvas.
func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(f.style.ground)
	c.Fill(c.Rectangle.Path())
	if f.title != "" {
		f.style.write(c, f.style.heading, f.title, vg.Point{X: c.Center().X, Y: c.Max.Y - 1*vg.Millimeter}, middle, above)
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

// drawPanels draws the panels in tiles. Their data areas are of one size, whatever their labels
// take: each tile is cropped until its margins are those of the panel that needs the most.
func (f *Figure) drawPanels(c draw.Canvas) {
	gap := 2.5 * vg.Millimeter
	tiles := draw.Tiles{Rows: f.down(), Cols: f.across, PadX: gap, PadY: gap, PadTop: gap / 2, PadBottom: gap / 3, PadLeft: gap / 3, PadRight: gap / 2}
	most := margins{}
	for i, p := range f.panels {
		most = most.max(marginsOf(p, tiles.At(c, i%f.across, i/f.across)))
	}
	for i, p := range f.panels {
		tile := tiles.At(c, i%f.across, i/f.across)
		own := marginsOf(p, tile)
		p.Draw(draw.Crop(tile, most.left-own.left, own.right-most.right, most.bottom-own.bottom, own.top-most.top))
	}
}

// margins are what axes, labels and titles take around a panel's data.
type margins struct{ left, right, bottom, top vg.Length }

func marginsOf(p *plot.Plot, tile draw.Canvas) margins {
	data := p.DataCanvas(tile)
	return margins{data.Min.X - tile.Min.X, tile.Max.X - data.Max.X, data.Min.Y - tile.Min.Y, tile.Max.Y - data.Max.Y}
}

func (m margins) max(o margins) margins {
	return margins{max(m.left, o.left), max(m.right, o.right), max(m.bottom, o.bottom), max(m.top, o.top)}
}

func (f *Figure) headHeight() vg.Length { return f.titleHeight() + f.legendHeight() }

func (f *Figure) titleHeight() vg.Length {
	if f.title == "" {
		return 0
	}
	return f.style.heading.Size * 1.6
}

// FieldNames lists the fields that colours, panels and heat maps may tell apart.
func FieldNames() []string {
	var names []string
	for f := range fields {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return names
}
