package transform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TrivialAugment applies one of 14 changes with one of 31 strengths, all equally likely: Müller and
// Hutter 2021 (Wide), as torchvision's TrivialAugmentWide with nearest interpolation and black
// outside. Colours are as for float images; posterize and equalize round to 8 bits.
type TrivialAugment struct{}

func (t TrivialAugment) Draw(r *rand.Rand) Op {
	o := augmentOp{change: r.IntN(len(augmentations)), level: r.IntN(augmentLevels)}
	o.negative = r.IntN(2) == 1
	return o.canonical()
}

func (t TrivialAugment) Random() bool { return true }

// augmentLevels is the number of levels of a strength, from 0.
const augmentLevels = 31

type augmentation struct {
	name     string
	strength func(fraction float64) float64      // at a fraction of the largest level; nil: none
	signed   bool                                // the strength is negated with probability 1/2
	op       func(strength float64, h, w int) Op // the change of an image of h x w
}

// upTo returns strengths that grow linearly with the level, from 0 to largest.
func upTo(largest float64) func(float64) float64 {
	return func(fraction float64) float64 { return fraction * largest }
}

// As in torchvision, shears keep the top left corner, so a shift is added to Affine's, about the
// centre. Fixed parameters let Draw do without a generator.
var augmentations = []augmentation{
	{"identity", nil, false, func(float64, int, int) Op { return Identity{} }},
	{"shear-x", upTo(0.99), true, func(v float64, h, w int) Op {
		return nearestAffine(Affine{ShearX: Fixed(degrees(v)), X: Fixed(-v * float64(h) / 2 / float64(w))})
	}},
	{"shear-y", upTo(0.99), true, func(v float64, h, w int) Op {
		return nearestAffine(Affine{ShearY: Fixed(degrees(v)), Y: Fixed(-v * float64(w) / 2 / float64(h))})
	}},
	{"translate-x", upTo(32), true, func(v float64, _, _ int) Op { return pixelShift{right: -int(v)} }},
	{"translate-y", upTo(32), true, func(v float64, _, _ int) Op { return pixelShift{down: -int(v)} }},
	{"rotate", upTo(135), true, func(v float64, _, _ int) Op {
		return Rotate{Angle: Fixed(v), Sampling: Sampling{Nearest: true}}.Draw(nil)
	}},
	{"brightness", upTo(0.99), true, func(v float64, _, _ int) Op { return Brightness{Fixed(1 + v)}.Draw(nil) }},
	{"saturation", upTo(0.99), true, func(v float64, _, _ int) Op { return Saturation{Fixed(1 + v)}.Draw(nil) }},
	{"contrast", upTo(0.99), true, func(v float64, _, _ int) Op { return Contrast{Fixed(1 + v)}.Draw(nil) }},
	{"sharpness", upTo(0.99), true, func(v float64, _, _ int) Op { return sharpness(1 + v) }},
	{"posterize", func(f float64) float64 { return 8 - math.RoundToEven(6*f) }, false, func(v float64, _, _ int) Op { return posterize(v) }},
	{"solarize", func(f float64) float64 { return 255 * (1 - f) }, false, func(v float64, _, _ int) Op { return solarize(v) }},
	{"auto-contrast", nil, false, func(float64, int, int) Op { return autoContrast{} }},
	{"equalize", nil, false, func(float64, int, int) Op { return equalize{} }},
}

// degrees returns the angle of a shear with the given slope, in degrees.
func degrees(slope float64) float64 { return math.Atan(slope) * 180 / math.Pi }

// nearestAffine returns the operation of a fixed Affine with nearest interpolation.
func nearestAffine(t Affine) Op {
	t.Scale, t.Nearest = Fixed(1), true
	return t.Draw(nil)
}

type augmentOp struct {
	change   int  // index in augmentations
	level    int  // of the strength, from 0
	negative bool // the strength is negated
}

// canonical drops a level or sign that a change lacks, so that equal changes are equal.
func (o augmentOp) canonical() augmentOp {
	a := augmentations[o.change]
	if a.strength == nil {
		o.level = 0
	}
	o.negative = o.negative && a.signed
	return o
}

func (o augmentOp) strength() float64 {
	a := augmentations[o.change]
	if a.strength == nil {
		return 0
	}
	v := a.strength(float64(o.level) / (augmentLevels - 1))
	if o.negative {
		return -v
	}
	return v
}

