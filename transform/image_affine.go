package transform

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Rotate rotates an image about its centre, counter-clockwise, and keeps the size: torchvision's
// rotate. Multiples of 90 degrees of a square, and of 180 of any image, permute pixels.
type Rotate struct {
	Angle Distribution // degrees
	Sampling
}

// Translate shifts an image to the right and down, by amounts that are not rounded to whole pixels.
type Translate struct {
	X, Y Distribution // fractions of the width and of the height
	Sampling
}

// Scale enlarges (factor above 1) or shrinks an image about its centre and keeps the size.
type Scale struct {
	Factor Distribution
	Sampling
}

// Shear slants an image about its centre: torchvision's affine with shear [X, Y]. X > 0 moves the
// top to the right, Y > 0 the left side down.
type Shear struct {
	X, Y Distribution // degrees, within -89 to 89
	Sampling
}

// Affine shears, scales and rotates about the centre and then shifts, in that order, with one
// interpolation:
//
//	p' = t + R(Rotate) Scale SHy(ShearY) SHx(ShearX) p,
//
// where p and p' are a point of the image and of the result, relative to the centre, t is the
// shift, R a rotation, and SHx and SHy are the shears of Shear. This is torchvision's affine with
// angle -Rotate, since torchvision's angle is clockwise.
type Affine struct {
	Rotate         Distribution // degrees counter-clockwise
	X, Y           Distribution // fractions of the sides, to the right and down
	Scale          Distribution // factor of lengths, above 0
	ShearX, ShearY Distribution // degrees, as in Shear
	Sampling
}

func (t Rotate) Draw(r *rand.Rand) Op {
	return rotateOp{affineOp{angle: t.Angle.Draw(r), scale: 1, Sampling: t.Sampling}}
}

func (t Translate) Draw(r *rand.Rand) Op {
	return affineOp{x: t.X.Draw(r), y: t.Y.Draw(r), scale: 1, Sampling: t.Sampling}
}

func (t Scale) Draw(r *rand.Rand) Op {
	return scaleOp{affineOp{scale: t.Factor.Draw(r), Sampling: t.Sampling}}
}

func (t Shear) Draw(r *rand.Rand) Op {
	return affineOp{shearX: t.X.Draw(r), shearY: t.Y.Draw(r), scale: 1, Sampling: t.Sampling}
}

func (t Affine) Draw(r *rand.Rand) Op {
	return affineOp{
		angle: t.Rotate.Draw(r), x: t.X.Draw(r), y: t.Y.Draw(r), scale: t.Scale.Draw(r),
		shearX: t.ShearX.Draw(r), shearY: t.ShearY.Draw(r), Sampling: t.Sampling,
	}
}

func (t Rotate) Random() bool    { return anyRandom(t.Angle) }
func (t Translate) Random() bool { return anyRandom(t.X, t.Y) }
func (t Scale) Random() bool     { return anyRandom(t.Factor) }
func (t Shear) Random() bool     { return anyRandom(t.X, t.Y) }

func (t Affine) Random() bool {
	return anyRandom(t.Rotate, t.X, t.Y, t.Scale, t.ShearX, t.ShearY)
}

type affineOp struct {
	angle          float64 // degrees counter-clockwise
	x, y           float64 // fractions of the sides, to the right and down
	scale          float64 // factor of lengths
	shearX, shearY float64 // degrees
	Sampling
}

// Describe returns the parameters that are no identity's, such as "rotate 30, scale 0.9".
func (o affineOp) Describe() string {
	var parts []string
	add := func(name string, identity float64, values ...float64) {
		if !slices.ContainsFunc(values, func(v float64) bool { return v != identity }) {
			return
		}
		for _, v := range values {
			name += " " + strconv.FormatFloat(v, 'g', 4, 64)
		}
		parts = append(parts, name)
	}
	add("rotate", 0, o.angle)
	add("translate", 0, o.x, o.y)
	add("scale", 1, o.scale)
	add("shear", 0, o.shearX, o.shearY)
	return strings.Join(parts, ", ")
}

// The parameter of a rotation is its angle, that of a scaling its factor; others have none.
type (
	rotateOp struct{ affineOp }
	scaleOp  struct{ affineOp }
)

func (o rotateOp) Parameter() float64 { return o.angle }
func (o scaleOp) Parameter() float64  { return o.scale }

func (o affineOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	if o.Permutes(h, w) {
		o.quarterTurn(h, w).copyTo(dst, src)
		return
	}
	o.warp(dst, src, o.inverse(h, w))
}

func (o affineOp) Permutes(h, w int) bool {
	if o.x != 0 || o.y != 0 || o.scale != 1 || o.shearX != 0 || o.shearY != 0 {
		return false
	}
	return math.Mod(o.angle, 180) == 0 || h == w && math.Mod(o.angle, 90) == 0
}

// quarterTurn returns the order in which a rotation by multiples of 90 degrees reads an h x w
// source.
func (o affineOp) quarterTurn(h, w int) strided {
	switch quarters := int(math.Mod(o.angle, 360)/90+4) % 4; quarters { // counter-clockwise
	case 1:
		return strided{start: w - 1, down: -1, right: w}
	case 2:
		return strided{start: h*w - 1, down: -w, right: -1}
	case 3:
		return strided{start: (h - 1) * w, down: 1, right: -w}
	}
	return strided{start: 0, down: w, right: 1}
}

// inverse returns the map from the result to an h x w source, in pixels from the centre, as
// torchvision's _get_inverse_affine_matrix. (a b; c d) is rotation times shears, with determinant
// 1.
func (o affineOp) inverse(h, w int) measure.Affine {
	_, cosShear := sincos(o.shearY)
	sinX, cosX := sincos(o.shearX)
	tanX := sinX / cosX
	sin, cos := sincos(-o.angle) // torchvision's angle is clockwise
	sinY, cosY := sincos(-o.angle - o.shearY)
	a, b := cosY/cosShear, -cosY*tanX/cosShear-sin
	c, d := sinY/cosShear, -sinY*tanX/cosShear+cos
	m := measure.Affine{A: d / o.scale, B: -b / o.scale, D: -c / o.scale, E: a / o.scale}
	x, y := pixels(o.x, w), pixels(o.y, h)
	m.C = -(m.A*x + m.B*y)
	m.F = -(m.D*x + m.E*y)
	return m
}

// pixels returns a fraction of a side. Integers up to rounding (0.07 of 100) are rounded, to need
// no interpolation.
func pixels(fraction float64, side int) float64 {
	v := fraction * float64(side)
	if rounded := math.Round(v); math.Abs(v-rounded) < 1e-9 {
		return rounded
	}
	return v
}

// sincos returns the sine and cosine of an angle in degrees, exact at multiples of 90.
func sincos(degrees float64) (sin, cos float64) {
	switch math.Mod(degrees, 360) {
	case 0:
		return 0, 1
	case 90, -270:
		return 1, 0
	case 180, -180:
		return 0, -1
	case 270, -90:
		return -1, 0
	}
	return math.Sincos(degrees * math.Pi / 180)
}
