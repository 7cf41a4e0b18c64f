package transform

import (
	"math"

	"github.com/noether-ml/noether/tensor"
)

// Inverse returns the Op that undoes another, but for what interpolation and the borders have lost, and whether there is one. It exists
// for what moves pixels about one to one: identity, flips, rotations, translations, scalings, shears, and sequences of them. It is false
// for an Op that does not say (by a method Inverse() (Op, bool)).
func Inverse(op Op) (Op, bool) {
	i, ok := op.(interface{ Inverse() (Op, bool) })
	if !ok {
		return nil, false
	}
	return i.Inverse()
}

// Inverse is t itself.
func (t Identity) Inverse() (Op, bool) { return t, true }

// Inverse is t itself.
func (t Flip) Inverse() (Op, bool) { return t, true }

// Inverse undoes the last first. There is one where every member has one.
func (o sequenceOp) Inverse() (Op, bool) {
	back := make(sequenceOp, len(o))
	for i, op := range o {
		inverse, ok := Inverse(op)
		if !ok {
			return nil, false
		}
		back[len(o)-1-i] = inverse
	}
	return back, true
}

// Inverse maps the result back to the source. There is none where a scale is 0.
func (o affineOp) Inverse() (Op, bool) {
	return inverseOp{o}, o.scale != 0 && math.Abs(o.shearX) < 90 && math.Abs(o.shearY) < 90
}

// inverseOp undoes an affine Op.
type inverseOp struct{ forward affineOp }

func (o inverseOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	if o.forward.Permutes(h, w) {
		back := o.forward
		back.angle = -back.angle
		back.quarterTurn(h, w).copyTo(dst, src)
		return
	}
	o.forward.warp(dst, src, o.forward.inverse(h, w).inverse())
}

func (o inverseOp) Inverse() (Op, bool) { return o.forward, true }

// inverse is the map the other way.
func (m matrix) inverse() matrix {
	det := m.a*m.e - m.b*m.d
	r := matrix{a: m.e / det, b: -m.b / det, d: -m.d / det, e: m.a / det}
	r.c = -(r.a*m.c + r.b*m.f)
	r.f = -(r.d*m.c + r.e*m.f)
	return r
}
