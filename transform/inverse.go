package transform

import (
	"math"

	"github.com/noether-ml/noether/tensor"
)

// Inverse returns the inverse of an Op and whether there is one. The inverse does not restore what
// interpolation and borders have lost. Identity, flips, rotations, translations, scalings, shears
// and sequences of them have one. An Op without a method Inverse() (Op, bool) has none.
func Inverse(op Op) (Op, bool) {
	i, ok := op.(interface{ Inverse() (Op, bool) })
	if !ok {
		return nil, false
	}
	return i.Inverse()
}

func (t Identity) Inverse() (Op, bool) { return t, true }
func (t Flip) Inverse() (Op, bool)     { return t, true }

// There is an inverse if every member has one.
func (o sequenceOp) Inverse() (Op, bool) {
	inverses := make(sequenceOp, len(o))
	for i, op := range o {
		inverse, ok := Inverse(op)
		if !ok {
			return nil, false
		}
		inverses[len(o)-1-i] = inverse
	}
	return inverses, true
}

// Inverse is none for scale 0 or a shear of 90 degrees or more.
func (o affineOp) Inverse() (Op, bool) {
	return inverseOp{o}, o.scale != 0 && math.Abs(o.shearX) < 90 && math.Abs(o.shearY) < 90
}

type inverseOp struct{ forward affineOp }

func (o inverseOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	if o.forward.Permutes(h, w) { // a rotation by quarter turns, which moves pixels unchanged
		inverse := o.forward
		inverse.angle = -inverse.angle
		inverse.quarterTurn(h, w).copyTo(dst, src)
		return
	}
	// warp takes the map from dst to src: forward.inverse for forward, so its inverse here.
	o.forward.warp(dst, src, o.forward.inverse(h, w).Inverse())
}

func (o inverseOp) Inverse() (Op, bool) { return o.forward, true }
