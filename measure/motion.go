package measure

import "math"

// A Motion is what a transformation with fixed parameters does to positions; nil: none moves.
type Motion interface {
	// PointMap returns how positions of an h x w map move, if known. Translations are fractions of
	// sides.
	PointMap(h, w int) (PointMap, bool)
}

// PointMapOf is PointMap of a Motion that may be nil.
func PointMapOf(m Motion, h, w int) (PointMap, bool) {
	if m == nil {
		return StillPoints(h, w), true
	}
	return m.PointMap(h, w)
}

// A PointMap gives the position that each position of a transformed image or map is read from.
type PointMap struct {
	Height, Width int // of the image or feature map
	// Affine maps positions in pixels to the right and down from the centre.
	Affine  Affine
	Nearest bool // read from the nearest position; else by bilinear interpolation
	// Wrap reports whether the image is continued periodically, so a translation is a circular
	// shift.
	Wrap bool
}

// StillPoints returns the PointMap with which every position is read from itself.
func StillPoints(h, w int) PointMap {
	return PointMap{Height: h, Width: w, Affine: Affine{A: 1, E: 1}}
}

// Source returns the row and column that (i, j) is read from, maybe between positions or outside.
func (p PointMap) Source(i, j int) (row, column float64) {
	return p.SourceOf(float64(i), float64(j))
}

// SourceOf is Source for any row i and column j, also between those of the map.
func (p PointMap) SourceOf(i, j float64) (row, column float64) {
	m, cx, cy := p.Affine, float64(p.Width-1)/2, float64(p.Height-1)/2
	x, y := j-cx, i-cy
	return m.D*x + (m.E*y + m.F + cy), m.A*x + (m.B*y + m.C + cx)
}

// Mirrors reports whether the PointMap turns a figure into its mirror image.
func (p PointMap) Mirrors() bool { return p.Affine.determinant() < 0 }

// Inverse returns the inverse map of positions, and whether there is one.
func (p PointMap) Inverse() (PointMap, bool) {
	if det := p.Affine.determinant(); det == 0 || math.IsNaN(det) || math.IsInf(det, 0) {
		return p, false
	}
	p.Affine = p.Affine.Inverse()
	return p, true
}

// Fixed reports whether every position is read from itself.
func (p PointMap) Fixed() bool { return p.Affine == Affine{A: 1, E: 1} }

// PermutesAxes reports whether axes map to axes, as in flips and quarter turns of a square,
// translated or not. With Wrap, nothing is then read from outside.
func (p PointMap) PermutesAxes() bool {
	unit := func(v float64) bool { return v == 1 || v == -1 }
	m := p.Affine
	upright := unit(m.A) && unit(m.E) && m.B == 0 && m.D == 0
	turned := unit(m.B) && unit(m.D) && m.A == 0 && m.E == 0
	return upright || turned && p.Height == p.Width
}

// Turn returns the rotation in degrees counter-clockwise within [0, 360), and whether it is one,
// perhaps with a translation.
func (p PointMap) Turn() (degrees float64, ok bool) {
	const tolerance = 1e-9
	m := p.Affine
	if !(math.Abs(m.A-m.E) <= tolerance && math.Abs(m.B+m.D) <= tolerance && math.Abs(m.A*m.A+m.B*m.B-1) <= tolerance) {
		return 0, false
	}
	degrees = math.Mod(math.Atan2(-m.B, m.A)*180/math.Pi+360, 360)
	return degrees, true
}

// An Affine maps the point (x, y) to (A x + B y + C, D x + E y + F).
type Affine struct{ A, B, C, D, E, F float64 }

func (m Affine) determinant() float64 { return m.A*m.E - m.B*m.D }

// Inverse returns the inverse of a map that is not singular.
func (m Affine) Inverse() Affine {
	det := m.determinant()
	r := Affine{A: m.E / det, B: -m.B / det, D: -m.D / det, E: m.A / det}
	r.C = -(r.A*m.C + r.B*m.F)
	r.F = -(r.D*m.C + r.E*m.F)
	return r
}

// After returns the map that applies n and then m.
func (m Affine) After(n Affine) Affine {
	return Affine{
		A: m.A*n.A + m.B*n.D, B: m.A*n.B + m.B*n.E, C: m.A*n.C + m.B*n.F + m.C,
		D: m.D*n.A + m.E*n.D, E: m.D*n.B + m.E*n.E, F: m.D*n.C + m.E*n.F + m.F,
	}
}
