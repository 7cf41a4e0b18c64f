package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// RandomFlip mirrors an image with a probability: torchvision's RandomHorizontalFlip or, with
// Vertical, RandomVerticalFlip.
type RandomFlip struct {
	Vertical    bool
	Probability float64 // in [0, 1]
}

func (t RandomFlip) Draw(r *rand.Rand) Op {
	if t.Probability == 1 || t.Random() && r.Float64() < t.Probability {
		return Flip{Vertical: t.Vertical}
	}
	return Identity{}
}

func (t RandomFlip) Random() bool { return t.Probability > 0 && t.Probability < 1 }
func (t RandomFlip) OnMaps() bool { return true }

// RandomCrop pads with zeros and crops at a random whole position: torchvision's RandomCrop(side,
// padding). Both ends get Padding times the side, in pixels, halves to even: 0.125 of 32 are the 4
// pixels of He et al. 2016, section 4.2.
type RandomCrop struct {
	Padding float64 // in (0, 1], as a fraction of the side
}

func (t RandomCrop) Draw(r *rand.Rand) Op { return shiftOp{t.Padding, r.Float64(), r.Float64()} }
func (t RandomCrop) Random() bool         { return true }
func (t RandomCrop) OnMaps() bool         { return true }

// A shiftOp is drawn by RandomCrop. right and down are the box's position, fractions of the range
// in [0, 1).
type shiftOp struct{ padding, right, down float64 }

// offset returns the box's position along a side, -p to p pixels for the padding p.
func (o shiftOp) offset(position float64, side int) int {
	p := int(math.RoundToEven(o.padding * float64(side)))
	return int(position*float64(2*p+1)) - p
}

// at returns the crop of an image of h x w pixels, as the shift by which pixels are read.
func (o shiftOp) at(h, w int) pixelShift {
	return pixelShift{right: o.offset(o.right, w), down: o.offset(o.down, h)}
}

func (o shiftOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	o.at(h, w).Apply(dst, src)
}

func (o shiftOp) PointMap(h, w int) (measure.PointMap, bool) { return o.at(h, w).PointMap(h, w) }
