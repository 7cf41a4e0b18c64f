package transform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/tensor"
)

// The functions below call an optional method of a Transform or Op, with a safe default.

// Random reports whether Draw returns different Ops for different generators. The default is true.
func Random(t Transform) bool {
	r, ok := t.(interface{ Random() bool })
	return !ok || r.Random()
}

// Version is increased when results change, so that stored scores are not reused. The default is 1.
func Version(t Transform) int {
	if v, ok := t.(interface{ Version() int }); ok {
		return v.Version()
	}
	return 1
}

// OnMaps reports whether a transform applies to feature maps, of any channels and values, as
// geometric ones, blur, identity and noise do. The default is false.
func OnMaps(t Transform) bool {
	m, ok := t.(interface{ OnMaps() bool })
	return ok && m.OnMaps()
}

// OnAudio reports whether the transform applies to audio. The default is false.
func OnAudio(t Transform) bool {
	s, ok := t.(interface{ OnAudio() bool })
	return ok && s.OnAudio()
}

// OnImages reports whether the transform applies to images. The default is true.
func OnImages(t Transform) bool {
	i, ok := t.(interface{ OnImages() bool })
	return !ok || i.OnImages()
}

// Permutes reports whether the Op permutes the pixels of an h x w image without interpolation:
// identity, flips, and rotations by multiples of 90 degrees, or of 180 if the image is not square.
// Then z and z' may correlate exactly, and canonical vectors are not unique. The default is false.
func Permutes(op Op, h, w int) bool {
	p, ok := op.(interface{ Permutes(h, w int) bool })
	return ok && p.Permutes(h, w)
}

// Parameter returns an Op's only parameter, in the unit of Kind.Params, and whether there is one.
func Parameter(op Op) (float64, bool) {
	p, ok := op.(interface{ Parameter() float64 })
	if !ok {
		return 0, false
	}
	return p.Parameter(), true
}

// DescribeRandom returns an Op's random values as text: Parameter or the method Describe() string,
// "" without any.
func DescribeRandom(t Transform, op Op) string {
	withSeed := func(seed uint64) string { return describe(t.Draw(rand.New(rand.NewPCG(seed, 0)))) }
	if withSeed(1) == withSeed(2) {
		return ""
	}
	return describe(op)
}

func describe(op Op) string {
	if v, ok := Parameter(op); ok {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	if d, ok := op.(interface{ Describe() string }); ok {
		return d.Describe()
	}
	return ""
}

// CropPosition returns where a clip is cropped from lengthened audio, from 0 (earliest) to below 1.
// The default is 0.
func CropPosition(op Op) float64 {
	if p, ok := op.(interface{ CropPosition() float64 }); ok {
		return p.CropPosition()
	}
	return 0
}

// Renew returns the Op with the same parameters and new noise. Without the method it is unchanged,
// and r unused.
//
// With per: trial samples share parameters, but noise must stay independent: statistics over
// samples cannot detect common noise.
func Renew(op Op, r *rand.Rand) Op {
	if n, ok := op.(interface{ Renew(*rand.Rand) Op }); ok {
		return n.Renew(r)
	}
	return op
}

// Err returns why an Op could not be applied: that of a Function may fail. The default is nil.
func Err(op Op) error {
	if e, ok := op.(interface{ Err() error }); ok {
		return e.Err()
	}
	return nil
}

func anyRandom(params ...Distribution) bool {
	return slices.ContainsFunc(params, func(d Distribution) bool { return !d.Fixed() })
}

// dims panics if dst and src differ in shape, a programming error.
func dims(dst, src tensor.Tensor) (c, h, w int) {
	if len(src.Shape) != 3 || !slices.Equal(dst.Shape, src.Shape) {
		panic(fmt.Sprintf("transform: Apply from shape %v to %v; both must be the same c x h x w", src.Shape, dst.Shape))
	}
	return src.Shape[0], src.Shape[1], src.Shape[2]
}
