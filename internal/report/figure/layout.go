package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Figure is a laid-out figure that can be written.
type Figure struct {
	size
	style  style
	title  string
	panels []*plot.Plot
	legend []entry
	scale  *colourBar // of a heat map
}

// setHeight sets the height of the figure, unless the options gave one, from that of a panel.
func (f *Figure) setHeight(panel vg.Length) {
	if f.height == 0 {
		f.height = f.titleHeight() + f.legendHeight() + vg.Length(f.down())*panel
	}
}

// A size is the width of a figure and the number of its panels.
type size struct {
	width  vg.Length
	height vg.Length // 0: computed from the panels
	panels int
	across int // panels side by side
}

// newSize returns the size of a figure with panels, at most limit of them side by side if limit is
// not 0. If a line has room for them, groups of together panels do not break across lines.
func newSize(o Options, panels, together, limit int) size {
	s := size{width: 85 * vg.Millimeter, height: vg.Length(o.Height) * vg.Millimeter, panels: panels}
	if o.Columns == 2 {
		s.width = 175 * vg.Millimeter
	}
	if o.Width != 0 {
		s.width = vg.Length(o.Width) * vg.Millimeter
	}
	each := 55 * vg.Millimeter // smallest width of a panel
	if s.width < 120*vg.Millimeter {
		each = 40 * vg.Millimeter // two panels in one column of a page
	}
	s.across = max(1, min(panels, int(s.width/each)))
	if limit > 0 {
		s.across = min(s.across, limit)
	}
	if panels == 4 && s.across == 3 { // two rows of two instead of three and one
		s.across = 2
	}
	if together > 1 && together < s.across {
		s.across -= s.across % together
	}
	return s
}

// down returns the number of rows of panels.
func (s size) down() int { return (s.panels + s.across - 1) / s.across }

// room returns the width available to the title of a panel.
func (s size) room() vg.Length {
	return s.width/vg.Length(s.across) - 10*vg.Millimeter // less the vertical axis
}

// panelHeight returns the height of a panel of curves.
func (s size) panelHeight() vg.Length {
	if s.height != 0 {
		return s.height / vg.Length(max(1, s.down()))
	}
	const aspect, most = 0.74, 62 * vg.Millimeter // height by width, and the largest height
	return min(s.width/vg.Length(s.across)*aspect, most)
}

func (s size) axisLength() vg.Length {
	return s.panelHeight() - 11*vg.Millimeter // less the title and the horizontal axis
}

func (f *Figure) titleHeight() vg.Length {
	if f.title == "" {
		return 0
	}
	return f.style.heading.Size * 1.6
}

// draw draws title, legend and panels on a canvas.
func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(f.style.ground)
	c.Fill(c.Rectangle.Path())
	if f.title != "" {
		at := vg.Point{X: c.Center().X, Y: c.Max.Y - 1*vg.Millimeter}
		f.style.write(c, f.style.heading, f.title, at, middle, below)
	}
	c = draw.Crop(c, 0, 0, 0, -f.titleHeight())
	f.drawLegend(c)
	c = draw.Crop(c, 0, 0, 0, -f.legendHeight())
	if f.scale != nil {
		f.scale.draw(c, f.style)
		c = draw.Crop(c, 0, -scaleWidth, 0, 0)
	}
	for i, tile := range f.tiles(c) {
		f.panels[i].Draw(tile)
	}
}

