package figure

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/noether-ml/noether/internal/report"
)

// A style holds the fonts and colours of a figure. Font sizes are those of captions of papers.
type style struct {
	serif                        bool
	heading, label, small        font.Font
	ground, ink, muted, hairline color.Color // of background, text, axes and grid lines, in this order
}

func newStyle(o Options) style {
	variant := font.Variant("Sans")
	if o.Serif {
		variant = "Serif"
	}
	of := func(size float64, weight xfont.Weight) font.Font {
		return font.Font{Typeface: "Liberation", Variant: variant, Weight: weight, Size: vg.Points(size)}
	}
	return style{
		serif: o.Serif, heading: of(8.5, xfont.WeightBold), label: of(8, xfont.WeightNormal), small: of(7, xfont.WeightNormal),
		ground: color.White, ink: color.Black, muted: color.Gray{0x50}, hairline: color.Gray{0xdd},
	}
}

// Alignments of text.
const (
	left   = draw.XLeft
	middle = draw.XCenter
	right  = draw.XRight
	below  = draw.YTop // the text is below the point
	centre = draw.YCenter
)

// text returns the style of a text that is aligned to its point by x and y.
func (s style) text(f font.Font, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: s.ink, Font: f, XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}

func (s style) write(c draw.Canvas, f font.Font, words string, at vg.Point, x text.XAlignment, y text.YAlignment) {
	c.FillText(s.text(f, x, y), at, words)
}

func (s style) textWidth(f font.Font, words string) vg.Length {
	return s.text(f, left, centre).Width(words)
}

// fit shortens words to the width room.
func (s style) fit(f font.Font, words string, room vg.Length) string {
	words = clean(words)
	for n := len([]rune(words)); n > 4 && s.textWidth(f, words) > room; n-- {
		words = report.Shorten(words, n)
	}
	return words
}

// fitAll shortens names, such as those of layers, to the width room. If different names would
// become equal, it shortens their moduleNames instead, or if these too would become equal, the
// names without their common prefix and suffix.
func (s style) fitAll(f font.Font, names []string, room vg.Length) []string {
	short := func(names []string) []string {
		var out []string
		for _, n := range names {
			out = append(out, s.fit(f, n, room))
		}
		return out
	}
	labels := short(names)
	if slices.Equal(labels, names) || countDistinct(labels) == countDistinct(names) {
		return labels
	}
	if labels = short(moduleNames(names)); countDistinct(labels) == countDistinct(names) {
		return labels
	}
	return short(trimCommon(names))
}

// moduleNames returns the last of the parts between slashes in which the names differ: of
// "/layer1/layer1.0/Relu" it is "layer1.0" if all names end in "Relu". It returns the names
// unchanged if different names would become equal.
func moduleNames(names []string) []string {
	last := slices.Clone(names)
	for {
		rest := make([]string, len(last))
		parts := make([]string, len(last))
		for i, n := range last {
			at := strings.LastIndex(n, "/")
			rest[i], parts[i] = n[:max(at, 0)], n[at+1:]
		}
		switch {
		case countDistinct(parts) == countDistinct(names):
			return parts
		case countDistinct(parts) > 1 || slices.Contains(rest, ""):
			return names
		}
		last = rest
	}
}

func countDistinct(names []string) int {
	return len(slices.Compact(slices.Sorted(slices.Values(names))))
}

// trimCommon removes the common prefix and suffix of all names.
func trimCommon(names []string) []string {
	if len(names) < 2 {
		return names
	}
	head, tail := []rune(names[0]), []rune(names[0])
	for _, n := range names[1:] {
		r := []rune(n)
		same := 0
		for same < min(len(head), len(r)) && head[same] == r[same] {
			same++
		}
		head = head[:same]
		same = 0
		for same < min(len(tail), len(r)) && tail[len(tail)-1-same] == r[len(r)-1-same] {
			same++
		}
		tail = tail[len(tail)-same:]
	}
	var out []string
	for _, n := range names {
		r := []rune(n)
		if len(head)+len(tail) >= len(r) { // nothing would remain
			return names
		}
		out = append(out, string(r[len(head):len(r)-len(tail)]))
	}
	return out
}

// maxLines is the maximum number of lines of a folded title.
const maxLines = 3

