package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// A Figure is one flat shape on an image, given by its factors: the properties below.
//
// The edge is blurred over one pixel in every direction. The coverage of a pixel is min(1, max(0,
// 1/2 - d)), where d is the distance in pixels from the pixel's centre to the edge, negative inside
// the figure. The colour is multiplied by it. The exact area of the pixel that the figure covers
// would blur a diagonal edge 1.4 times as much as a vertical one. With this rule a rotated figure
// is the rotated image as nearly as pixels allow.
type Figure struct {
	Kind     string  // a name of ShapeKinds
	Scale    float64 // diameter of the circumscribed circle, as a fraction of the shorter side
	Rotation float64 // degrees, counter-clockwise
	X, Y     float64 // offset from the image's centre, right and down, in fractions of that side
	Hue      float64 // degrees: 0 red, 120 green, 240 blue; saturation and value are 1
}

// ShapeKinds returns the names of the kinds of figures. They differ in the directions of their
// edges: a bar and stripes have one main direction, a cross and a square two, a triangle three, a
// star five, and a disc and a ring all.
func ShapeKinds() []string {
	kinds := make([]string, len(outlines))
	for i, o := range outlines {
		kinds[i] = o.kind
	}
	return kinds
}

// A point is a position relative to a figure's centre, x to the right and y up, in units of the
// radius of the circumscribed circle or, once scaled, in pixels.
type point struct{ x, y float64 }

// An outline is the edge of a kind of figure: either counter-clockwise polygons that do not
// overlap, or the circles that bound a disc or a ring. It touches the unit circle.
type outline struct {
	kind         string
	contours     [][]point
	outer, inner float64 // radii of a disc or a ring; 0: none
}

// outlines are the kinds of figures. Their order is that of the labels. A bar is 4 times as wide as
// high, a cross 3 times as wide as its arms, and the sides of a star are those of a pentagram.
var outlines = []outline{
	{kind: "bar", contours: [][]point{box(0, 4/math.Sqrt(17), 1/math.Sqrt(17))}},
	{kind: "cross", contours: [][]point{cross(3/math.Sqrt(10), 1/math.Sqrt(10))}},
	{kind: "disc", outer: 1},
	{kind: "ring", outer: 1, inner: 0.6},
	{kind: "square", contours: [][]point{box(0, math.Sqrt2/2, math.Sqrt2/2)}},
	{kind: "star", contours: [][]point{radialPolygon(10, 1, math.Sin(math.Pi/10)/math.Sin(3*math.Pi/10))}},
	{kind: "stripes", contours: [][]point{
		box(-0.4*math.Sqrt2, math.Sqrt2/2, 0.1*math.Sqrt2),
		box(0, math.Sqrt2/2, 0.1*math.Sqrt2),
		box(0.4*math.Sqrt2, math.Sqrt2/2, 0.1*math.Sqrt2),
	}},
	{kind: "triangle", contours: [][]point{radialPolygon(3, 1, 1)}},
}

func findOutline(kind string) (outline, bool) {
	i := slices.IndexFunc(outlines, func(o outline) bool { return o.kind == kind })
	if i < 0 {
		return outline{}, false
	}
	return outlines[i], true
}

// box returns a rectangle with centre (0, y) that is 2 w wide and 2 h high.
func box(y, w, h float64) []point {
	return []point{{-w, y - h}, {w, y - h}, {w, y + h}, {-w, y + h}}
}

// cross returns a plus sign whose arms extend to l and are 2 w wide.
func cross(l, w float64) []point {
	return []point{{w, -l}, {w, -w}, {l, -w}, {l, w}, {w, w}, {w, l}, {-w, l}, {-w, w}, {-l, w}, {-l, -w}, {-w, -w}, {-w, -l}}
}

// radialPolygon returns a polygon of n corners at equal angles from the top. Their distances from
// the centre alternate between even and odd.
func radialPolygon(n int, even, odd float64) []point {
	corners := make([]point, n)
	for i := range corners {
		r := even
		if i%2 == 1 {
			r = odd
		}
		sin, cos := math.Sincos(2*math.Pi*float64(i)/float64(n) + math.Pi/2)
		corners[i] = point{r * cos, r * sin}
	}
	return corners
}

// scaled returns the outline scaled to a radius in pixels and rotated by an angle in degrees.
func (o outline) scaled(radius, degrees float64) outline {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	sin, cos = sin*radius, cos*radius
	contours := make([][]point, len(o.contours))
	for i, c := range o.contours {
		contours[i] = make([]point, len(c))
		for j, p := range c {
			contours[i][j] = point{cos*p.x - sin*p.y, sin*p.x + cos*p.y}
		}
	}
	return outline{kind: o.kind, contours: contours, outer: o.outer * radius, inner: o.inner * radius}
}

