package dataset

import (
	"math"

	"github.com/noether-ml/noether/tensor"
)

// A regionMask is the class of each pixel of an image, made of the regions of its objects as COCO
// describes them: polygons, or runs of pixels.
type regionMask struct {
	height, width int
	classes       []float32 // 0: background; -1: none, for overlapping objects and groups
	inside        []bool    // of the region that is added; false between regions
	// Where the polygon that is added starts or ends in a column; false between polygons.
	crossings []bool
}

func newRegionMask(h, w int) *regionMask {
	return &regionMask{h, w, make([]float32, h*w), make([]bool, h*w), make([]bool, h*w)}
}

// tensor returns the classes, 1 x height x width.
func (m *regionMask) tensor() tensor.Tensor {
	return tensor.Tensor{Shape: []int{1, m.height, m.width}, Data: m.classes}
}

// add adds the region of an object of a class. A pixel of several regions has no class.
func (m *regionMask) add(r cocoRegion, class int) {
	region := pixelBox{left: m.width, top: m.height}
	for _, p := range r.polygons {
		region.include(m.addPolygon(p))
	}
	if r.runs != nil {
		m.addRuns(r.runs)
		region.include(pixelBox{0, m.width, 0, m.height})
	}
	for y := region.top; y < region.bottom; y++ {
		row := y * m.width
		for p := row + region.left; p < row+region.right; p++ {
			switch {
			case !m.inside[p]:
				continue
			case m.classes[p] == 0:
				m.classes[p] = float32(class)
			default:
				m.classes[p] = -1
			}
			m.inside[p] = false
		}
	}
}

// addRuns sets inside for the pixels of every second run. runs are lengths in pixels, down one
// column after another, alternately outside and inside of the region.
func (m *regionMask) addRuns(runs []int) {
	x, y, in := 0, 0, false
	for _, n := range runs {
		for ; n > 0; n-- {
			if in {
				m.inside[y*m.width+x] = true
			}
			if y++; y == m.height {
				x, y = x+1, 0
			}
		}
		in = !in
	}
}

// addPolygon sets inside for the pixels of a polygon, and returns a box around them. A pixel is
// inside if, in the column of its centre, the border passes an odd number of times above it. Points
// and lines of the border are rounded to fifths of a pixel as pycocotools rounds them, so that the
// pixels are the same.
func (m *regionMask) addPolygon(points []float64) pixelBox {
	const parts = 5
	// Truncated, so not rounded below 0.
	fine := func(v float64) int { return int(float64(parts*v) + 0.5) }
	n := len(points) / 2
	box := pixelBox{left: m.width, top: m.height}
	for i := range n {
		next := (i + 1) % n
		e := borderLine{fine(points[2*i]), fine(points[2*i+1]), fine(points[2*next]), fine(points[2*next+1])}
		// The border passes column x where it passes from fifth 2 to fifth 3 of the pixel.
		west, east := max(0, min(e.x0, e.x1)), max(e.x0, e.x1)
		for x := (west + 2) / parts; x < m.width && parts*x+3 <= east; x++ {
			y := max(0, (e.passes(parts*x+2)+2)/parts)
			if y < m.height {
				m.crossings[y*m.width+x] = !m.crossings[y*m.width+x]
				box.include(pixelBox{x, x + 1, y, y + 1})
			}
		}
	}
	box.bottom = m.height
	m.fill(box)
	return box
}

// fill sets inside below odd numbers of crossings, all of which are in a box, and clears them.
func (m *regionMask) fill(box pixelBox) {
	odd := make([]bool, max(0, box.right-box.left))
	for y := box.top; y < box.bottom; y++ {
		row := y*m.width + box.left
		crossings, inside := m.crossings[row:][:len(odd)], m.inside[row:][:len(odd)]
		for x, c := range crossings {
			if c {
				odd[x], crossings[x] = !odd[x], false
			}
			if odd[x] {
				inside[x] = true
			}
		}
	}
}

// A pixelBox is a rectangle of pixels; right and bottom are past the last column and row.
type pixelBox struct{ left, right, top, bottom int }

// include extends the box to another.
func (b *pixelBox) include(o pixelBox) {
	*b = pixelBox{min(b.left, o.left), max(b.right, o.right), min(b.top, o.top), max(b.bottom, o.bottom)}
}

// A borderLine is a line of a polygon's border, in fifths of pixels.
type borderLine struct{ x0, y0, x1, y1 int }

// passes returns the smaller y of the two points between which the line passes from x to x+1. The
// line has a point for each step along its longer axis, with the other coordinate rounded. The
// conversions of products keep compilers from fusing them with sums, which would round differently.
func (e borderLine) passes(x int) int {
	dx, dy := abs(e.x1-e.x0), abs(e.y1-e.y0)
	if dx >= dy {
		if e.x0 > e.x1 {
			e = borderLine{e.x1, e.y1, e.x0, e.y0}
		}
		slope := float64(e.y1-e.y0) / float64(dx)
		at := func(x int) int { return int(float64(e.y0) + float64(slope*float64(x-e.x0)) + 0.5) }
		return min(at(x), at(x+1))
	}
	if e.y0 > e.y1 {
		e = borderLine{e.x1, e.y1, e.x0, e.y0}
	}
	slope := float64(e.x1-e.x0) / float64(dy)
	at := func(t int) int { return int(float64(e.x0) + float64(slope*float64(t)) + 0.5) }
	past := func(t int) bool { return (at(t) > x) == (slope > 0) } // x is monotone in t
	t := min(max(int(math.Ceil((float64(x)+0.5-float64(e.x0))/slope)), 1), dy)
	for t > 1 && past(t-1) {
		t--
	}
	for t < dy && !past(t) {
		t++
	}
	return e.y0 + t - 1
}

func abs(v int) int { return max(v, -v) }
