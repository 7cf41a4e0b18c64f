package figure

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// An entry of the legend associates a name with a look (colour, marker and dashes).
type entry struct {
	name   string
	look   look
	filled bool // a patch, for bars and histograms
	dots   bool // a mark without a line
}

const (
	swatch    = 5 * vg.Millimeter   // length of the line of an entry
	entryGap  = 4 * vg.Millimeter   // between entries
	legendRow = 3.6 * vg.Millimeter // height of a row of entries
)

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
	half := swatch / 2
	switch {
	case e.filled:
		c.SetColor(e.look.colour)
		c.Fill(vg.Rectangle{Min: vg.Point{X: x + half - 3, Y: y - 2.5}, Max: vg.Point{X: x + half + 3, Y: y + 2.5}}.Path())
	default:
		if !e.dots {
			c.StrokeLine2(e.look.line(1), x, y, x+swatch, y)
		}
		c.DrawGlyph(e.look.mark(2), vg.Point{X: x + half, Y: y})
	}
}