// distance returns the signed distance from p to the edge: negative inside.
func (o outline) distance(p point) float64 {
	if len(o.contours) == 0 {
		r := math.Hypot(p.x, p.y)
		if o.inner == 0 {
			return r - o.outer
		}
		return max(r-o.outer, o.inner-r)
	}
	nearest, inside := math.Inf(1), false
	for _, c := range o.contours {
		a := c[len(c)-1]
		for _, b := range c {
			nearest = min(nearest, segmentDistance2(p, a, b))
			// A ray to the right enters or leaves the figure where it crosses an edge.
			if (a.y > p.y) != (b.y > p.y) && p.x < a.x+(p.y-a.y)*(b.x-a.x)/(b.y-a.y) {
				inside = !inside
			}
			a = b
		}
	}
	if inside {
		return -math.Sqrt(nearest)
	}
	return math.Sqrt(nearest)
}

// segmentDistance2 returns the squared distance from p to the segment a b.
func segmentDistance2(p, a, b point) float64 {
	ex, ey := b.x-a.x, b.y-a.y
	px, py := p.x-a.x, p.y-a.y
	t := min(1, max(0, (px*ex+py*ey)/(ex*ex+ey*ey)))
	dx, dy := px-t*ex, py-t*ey
	return dx*dx + dy*dy
}

// Draw overwrites dst, c x h x w, with the figure on black: in its colour if c is 3, in white if c
// is 1. Draw returns an error for an unknown kind, another number of channels, a scale that is not
// above 0, and factors that are not finite.
func (f Figure) Draw(dst tensor.Tensor) error {
	o, ok := findOutline(f.Kind)
	if !ok {
		return fmt.Errorf("unknown figure %q: use one of %v", f.Kind, ShapeKinds())
	}
	if dst.Rank() != 3 || dst.Shape[0] != 1 && dst.Shape[0] != 3 {
		return fmt.Errorf("a figure needs a tensor of 1 or 3 channels x height x width, not %v", dst.Shape)
	}
	// If a factor is not finite, neither is the sum, and sum - sum is NaN.
	if sum := f.Scale + f.Rotation + f.X + f.Y + f.Hue; !(f.Scale > 0) || sum-sum != 0 {
		return fmt.Errorf("the scale must be above 0 and the factors finite, not %+v", f)
	}
	colour := []float32{1}
	if dst.Shape[0] == 3 {
		colour = hueColour(f.Hue)
	}
	f.fill(dst, o, colour)
	return nil
}

// fill draws an outline in a colour on black.
func (f Figure) fill(dst tensor.Tensor, o outline, colour []float32) {
	clear(dst.Data)
	h, w := dst.Shape[1], dst.Shape[2]
	f.cover(o, h, w, func(i, j int, coverage float32) {
		for c, v := range colour {
			dst.Data[(c*h+i)*w+j] = v * coverage
		}
	})
}

// cover calls visit for the pixels of an h x w image up to one pixel beyond the circumscribed
// circle, each with its coverage (see Figure). i is the row and j the column.
func (f Figure) cover(o outline, h, w int, visit func(i, j int, coverage float32)) {
	side := float64(min(h, w))
	radius := side * f.Scale / 2
	cx, cy := float64(w)/2+side*f.X, float64(h)/2+side*f.Y
	o = o.scaled(radius, f.Rotation)
	maxDistance := radius + 1
	for i := max(0, int(cy-maxDistance)); i < min(h, int(cy+maxDistance)+1); i++ {
		for j := max(0, int(cx-maxDistance)); j < min(w, int(cx+maxDistance)+1); j++ {
			p := point{float64(j) + 0.5 - cx, cy - float64(i) - 0.5}
			if p.x*p.x+p.y*p.y > maxDistance*maxDistance {
				continue
			}
			visit(i, j, float32(min(1, max(0, 0.5-o.distance(p)))))
		}
	}
}

// hueColour returns the red, green and blue of a hue in degrees at full saturation and value. Each
// channel is 1 within 60 degrees of its primary colour, and falls linearly to 0 at 120 degrees.
func hueColour(degrees float64) []float32 {
	rgb := make([]float32, 3)
	for c := range rgb {
		distance := math.Abs(math.Remainder(degrees-120*float64(c), 360))
		rgb[c] = float32(min(1, max(0, 2-distance/60)))
	}
	return rgb
}
