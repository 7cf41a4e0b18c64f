package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Crop cuts out a box of the image's proportions and resizes it back, as torchvision's resized_crop
// of tensors, without antialiasing. It has round(side h) x round(side w) pixels, at least one each,
// at the centre or, at random, anywhere within.
type Crop struct {
	// Fraction of the image's area, or of its sides with Side; in (0, 1].
	Size           Distribution
	Side           bool // Size is a fraction of the sides
	RandomPosition bool // the position is drawn
	Nearest        bool // nearest-neighbour instead of bilinear interpolation
}

func (t Crop) Draw(r *rand.Rand) Op {
	o := cropOp{crop: t, size: t.Size.Draw(r)}
	if t.RandomPosition {
		o.right, o.down = r.Float64(), r.Float64()
	}
	return o
}

func (t Crop) Random() bool { return t.RandomPosition || anyRandom(t.Size) }
func (t Crop) OnMaps() bool { return true }

type cropOp struct {
	crop        Crop
	size        float64
	right, down float64 // random position of the box, in [0, 1): fractions of the possible range
}

// Parameter returns the fraction of the area, or of the sides with Crop.Side.
func (o cropOp) Parameter() float64 { return o.size }

// Permutes reports whether the box is the whole image: only then does a crop permute pixels.
func (o cropOp) Permutes(h, w int) bool {
	top, left, bh, bw := o.box(h, w)
	return top == 0 && left == 0 && bh == h && bw == w
}

func (o cropOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	top, left, bh, bw := o.box(h, w)
	// Bilinear sampling (with Nearest at whole positions). A box in the image reads nothing
	// outside.
	s := Sampling{}
	resample(dst, src, func(row []stencil, i int) {
		y := float64(top) + o.source(i, bh, h)
		for j := range row {
			s.set(&row[j], float64(left)+o.source(j, bw, w), y, h, w)
		}
	})
}

// box returns the upper left pixel, the height and the width of the box in an h x w image.
func (o cropOp) box(h, w int) (top, left, bh, bw int) {
	side := o.size
	if !o.crop.Side {
		side = math.Sqrt(o.size)
	}
	boxSide := func(n int) int { return min(max(int(math.RoundToEven(side*float64(n))), 1), n) }
	bh, bw = boxSide(h), boxSide(w)
	if o.crop.RandomPosition {
		return int(o.down * float64(h-bh+1)), int(o.right * float64(w-bw+1)), bh, bw
	}
	// Halves round to even, as in Python.
	half := func(margin int) int { return int(math.RoundToEven(float64(margin) / 2)) }
	return half(h - bh), half(w - bw), bh, bw
}

// source returns where pixel i of n is read from on a side of box pixels, aligned at outer edges
// (align_corners=False).
func (o cropOp) source(i, box, n int) float64 {
	if o.crop.Nearest {
		return float64(i * box / n)
	}
	x := (float64(i)+0.5)*float64(box)/float64(n) - 0.5
	return min(max(x, 0), float64(box-1))
}