// fold breaks words into at most maxLines lines that are filled one after the other, and shortens
// lines that are still wider than room.
func (s style) fold(f font.Font, words string, room vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(clean(words)) {
		last := len(lines) - 1
		if last >= 0 && (len(lines) == maxLines || s.textWidth(f, lines[last]+" "+word) <= room) {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = s.fit(f, lines[i], room)
	}
	return strings.Join(lines, "\n")
}

// clean returns words without characters that could mislead a reader, see report.Printable.
func clean(words string) string { return report.Printable(words) }

// panel returns an empty plot in the style.
func (s style) panel(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = s.ground
	p.Title.Text, p.Title.TextStyle = title, s.text(s.label, middle, below)
	p.Title.Padding = 1 * vg.Millimeter
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = s.label, s.ink
		axis.Tick.Label.Font, axis.Tick.Label.Color = s.small, s.muted
		axis.LineStyle = draw.LineStyle{Color: s.muted, Width: vg.Points(0.5)}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = vg.Points(2)
		axis.Padding = 0
		axis.Tick.Marker = plot.TickerFunc(niceTicks)
	}
	p.X.Label.Padding, p.Y.Label.Padding = vg.Points(2), vg.Points(3)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = draw.LineStyle{Color: s.hairline, Width: vg.Points(0.4)}
	p.Add(grid)
	return p
}

// niceTicks returns at most six ticks at multiples of 1, 2 or 5 times a power of ten.
func niceTicks(low, high float64) []plot.Tick {
	if !(high > low) || math.IsInf(high-low, 0) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 3, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/5)))
	for _, by := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step <= 5.5 {
			break
		}
		step *= by
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var ticks []plot.Tick
	for k := math.Ceil(low/step - 1e-9); k*step <= high+1e-9*step && len(ticks) < 20; k++ {
		ticks = append(ticks, plot.Tick{Value: k*step + 0, Label: tickLabel(k*step, decimals)})
	}
	return ticks
}

func tickLabel(v float64, decimals int) string {
	if math.Abs(v) >= 1e5 || decimals > 5 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v+0, 'f', decimals, 64) // +0 turns -0 into 0
}

// A look is the colour, marker shape and line dashes of a series, for a light background.
type look struct {
	colour color.RGBA
	glyph  draw.GlyphDrawer
	dashes []vg.Length
}

// glyphs are the glyphs of markers by their names in report.Looks.
var glyphs = map[string]draw.GlyphDrawer{
	"circle": draw.CircleGlyph{}, "square": draw.BoxGlyph{}, "triangle-up": draw.PyramidGlyph{}, "cross": draw.PlusGlyph{},
	"diamond": polygon{{0, 1.2}, {1.2, 0}, {0, -1.2}, {-1.2, 0}}, "triangle-down": polygon{{-1, 0.6}, {1, 0.6}, {0, -1.1}},
}

// lookOf returns the look of the series with an index, as report.LookOf describes it.
func lookOf(i int) look {
	of := report.LookOf(i)
	l := look{colour: report.SeriesColours[of.Colour].Light.RGBA(), glyph: glyphs[of.Marker]}
	if of.Dashes[1] > 0 { // the gap; 0: a solid line
		for _, d := range of.Dashes {
			l.dashes = append(l.dashes, vg.Points(d*0.75)) // d is in pixels of an HTML page, which are 0.75 points
		}
	}
	return l
}

// greyLook is the look of series beside a highlighted one.
var greyLook = look{colour: report.Colour("#b4b9bf").RGBA(), glyph: draw.CircleGlyph{}}

func (l look) line(width float64) draw.LineStyle {
	return draw.LineStyle{Color: l.colour, Width: vg.Points(width), Dashes: l.dashes}
}

func (l look) mark(radius float64) draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.colour, Radius: vg.Points(radius), Shape: l.glyph}
}

// lookAt returns the look of the series with an index, if the one with the index highlight is the
// only one in colour; -1: all are.
func lookAt(i, highlight int) look {
	switch highlight {
	case -1:
		return lookOf(i)
	case i:
		return lookOf(0)
	}
	return greyLook
}

func (l look) withOpacity(opacity float64) color.Color {
	return color.NRGBA{l.colour.R, l.colour.G, l.colour.B, uint8(255*opacity + 0.5)}
}

// A polygon is a filled glyph with the given corners, in units of its radius.
type polygon [][2]vg.Length

// DrawGlyph implements draw.GlyphDrawer.
func (corners polygon) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for i, corner := range corners {
		to := vg.Point{X: at.X + corner[0]*s.Radius, Y: at.Y + corner[1]*s.Radius}
		if i == 0 {
			p.Move(to)
		} else {
			p.Line(to)
		}
	}
	p.Close()
	c.SetColor(s.Color)
	c.Fill(p)
}