// tiles returns the canvases of the panels, whose data areas have the same size, and leaves out the
// ticks for which these have no room.
func (f *Figure) tiles(c draw.Canvas) []draw.Canvas {
	gap := 2.5 * vg.Millimeter
	grid := make([][]*plot.Plot, f.down())
	for i := range grid {
		grid[i] = make([]*plot.Plot, f.across)
		copy(grid[i], f.panels[i*f.across:])
	}
	aligned := func() []draw.Canvas {
		return slices.Concat(plot.Align(grid, draw.Tiles{Rows: f.down(), Cols: f.across, PadX: gap, PadY: gap,
			PadTop: gap / 2, PadBottom: gap / 3, PadLeft: gap / 3, PadRight: gap / 2}, c)...)[:len(f.panels)]
	}
	for i, tile := range aligned() {
		p := f.panels[i]
		room := p.DataCanvas(tile).Size()
		across := func(label string) vg.Length {
			if p.X.Tick.Label.Rotation != 0 { // the next label can begin beneath it
				return 3
			}
			return f.style.textWidth(p.X.Tick.Label.Font, label) + 3
		}
		p.X.Tick.Marker = spaced{p.X.Tick.Marker, room.X, across}
		p.Y.Tick.Marker = spaced{p.Y.Tick.Marker, room.Y, func(string) vg.Length { return p.Y.Tick.Label.Font.Size }}
	}
	return aligned()
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

// An entry of the legend associates a name with a look.
type entry struct {
	name string
	look look
	kind swatchKind
}

// A swatchKind is how an entry of the legend shows its look.
type swatchKind int

const (
	lineSwatch  swatchKind = iota // a line with a marker
	patchSwatch                   // for bars and histograms
	dotSwatch                     // a marker
)

const (
	swatch    = 5 * vg.Millimeter   // length of the line of an entry
	entryGap  = 4 * vg.Millimeter   // between entries
	legendRow = 3.6 * vg.Millimeter // height of a row of entries
)

// legendOf returns an entry for each name, or for the highlighted one and for all others.
func legendOf(names []string, highlight int, kind swatchKind) []entry {
	if highlight >= 0 {
		others := fmt.Sprintf("%d others", len(names)-1)
		return []entry{{clean(names[highlight]), lookOf(0), kind}, {others, greyLook, kind}}
	}
	var out []entry
	for i, name := range names {
		out = append(out, entry{clean(cmp.Or(name, "none")), lookOf(i), kind})
	}
	return out
}

// legendRows arranges the entries in rows from left to right. A single entry is not shown.
func (f *Figure) legendRows() [][]entry {
	if len(f.legend) < 2 {
		return nil
	}
	var rows [][]entry
	room := f.width - 4*vg.Millimeter
	used := room
	for _, e := range f.legend {
		e.name = f.style.fit(f.style.small, e.name, room-swatch-vg.Millimeter)
		w := f.entryWidth(e)
		if len(rows) == 0 || used+w > room {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += w
	}
	return rows
}

func (f *Figure) entryWidth(e entry) vg.Length {
	return swatch + vg.Millimeter + f.style.textWidth(f.style.small, e.name) + entryGap
}

func (f *Figure) legendHeight() vg.Length {
	rows := vg.Length(len(f.legendRows()))
	if rows == 0 {
		return 0
	}
	return rows*legendRow + vg.Millimeter
}

// drawLegend draws the rows of the legend, centred, at the top of a canvas.
func (f *Figure) drawLegend(c draw.Canvas) {
	for i, row := range f.legendRows() {
		total := -entryGap
		for _, e := range row {
			total += f.entryWidth(e)
		}
		x, y := c.Center().X-total/2, c.Max.Y-vg.Millimeter-(vg.Length(i)+0.5)*legendRow
		for _, e := range row {
			e.draw(c, x, y)
			f.style.write(c, f.style.small, e.name, vg.Point{X: x + swatch + vg.Millimeter, Y: y}, left, centre)
			x += f.entryWidth(e)
		}
	}
}

// draw draws the look of an entry, with its left end at x.
func (e entry) draw(c draw.Canvas, x, y vg.Length) {
	at := x + swatch/2
	if e.kind == patchSwatch {
		c.SetColor(e.look.colour)
		c.Fill(vg.Rectangle{Min: vg.Point{X: at - 3, Y: y - 2.5}, Max: vg.Point{X: at + 3, Y: y + 2.5}}.Path())
		return
	}
	if e.kind == lineSwatch {
		c.StrokeLine2(e.look.line(1), x, y, x+swatch, y)
	}
	c.DrawGlyph(e.look.mark(2), vg.Point{X: at, Y: y})
}