func (o augmentOp) op(h, w int) Op { return augmentations[o.change].op(o.strength(), h, w) }

func (o augmentOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	o.op(h, w).Apply(dst, src)
}

func (o augmentOp) Describe() string {
	if augmentations[o.change].strength == nil {
		return augmentations[o.change].name
	}
	return fmt.Sprintf("%s %.3g", augmentations[o.change].name, o.strength())
}

func (o augmentOp) PointMap(h, w int) (measure.PointMap, bool) { return PointMapOf(o.op(h, w), h, w) }

// A pixelShift reads pixels from right and down of them; outside is black.
type pixelShift struct{ right, down int }

func (o pixelShift) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	clear(dst.Data)
	// Columns of the result that lie within the image.
	from, to := max(0, -o.right), min(w, w-o.right)
	for plane := range c {
		for i := max(0, -o.down); i < min(h, h-o.down); i++ {
			if from < to {
				copy(dst.Data[(plane*h+i)*w+from:(plane*h+i)*w+to], src.Data[(plane*h+i+o.down)*w+from+o.right:])
			}
		}
	}
}

func (o pixelShift) PointMap(h, w int) (measure.PointMap, bool) {
	p := measure.StillPoints(h, w)
	p.Nearest = true
	p.Affine.C, p.Affine.F = float64(o.right), float64(o.down)
	return p, true
}

// sharpness mixes with a blurred image: 1 is the image, 0 the blurred one. The kernel is 3 x 3, 5
// at the centre and else 1, over 13; border pixels stay.
type sharpness float64

func (o sharpness) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	copy(dst.Data, src.Data)
	for plane := range c {
		for i := 1; i < h-1; i++ {
			for j := 1; j < w-1; j++ {
				at := (plane*h+i)*w + j
				var sum float32
				for _, row := range []int{at - w, at, at + w} {
					sum += src.Data[row-1] + src.Data[row] + src.Data[row+1]
				}
				blurred := (sum + 4*src.Data[at]) / 13
				dst.Data[at] = clip(float32(o)*src.Data[at] + (1-float32(o))*blurred)
			}
		}
	}
}

// eightBits rounds a value in [0, 1] to one of 256 levels.
func eightBits(v float32) int { return int(math.Round(255 * float64(clip(v)))) }

// posterize keeps this number of the leading bits of 8-bit values.
type posterize int

func (o posterize) Apply(dst, src tensor.Tensor) {
	dims(dst, src)
	mask := -1 << (8 - int(o))
	for i, v := range src.Data {
		dst.Data[i] = float32(eightBits(v)&mask) / 255
	}
}

// solarize inverts values at or above a threshold, in levels of 0 to 255.
type solarize float64

func (o solarize) Apply(dst, src tensor.Tensor) {
	dims(dst, src)
	const rounding = 1e-4 // of values that are multiples of 1/255
	for i, v := range src.Data {
		if dst.Data[i] = v; 255*float64(v) >= float64(o)-rounding {
			dst.Data[i] = 1 - v
		}
	}
}

// autoContrast stretches each channel to [0, 1], unless constant.
type autoContrast struct{}

func (o autoContrast) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	for plane := range c {
		in, out := src.Data[plane*h*w:(plane+1)*h*w], dst.Data[plane*h*w:]
		if len(in) == 0 {
			return
		}
		low, high := slices.Min(in), slices.Max(in)
		scale := 1 / (high - low)
		if high == low || math.IsInf(float64(scale), 0) {
			low, scale = 0, 1
		}
		for i, v := range in {
			out[i] = clip((v - low) * scale)
		}
	}
}

// equalize makes each channel's 256 levels about equally frequent, as PIL does.
type equalize struct{}

func (o equalize) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	for plane := range c {
		in, out := src.Data[plane*h*w:(plane+1)*h*w], dst.Data[plane*h*w:]
		var count [256]int
		last := 0 // the highest level that occurs
		for _, v := range in {
			level := eightBits(v)
			count[level]++
			last = max(last, level)
		}
		step := (len(in) - count[last]) / 255
		var table [256]int
		for level, below := 0, 0; level < 256; level++ {
			if table[level] = level; step > 0 {
				table[level] = min((below+step/2)/step, 255)
			}
			below += count[level]
		}
		for i, v := range in {
			out[i] = float32(table[eightBits(v)]) / 255
		}
	}
}
