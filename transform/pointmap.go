package transform

import (
	"math"
	"slices"
)

// A PointMap says how an Op (a transformation with fixed parameters) moves the positions of an
// image or feature map of h rows and w columns: it gives, for each position of the result, the
// position that is read.
type PointMap struct {
	Nearest bool // read from the nearest position; else by bilinear interpolation
	// Wrap reports whether the image is continued periodically beyond its borders, so that a
	// translation is a circular shift.
	Wrap bool

	h, w int // size of the image or feature map
	// m maps a position (x, y) of the result to the position (a x + b y + c, d x + e y + f) that it
	// is read from, both in pixels to the right and down from the centre.
	m matrix
}

// A pointMapper is an Op that moves positions. PointMap returns how, and whether that is known.
type pointMapper interface {
	PointMap(h, w int) (PointMap, bool)
}

// PointMapOf returns how an Op moves the positions of an h x w map, and whether that is known.
// Translations are fractions of the sides h and w. An Op without a method PointMap(h, w int)
// (PointMap, bool), such as one that changes colours, moves no position. A sequence moves positions
// as its members do one after the other.
func PointMapOf(op Op, h, w int) (PointMap, bool) {
	if p, ok := op.(pointMapper); ok {
		return p.PointMap(h, w)
	}
	return fixedPointMap(h, w), true
}

// MovesPositions reports whether the Op is of a kind that moves positions, even if its parameters
// are such that it moves none, as a rotation by 0 degrees does.
func MovesPositions(op Op) bool {
	switch o := op.(type) {
	case sequenceOp:
		return slices.ContainsFunc(o, MovesPositions)
	case audioSequenceOp:
		return MovesPositions(o.sequenceOp)
	}
	_, ok := op.(pointMapper)
	return ok
}

// fixedPointMap returns the PointMap with which every position is read from itself.
func fixedPointMap(h, w int) PointMap { return PointMap{h: h, w: w, m: matrix{a: 1, e: 1}} }

// Source returns the row and the column that the position in row i and column j of the result is
// read from. It may lie between positions, or outside the map.
func (p PointMap) Source(i, j int) (row, column float64) {
	cx, cy := float64(p.w-1)/2, float64(p.h-1)/2
	x, y := float64(j)-cx, float64(i)-cy
	return p.m.d*x + (p.m.e*y + p.m.f + cy), p.m.a*x + (p.m.b*y + p.m.c + cx)
}

// SourceOf is Source for any row i and column j, also between those of the map.
func (p PointMap) SourceOf(i, j float64) (row, column float64) {
	cx, cy := float64(p.w-1)/2, float64(p.h-1)/2
	x, y := j-cx, i-cy
	return p.m.d*x + (p.m.e*y + p.m.f + cy), p.m.a*x + (p.m.b*y + p.m.c + cx)
}

// Mirrors reports whether the PointMap turns a figure into its mirror image.
func (p PointMap) Mirrors() bool { return p.m.a*p.m.e-p.m.b*p.m.d < 0 }

// Inverse returns the inverse map of positions, and whether there is one.
func (p PointMap) Inverse() (PointMap, bool) {
	det := p.m.a*p.m.e - p.m.b*p.m.d
	if det == 0 || math.IsNaN(det) || math.IsInf(det, 0) {
		return p, false
	}
	p.m = p.m.inverse()
	return p, true
}

// Fixed reports whether every position is read from itself.
func (p PointMap) Fixed() bool { return p.m == matrix{a: 1, e: 1} }

// PermutesAxes reports whether the PointMap, apart from a translation, maps each axis to itself or
// to the other, as flips and quarter turns of a square do. If Wrap is set too, no position is read
// from outside the image.
func (p PointMap) PermutesAxes() bool {
	unit := func(v float64) bool { return v == 1 || v == -1 }
	upright := unit(p.m.a) && unit(p.m.e) && p.m.b == 0 && p.m.d == 0
	turned := unit(p.m.b) && unit(p.m.d) && p.m.a == 0 && p.m.e == 0
	return upright || turned && p.h == p.w
}

// Turn returns the angle by which the PointMap rotates the image, in degrees counter-clockwise
// within [0, 360), and reports whether it is a rotation, perhaps followed by a translation.
func (p PointMap) Turn() (degrees float64, ok bool) {
	const tolerance = 1e-9
	m := p.m
	if !(math.Abs(m.a-m.e) <= tolerance && math.Abs(m.b+m.d) <= tolerance && math.Abs(m.a*m.a+m.b*m.b-1) <= tolerance) {
		return 0, false
	}
	degrees = math.Mod(math.Atan2(-m.b, m.a)*180/math.Pi+360, 360)
	return degrees, true
}

// PointMap implements pointMapper.
func (o affineOp) PointMap(h, w int) (PointMap, bool) {
	p := PointMap{Nearest: o.Nearest, Wrap: o.Outside == Wrapped, h: h, w: w, m: o.inverse(h, w)}
	return p, o.scale != 0
}

// PointMap implements pointMapper.
func (o inverseOp) PointMap(h, w int) (PointMap, bool) {
	p, ok := o.forward.PointMap(h, w)
	if !ok {
		return p, false
	}
	return p.Inverse()
}

// PointMap implements pointMapper.
func (t Flip) PointMap(h, w int) (PointMap, bool) {
	p := fixedPointMap(h, w)
	if t.Vertical {
		p.m.e = -1
	} else {
		p.m.a = -1
	}
	return p, true
}

// PointMap implements pointMapper. Position and size of the box are not rounded to whole pixels.
func (o cropOp) PointMap(h, w int) (PointMap, bool) {
	side := o.size
	if !o.crop.Side {
		side = math.Sqrt(o.size)
	}
	p := PointMap{Nearest: o.crop.Nearest, h: h, w: w, m: matrix{a: side, e: side}}
	if o.crop.RandomPosition {
		p.m.c = (o.right - 0.5) * (1 - side) * float64(w)
		p.m.f = (o.down - 0.5) * (1 - side) * float64(h)
	}
	return p, true
}

// PointMap implements pointMapper.
func (o sequenceOp) PointMap(h, w int) (PointMap, bool) {
	combined := fixedPointMap(h, w)
	combined.Wrap, combined.Nearest = true, true
	moves := false
	for _, op := range o {
		p, ok := PointMapOf(op, h, w)
		if !ok {
			return p, false
		}
		if p.Fixed() {
			continue
		}
		moves = true
		permutes := p.PermutesAxes() && p.m.c == 0 && p.m.f == 0
		combined.Wrap = combined.Wrap && (p.Wrap || permutes)
		combined.Nearest = combined.Nearest && (p.Nearest || permutes)
		combined.m = combined.m.after(p.m)
	}
	if !moves {
		return fixedPointMap(h, w), true
	}
	return combined, true
}

// after returns the map that applies n and then m.
func (m matrix) after(n matrix) matrix {
	return matrix{
		a: m.a*n.a + m.b*n.d, b: m.a*n.b + m.b*n.e, c: m.a*n.c + m.b*n.f + m.c,
		d: m.d*n.a + m.e*n.d, e: m.d*n.b + m.e*n.e, f: m.d*n.c + m.e*n.f + m.f,
	}
}
