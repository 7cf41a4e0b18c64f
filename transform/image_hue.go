package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Hue rotates the colours of an image by a fraction of the colour circle: torchvision's adjust_hue
// for tensors. 1/3 turns red into green, green into blue; 0.5 and -0.5 are the same. Only 3
// channels change.
type Hue struct {
	Shift Distribution // fraction of the circle, in [-0.5, 0.5]
}

// Saturation mixes x with its grey g and clips to [0, 1]: f x + (1 - f) g, torchvision's
// adjust_saturation. Negative factors give complements, as for PIL images; for tensors torchvision
// rejects them. Grey is as in Grayscale. Only 3 channels change.
type Saturation struct {
	Factor Distribution
}

func (t Hue) Draw(r *rand.Rand) Op        { return hueOp{parameter{t.Shift.Draw(r)}} }
func (t Saturation) Draw(r *rand.Rand) Op { return saturationOp{parameter{t.Factor.Draw(r)}} }
func (t Hue) Random() bool                { return anyRandom(t.Shift) }
func (t Saturation) Random() bool         { return anyRandom(t.Factor) }

type (
	hueOp        struct{ parameter }
	saturationOp struct{ parameter }
)

func (o hueOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	if c != 3 {
		copy(dst.Data, src.Data)
		return
	}
	n := h * w
	for i := range n {
		r, g, b := shiftHue(src.Data[i], src.Data[n+i], src.Data[2*n+i], o.value)
		dst.Data[i], dst.Data[n+i], dst.Data[2*n+i] = r, g, b
	}
}

// shiftHue shifts by a fraction of the circle; the largest and smallest of r, g, b stay.
func shiftHue(r, g, b float32, shift float64) (float32, float32, float32) {
	high, low := max(r, g, b), min(r, g, b)
	span := float64(high - low)
	if span == 0 {
		return r, g, b
	}
	var sextant float64 // 0 to 6: 0 red, 2 green, 4 blue
	switch high {
	case r:
		sextant = float64(g-b) / span
	case g:
		sextant = 2 + float64(b-r)/span
	default:
		sextant = 4 + float64(r-g)/span
	}
	sextant = math.Mod(sextant+6*shift+12, 6) // 12 keeps the sum above 0, as Mod needs
	sector := math.Floor(sextant)
	fraction := sextant - sector
	rising, falling := low+float32(span*fraction), high-float32(span*fraction)
	switch int(sector) % 6 {
	case 0:
		return high, rising, low
	case 1:
		return falling, high, low
	case 2:
		return low, high, rising
	case 3:
		return low, falling, high
	case 4:
		return rising, low, high
	}
	return high, low, falling
}

func (o saturationOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	if c != 3 {
		copy(dst.Data, src.Data)
		return
	}
	n := h * w
	f := float32(o.value)
	grey(dst.Data[:n], src.Data, 3)
	for i := range n {
		shift := (1 - f) * dst.Data[i] // the first plane of dst holds the grey until it is written
		for k := range 3 {
			dst.Data[k*n+i] = clip(f*src.Data[k*n+i] + shift)
		}
	}
}
