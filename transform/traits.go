package transform

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// What follows asks a Transform or an Op about itself. Each question is a method that a type may have; one that lacks
// it gets the cautious answer.

// Random reports whether Draw gives different Ops for different generators. It is true of a transform that does not
// say (by a method Random() bool).
func Random(t Transform) bool {
	r, ok := t.(interface{ Random() bool })
	return !ok || r.Random()
}

// Version counts the changes of what a transform makes of an input, as that of a measure counts the changes of its scores: what was
// measured with an earlier one is not taken over. It is 1 for a transform that does not say (by a method Version() int).
func Version(t Transform) int {
	if v, ok := t.(interface{ Version() int }); ok {
		return v.Version()
	}
	return 1
}

// OnMaps reports whether the transform makes sense on feature maps, which have any number of channels and any values:
// the geometric ones, blur, identity and replacement by noise do; those that recolour or clip an image do not. It
// is false for a transform that does not say (by a method OnMaps() bool).
func OnMaps(t Transform) bool {
	m, ok := t.(interface{ OnMaps() bool })
	return ok && m.OnMaps()
}

// OnAudio reports whether the transform moves sounds. It is false for one that does not say (by a method OnSounds() bool).
func OnAudio(t Transform) bool {
	s, ok := t.(interface{ OnAudio() bool })
	return ok && s.OnAudio()
}

// OnImages reports whether the transform moves images. It is true of one that does not say (by a method OnImages() bool).
func OnImages(t Transform) bool {
	p, ok := t.(interface{ OnImages() bool })
	return !ok || p.OnImages()
}

// Permutes reports whether the Op only moves the pixels of an h x w image about, each to a place of its own, with
// no interpolation: identity, flips, rotations by multiples of 90 degrees of a square. Canonical correlations then
// tie exactly, and canonical vectors are not unique. It is false for an Op that does not say (by a method
// Permutes(h, w int) bool).
func Permutes(op Op, h, w int) bool {
	p, ok := op.(interface{ Permutes(h, w int) bool })
	return ok && p.Permutes(h, w)
}

// Parameter returns the number that describes the Op, in the unit of its Kind's parameter (an angle, a factor,
// a deviation), and whether there is one: an Op with two numbers or none has no method Parameter() float64.
func Parameter(op Op) (float64, bool) {
	p, ok := op.(interface{ Parameter() float64 })
	if !ok {
		return 0, false
	}
	return p.Parameter(), true
}

// CropPosition returns where, in [0, 1), the item is taken from a sound that the Op has made longer or shorter. It is 0 for an Op
// that keeps the length (one without a method Place() float64).
func CropPosition(op Op) float64 {
	if p, ok := op.(interface{ CropPosition() float64 }); ok {
		return p.CropPosition()
	}
	return 0
}

// Renew returns the Op with the same parameters and new noise, for use on another sample. An Op without noise of
// its own (without a method Renew(*rand.Rand) Op) is returned as it is and leaves r untouched.
//
// Where one draw serves many samples (per: trial), the draw is of the parameters: each sample's noise must still be its
// own, or the noise is a constant that a statistic over samples does not see.
func Renew(op Op, r *rand.Rand) Op {
	if n, ok := op.(interface{ Renew(*rand.Rand) Op }); ok {
		return n.Renew(r)
	}
	return op
}

// anyRandom reports whether one of the distributions has more than one value.
func anyRandom(params ...Distribution) bool {
	return slices.ContainsFunc(params, func(d Distribution) bool { return !d.Fixed() })
}

// dims returns the shape of dst and src, c x h x w, and panics where they are not of one such shape: that is a
// mistake of the program, not of its input.
func dims(dst, src tensor.Tensor) (c, h, w int) {
	if len(src.Shape) != 3 || !slices.Equal(dst.Shape, src.Shape) {
		panic(fmt.Sprintf("transform: Apply from shape %v to %v; both must be the same c x h x w", src.Shape, dst.Shape))
	}
	return src.Shape[0], src.Shape[1], src.Shape[2]
}
