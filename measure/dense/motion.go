package dense

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/paired"
)

// A point is a position in the image, in fractions of its sides.
type point struct{ x, y float64 }

// A motion describes how a transformation moves the points of the image: it is an affine map.
type motion struct {
	origin      point // where (0, 0) is moved to
	right, down point // where (1, 0) and (0, 1) are moved to, relative to origin
	fixed       bool  // points do not move
	wrap        bool  // what leaves the image at one side comes in at the other
	mirror      bool  // the moved image is a mirror image: left and right of a person are exchanged
}

// newMotion returns how a transformation moves the points of an image of h x w pixels. If that is
// unknown or has no inverse, the error is paired.ErrLeftOut.
func newMotion(move measure.Motion, h, w int) (motion, error) {
	p, ok := measure.PointMapOf(move, h, w)
	if !ok {
		return motion{}, paired.ErrLeftOut
	}
	if p.Fixed() {
		return motion{right: point{x: 1}, down: point{y: 1}, fixed: true}, nil
	}
	inverse, ok := p.Inverse()
	if !ok {
		return motion{}, paired.ErrLeftOut
	}
	// at returns where (x, y) is moved to, by the inverse map. The centre of a pixel is half a
	// pixel from its corner.
	at := func(x, y float64) point {
		row, column := inverse.SourceOf(y*float64(h)-0.5, x*float64(w)-0.5)
		return point{tidy((column + 0.5) / float64(w)), tidy((row + 0.5) / float64(h))}
	}
	m := motion{origin: at(0, 0), wrap: p.Wrap, mirror: p.Mirrors()}
	right, down := at(1, 0), at(0, 1)
	m.right, m.down = point{right.x - m.origin.x, right.y - m.origin.y}, point{down.x - m.origin.x, down.y - m.origin.y}
	return m, nil
}

// tidy rounds a coordinate to 1e-12, so that whole numbers are exact.
func tidy(x float64) float64 { return math.Round(x*1e12) / 1e12 }

func (m motion) apply(p point) point {
	if m.fixed {
		return p
	}
	return point{m.origin.x + p.x*m.right.x + p.y*m.down.x, m.origin.y + p.x*m.right.y + p.y*m.down.y}
}

// outline returns the corners of the moved image, which still fills the square if it wraps around.
func (m motion) outline() [4]point {
	if m.wrap {
		return unitSquare
	}
	return [4]point{m.apply(point{0, 0}), m.apply(point{1, 0}), m.apply(point{1, 1}), m.apply(point{0, 1})}
}

var unitSquare = [4]point{{0, 0}, {1, 0}, {1, 1}, {0, 1}}

// box returns b moved and cut at the border, and the fraction of it that is inside. With ellipse it
// bounds the moved ellipse inscribed in b, not the moved corners.
func (m motion) box(b decoded.Box, ellipse bool) (moved decoded.Box, visible float64) {
	corners := [4]point{
		m.apply(point{b.Left, b.Top}), m.apply(point{b.Right, b.Top}),
		m.apply(point{b.Right, b.Bottom}), m.apply(point{b.Left, b.Bottom}),
	}
	centre := point{(corners[0].x + corners[2].x) / 2, (corners[0].y + corners[2].y) / 2}
	shift := point{} // subtracted to move the centre of the box back into an image that wraps around
	if m.wrap {
		shift = point{math.Floor(centre.x), math.Floor(centre.y)}
	}
	for i := range corners {
		corners[i].x, corners[i].y = corners[i].x-shift.x, corners[i].y-shift.y
	}
	moved = b
	moved.Left, moved.Top, moved.Right, moved.Bottom = bounds(corners)
	if ellipse {
		centre = point{centre.x - shift.x, centre.y - shift.y}
		half := func(a, b float64) float64 { return math.Hypot(a, b) / 2 }
		rx := half(corners[1].x-corners[0].x, corners[3].x-corners[0].x)
		ry := half(corners[1].y-corners[0].y, corners[3].y-corners[0].y)
		moved.Left, moved.Top, moved.Right, moved.Bottom = centre.x-rx, centre.y-ry, centre.x+rx, centre.y+ry
	}
	if whole := polygonArea(corners[:]); whole > 0 {
		visible = polygonArea(clip(corners[:], decoded.Box{Right: 1, Bottom: 1})) / whole
	}
	moved.Left, moved.Top = max(moved.Left, 0), max(moved.Top, 0)
	moved.Right, moved.Bottom = min(moved.Right, 1), min(moved.Bottom, 1)
	moved.Keypoints = m.keypoints(b.Keypoints, shift)
	return moved, visible
}

// cocoSides are the pairs of left and right among COCO's 17 keypoints of people.
var cocoSides = [][2]int{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}, {13, 14}, {15, 16}}

// Left and right of the 17 of COCO are exchanged in mirror images.
func (m motion) keypoints(points []decoded.Keypoint, shift point) []decoded.Keypoint {
	if len(points) == 0 {
		return nil
	}
	out := make([]decoded.Keypoint, len(points))
	for i, p := range points {
		at := m.apply(point{p.X, p.Y})
		out[i] = decoded.Keypoint{X: at.x - shift.x, Y: at.y - shift.y, Visible: p.Visible}
	}
	if m.mirror && len(points) == 17 {
		for _, pair := range cocoSides {
			out[pair[0]], out[pair[1]] = out[pair[1]], out[pair[0]]
		}
	}
	return out
}

func bounds(corners [4]point) (left, top, right, bottom float64) {
	left, top, right, bottom = corners[0].x, corners[0].y, corners[0].x, corners[0].y
	for _, p := range corners[1:] {
		left, top = min(left, p.x), min(top, p.y)
		right, bottom = max(right, p.x), max(bottom, p.y)
	}
	return left, top, right, bottom
}

func polygonArea(p []point) float64 {
	sum := 0.0
	for i, a := range p {
		b := p[(i+1)%len(p)]
		sum += a.x*b.y - b.x*a.y
	}
	return math.Abs(sum) / 2
}

// clip returns the part of a convex polygon inside a box (Sutherland and Hodgman 1974).
func clip(p []point, b decoded.Box) []point {
	for _, edge := range []func(point) float64{ // not negative inside
		func(q point) float64 { return q.x - b.Left },
		func(q point) float64 { return b.Right - q.x },
		func(q point) float64 { return q.y - b.Top },
		func(q point) float64 { return b.Bottom - q.y },
	} {
		var out []point
		for i, a := range p {
			c := p[(i+1)%len(p)]
			da, dc := edge(a), edge(c)
			if da >= 0 {
				out = append(out, a)
			}
			if da > 0 && dc < 0 || da < 0 && dc > 0 {
				t := da / (da - dc)
				out = append(out, point{a.x + t*(c.x-a.x), a.y + t*(c.y-a.y)})
			}
		}
		p = out
	}
	return p
}

func shown(b decoded.Box, outline [4]point) float64 {
	area := b.Area()
	if area == 0 {
		return 0
	}
	return polygonArea(clip(outline[:], b)) / area
}
