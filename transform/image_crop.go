package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Crop cuts out a box of whole pixels with the image's proportions and resizes it back to the whole, as
// torchvision's resized_crop does on tensors (without antialiasing, which matters when shrinking only). The box has
// round(side h) x round(side w) pixels, at least one; it lies at the centre, as by center_crop, or anywhere within the
// image with equal chance.
type Crop struct {
	Size    Distribution // fraction of the image's area, or of its sides where Side is set; in (0, 1]
	Side    bool         // Size is a fraction of the sides
	Moving  bool         // the position is drawn
	Nearest bool         // the nearest pixel in place of bilinear interpolation
}

// Draw implements Transform.
func (t Crop) Draw(r *rand.Rand) Op {
	o := cropOp{crop: t, size: t.Size.Draw(r)}
	if t.Moving {
		o.right, o.down = r.Float64(), r.Float64()
	}
	return o
}

// Random reports whether the size or the position is drawn.
func (t Crop) Random() bool { return t.Moving || anyRandom(t.Size) }

// OnMaps is true.
func (t Crop) OnMaps() bool { return true }

type cropOp struct {
	crop        Crop
	size        float64
	right, down float64 // a random position, in [0, 1) of the room that the box has
}

// Parameter is the fraction of the area, or of the sides where the Crop was given by those.
func (o cropOp) Parameter() float64 { return o.size }

// Permutes is true where the box is the whole image.
func (o cropOp) Permutes(h, w int) bool {
	top, left, bh, bw := o.box(h, w)
	return top == 0 && left == 0 && bh == h && bw == w
}

func (o cropOp) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	top, left, bh, bw := o.box(h, w)
	s := Sampling{} // a box inside the image never reads outside
	resample(dst, src, func(taps []tap, i int) {
		y := float64(top) + o.place(i, bh, h)
		for j := range taps {
			s.tap(&taps[j], float64(left)+o.place(j, bw, w), y, h, w)
		}
	})
}

// box is the part of an h x w image that is kept.
func (o cropOp) box(h, w int) (top, left, bh, bw int) {
	side := o.size
	if !o.crop.Side {
		side = math.Sqrt(o.size)
	}
	part := func(n int) int { return min(max(int(math.RoundToEven(side*float64(n))), 1), n) }
	bh, bw = part(h), part(w)
	if o.crop.Moving {
		return int(o.down * float64(h-bh+1)), int(o.right * float64(w-bw+1)), bh, bw
	}
	half := func(room int) int { return int(math.RoundToEven(float64(room) / 2)) } // as Python rounds
	return half(h - bh), half(w - bw), bh, bw
}

// place is where the i-th of n pixels lies among the box pixels that are stretched to n: pixel areas are aligned, not
// corners.
func (o cropOp) place(i, box, n int) float64 {
	if o.crop.Nearest {
		return float64(i * box / n)
	}
	x := (float64(i)+0.5)*float64(box)/float64(n) - 0.5
	return min(max(x, 0), float64(box-1))
}
