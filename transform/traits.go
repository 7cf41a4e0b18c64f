package transform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/tensor"
)

// The functions below call an optional method of a Transform or of an Op, the transformation with
// fixed parameters that it draws. They return a safe default for a type without the method.

// Random reports whether Draw returns different Ops for different generators. It is true for a
// transform without a method Random() bool.
func Random(t Transform) bool {
	r, ok := t.(interface{ Random() bool })
	return !ok || r.Random()
}

// Version is increased when a transform changes its results, so that stored scores of an earlier
// version are not reused. It is 1 for a transform without a method Version() int.
func Version(t Transform) int {
	if v, ok := t.(interface{ Version() int }); ok {
		return v.Version()
	}
	return 1
}

// OnMaps reports whether the transform applies to feature maps, which have any number of channels
// and any values. Geometric transforms, blur, identity and replacement by noise do; those that
// change colours or clip values do not. It is false for a transform without a method OnMaps() bool.
func OnMaps(t Transform) bool {
	m, ok := t.(interface{ OnMaps() bool })
	return ok && m.OnMaps()
}

// OnAudio reports whether the transform applies to audio. It is false for one without a method
// OnAudio() bool.
func OnAudio(t Transform) bool {
	s, ok := t.(interface{ OnAudio() bool })
	return ok && s.OnAudio()
}

// OnImages reports whether the transform applies to images. It is true for one without a method
// OnImages() bool.
func OnImages(t Transform) bool {
	i, ok := t.(interface{ OnImages() bool })
	return !ok || i.OnImages()
}

// Permutes reports whether the Op permutes the pixels of an h x w image without interpolation:
// identity, flips, and rotations by multiples of 90 degrees, or of 180 if the image is not square.
// Canonical correlations between a layer's values for an image x and for the transformed T(x) can
// then be exactly equal, so that canonical vectors are not unique. It is false for an Op without a
// method Permutes(h, w int) bool.
func Permutes(op Op, h, w int) bool {
	p, ok := op.(interface{ Permutes(h, w int) bool })
	return ok && p.Permutes(h, w)
}

// Parameter returns the value of the parameter of the Op (an angle, a factor, a standard
// deviation), in the unit of Kind.Params, and whether there is one. An Op with several parameters
// or none has no method Parameter() float64.
func Parameter(op Op) (float64, bool) {
	p, ok := op.(interface{ Parameter() float64 })
	if !ok {
		return 0, false
	}
	return p.Parameter(), true
}

// DescribeRandom returns the random values of an Op of a transform as text: the value of Parameter,
// or what the method Describe() string of the Op returns. It is "" if the transform has no random
// values.
func DescribeRandom(t Transform, op Op) string {
	withSeed := func(seed uint64) string { return describe(t.Draw(rand.New(rand.NewPCG(seed, 0)))) }
	if withSeed(1) == withSeed(2) {
		return ""
	}
	return describe(op)
}

// describe returns the values of an Op as text, or "" if it has neither a method Parameter nor
// Describe.
func describe(op Op) string {
	if v, ok := Parameter(op); ok {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	if d, ok := op.(interface{ Describe() string }); ok {
		return d.Describe()
	}
	return ""
}

// CropPosition returns where a clip of fixed length is cropped from audio that the Op has
// lengthened: from 0, the earliest crop, to below 1, the latest. It is 0 for an Op without a method
// CropPosition() float64, which keeps the length.
func CropPosition(op Op) float64 {
	if p, ok := op.(interface{ CropPosition() float64 }); ok {
		return p.CropPosition()
	}
	return 0
}

// Renew returns the Op with the same parameters and new noise, for another sample. An Op without a
// method Renew(*rand.Rand) Op has no noise; it is returned unchanged and r is not used.
//
// With per: trial in a study file one draw of the parameters is used for all samples of a trial.
// Their noise must still be independent, since statistics over samples cannot detect noise that is
// the same for all.
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

// dims returns the common shape c x h x w of dst and src. It panics if they differ, which is a
// programming error.
func dims(dst, src tensor.Tensor) (c, h, w int) {
	if len(src.Shape) != 3 || !slices.Equal(dst.Shape, src.Shape) {
		panic(fmt.Sprintf("transform: Apply from shape %v to %v; both must be the same c x h x w", src.Shape, dst.Shape))
	}
	return src.Shape[0], src.Shape[1], src.Shape[2]
}
