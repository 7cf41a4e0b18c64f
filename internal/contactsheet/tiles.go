package contactsheet

import (
	"cmp"
	"image"
	"image/color"
	"maps"
	"math"
	"slices"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/noether-ml/noether/tensor"
)

// Tile returns an image, c x h x w with values in [0, 1], enlarged by Zoom(h, w, least), or reduced
// so that its longer side has at most most pixels.
func Tile(p tensor.Tensor, least, most int) *image.NRGBA {
	h, w := p.Shape[1], p.Shape[2]
	zoom := Zoom(h, w, least)
	full := Blank(w*zoom, h*zoom)
	Paint(full, 0, 0, zoom, p)
	long := max(h, w)
	if long <= most {
		return full
	}
	out := Blank(max(1, w*most/long), max(1, h*most/long))
	draw.CatmullRom.Scale(out, out.Bounds(), full, full.Bounds(), draw.Src, nil)
	return out
}

// Sheet draws rows of tiles, all of the size of the first, with a gap in pixels between them.
func Sheet(rows [][]*image.NRGBA, gap int) *image.NRGBA {
	size := rows[0][0].Bounds().Size()
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	out := Blank(columns*(size.X+gap)+gap, len(rows)*(size.Y+gap)+gap)
	for i, row := range rows {
		for j, tile := range row {
			at := image.Pt(gap+j*(size.X+gap), gap+i*(size.Y+gap))
			draw.Draw(out, image.Rectangle{at, at.Add(size)}, tile, image.Point{}, draw.Src)
		}
	}
	return out
}

// A Box is a rectangle to draw on a tile, in fractions of its sides, with a name such as its class.
type Box struct {
	Left, Top, Right, Bottom float64
	Name                     string
	Colour                   color.NRGBA
	Around                   bool // the border lies around the box, and the name below it, so that another box on it is visible
}

// Draw draws the border and the name.
func (b Box) Draw(tile *image.NRGBA) {
	size := tile.Bounds().Size()
	at := func(v float64, n int) int { return min(max(int(math.Round(v*float64(n))), 0), n) }
	box := image.Rect(at(b.Left, size.X), at(b.Top, size.Y), at(b.Right, size.X), at(b.Bottom, size.Y))
	const width = 2
	if b.Around {
		box = box.Inset(-width)
	}
	fill := func(r image.Rectangle) { draw.Draw(tile, r, image.NewUniform(b.Colour), image.Point{}, draw.Src) }
	fill(image.Rect(box.Min.X, box.Min.Y, box.Max.X, box.Min.Y+width))
	fill(image.Rect(box.Min.X, box.Max.Y-width, box.Max.X, box.Max.Y))
	fill(image.Rect(box.Min.X, box.Min.Y, box.Min.X+width, box.Max.Y))
	fill(image.Rect(box.Max.X-width, box.Min.Y, box.Max.X, box.Max.Y))
	if b.Name == "" {
		return
	}
	top := box.Min.Y
	if b.Around {
		top = box.Max.Y - width
	}
	write(tile, image.Pt(box.Min.X, top), b.Name, b.Colour)
}

// write writes a word in white on a colour, from a corner or, if there is no room, further left or
// up, and returns the height that it takes.
func write(tile *image.NRGBA, corner image.Point, word string, c color.NRGBA) (high int) {
	size, face := tile.Bounds().Size(), basicfont.Face7x13
	wide, high := font.MeasureString(face, word).Ceil()+2, face.Height
	corner = image.Pt(max(0, min(corner.X, size.X-wide)), max(0, min(corner.Y, size.Y-high)))
	draw.Draw(tile, image.Rectangle{corner, corner.Add(image.Pt(wide, high))}, image.NewUniform(c), image.Point{}, draw.Src)
	d := font.Drawer{Dst: tile, Src: image.White, Face: face, Dot: fixed.P(corner.X+1, corner.Y+face.Ascent)}
	d.DrawString(word)
	return high
}

// Tint colours a tile half by the class of each position, -1 for none, of a map of height x width.
// The names of the most frequent classes are written on it.
func Tint(tile *image.NRGBA, classes []float32, height, width int, name func(class int) string) {
	size := tile.Bounds().Size()
	count := map[int]int{}
	for y := range size.Y {
		for x := range size.X {
			k := int(classes[y*height/size.Y*width+x*width/size.X])
			if k < 0 {
				continue
			}
			count[k]++
			a, b := tile.NRGBAAt(x, y), ClassColour(k)
			half := func(u, v uint8) uint8 { return uint8((int(u) + int(v)) / 2) }
			tile.SetNRGBA(x, y, color.NRGBA{half(a.R, b.R), half(a.G, b.G), half(a.B, b.B), 255})
		}
	}
	top := 0
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b int) int { return cmp.Or(count[b]-count[a], a-b) })
	for _, k := range frequent[:min(len(frequent), namedClasses)] {
		top += write(tile, image.Pt(0, top), name(k), ClassColour(k))
	}
}

// namedClasses is the largest number of classes that Tint names.
const namedClasses = 4

// ClassColour returns the colour of a class. Hues of successive classes are the golden angle apart,
// so that those of few classes differ. They are dark enough for white words on them.
func ClassColour(k int) color.NRGBA {
	hue := math.Mod(float64(k)*0.618033988749895, 1) * 6
	level := func(from float64) uint8 { // a triangle wave over the hue
		v := math.Abs(math.Mod(hue+from, 6)-3) - 1
		return uint8(160 * min(1, max(0, v)))
	}
	return color.NRGBA{level(0), level(4), level(2), 255}
}
