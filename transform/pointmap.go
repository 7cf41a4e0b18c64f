package transform

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// MotionOf returns how an Op moves positions, nil for kinds that move none, not for 0 degrees. A
// sequence moves as its members in turn.
func MotionOf(op Op) measure.Motion {
	switch o := op.(type) {
	case sequenceOp:
		if !slices.ContainsFunc(o, func(op Op) bool { return MotionOf(op) != nil }) {
			return nil
		}
	case audioSequenceOp:
		return MotionOf(o.sequenceOp)
	}
	m, _ := op.(measure.Motion)
	return m
}

// Motions returns the function that draws the motions of a transform, for measure.Site; nil for no
// transform.
func Motions(t Transform) func(r *rand.Rand) measure.Motion {
	if t == nil {
		return nil
	}
	return func(r *rand.Rand) measure.Motion { return MotionOf(t.Draw(r)) }
}

// PointMapOf returns how an Op moves the positions of an h x w map, and whether that is known.
func PointMapOf(op Op, h, w int) (measure.PointMap, bool) {
	return measure.PointMapOf(MotionOf(op), h, w)
}

func (o affineOp) PointMap(h, w int) (measure.PointMap, bool) {
	p := measure.PointMap{Nearest: o.Nearest, Wrap: o.Outside == Wrapped, Height: h, Width: w, Affine: o.inverse(h, w)}
	return p, o.scale != 0
}

func (o inverseOp) PointMap(h, w int) (measure.PointMap, bool) {
	p, ok := o.forward.PointMap(h, w)
	if !ok {
		return p, false
	}
	return p.Inverse()
}

// PointMap implements measure.Motion.
func (t Flip) PointMap(h, w int) (measure.PointMap, bool) {
	p := measure.StillPoints(h, w)
	if t.Vertical {
		p.Affine.E = -1
	} else {
		p.Affine.A = -1
	}
	return p, true
}

// The box is not rounded to whole pixels.
func (o cropOp) PointMap(h, w int) (measure.PointMap, bool) {
	side := o.size
	if !o.crop.Side {
		side = math.Sqrt(o.size)
	}
	p := measure.PointMap{Nearest: o.crop.Nearest, Height: h, Width: w, Affine: measure.Affine{A: side, E: side}}
	if o.crop.RandomPosition {
		p.Affine.C = (o.right - 0.5) * (1 - side) * float64(w)
		p.Affine.F = (o.down - 0.5) * (1 - side) * float64(h)
	}
	return p, true
}

func (o sequenceOp) PointMap(h, w int) (measure.PointMap, bool) {
	combined := measure.StillPoints(h, w)
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
		permutes := p.PermutesAxes() && p.Affine.C == 0 && p.Affine.F == 0
		combined.Wrap = combined.Wrap && (p.Wrap || permutes)
		combined.Nearest = combined.Nearest && (p.Nearest || permutes)
		combined.Affine = combined.Affine.After(p.Affine)
	}
	if !moves {
		return measure.StillPoints(h, w), true
	}
	return combined, true
}
