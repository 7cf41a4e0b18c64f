package transform

import (
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// Grayscale sets every channel to the image's grey, 0.2989 R + 0.587 G + 0.114 B, as torchvision's
// rgb_to_grayscale does. The number of channels stays; one is unchanged, 2 or more than 3 have
// their mean as grey.
type Grayscale struct{}

// Brightness multiplies by a factor and clips to [0, 1]: torchvision's adjust_brightness. Negative
// factors give black, as for PIL images; for tensors torchvision rejects them.
type Brightness struct {
	Factor Distribution
}

// Contrast mixes an image x with its mean grey m, by a factor f of at least 0, and clips to [0, 1]:
// f x + (1 - f) m, as torchvision's adjust_contrast does. Grey is as in Grayscale.
type Contrast struct {
	Factor Distribution
}

func (t Grayscale) Draw(*rand.Rand) Op    { return t }
func (t Brightness) Draw(r *rand.Rand) Op { return brightnessOp{parameter{t.Factor.Draw(r)}} }
func (t Contrast) Draw(r *rand.Rand) Op   { return contrastOp{parameter{t.Factor.Draw(r)}} }
func (t Grayscale) Random() bool          { return false }
func (t Brightness) Random() bool         { return anyRandom(t.Factor) }
func (t Contrast) Random() bool           { return anyRandom(t.Factor) }

// A parameter is the parameter of an Op that has one number.
type parameter struct{ value float64 }

func (p parameter) Parameter() float64 { return p.value }

type (
	brightnessOp struct{ parameter }
	contrastOp   struct{ parameter }
)

func (t Grayscale) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	n := h * w
	if c == 0 {
		return
	}
	grey(dst.Data[:n], src.Data, c)
	for plane := 1; plane < c; plane++ {
		copy(dst.Data[plane*n:(plane+1)*n], dst.Data[:n])
	}
}

func (o brightnessOp) Apply(dst, src tensor.Tensor) {
	dims(dst, src)
	f := float32(o.value)
	for i, v := range src.Data {
		dst.Data[i] = clip(f * v)
	}
}

func (o contrastOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	if len(src.Data) == 0 {
		return
	}
	n := h * w
	grey(dst.Data[:n], src.Data, c) // dst serves as scratch until it is written
	var sum float64
	for _, v := range dst.Data[:n] {
		sum += float64(v)
	}
	f, shift := float32(o.value), float32((1-o.value)*sum/float64(n))
	for i, v := range src.Data {
		dst.Data[i] = clip(f*v + shift)
	}
}

func grey(dst, src []float32, c int) {
	n := len(dst)
	switch c {
	case 1:
		copy(dst, src)
	case 3:
		r, g, b := src[:n], src[n:2*n], src[2*n:3*n]
		for i := range dst {
			dst[i] = 0.2989*r[i] + 0.587*g[i] + 0.114*b[i]
		}
	default:
		clear(dst)
		for plane := range c {
			for i, v := range src[plane*n : (plane+1)*n] {
				dst[i] += v / float32(c)
			}
		}
	}
}

func clip(v float32) float32 { return min(max(v, 0), 1) }

// GreyWeights returns the weights of c channels in grey, as in Grayscale.
func GreyWeights(c int) []float32 {
	if c == 3 {
		return []float32{0.2989, 0.587, 0.114}
	}
	return slices.Repeat([]float32{1 / float32(c)}, c)
}
