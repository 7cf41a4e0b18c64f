package invert

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// A StartKind is the kind of image that a search starts from.
type StartKind string

const (
	Noise    StartKind = "noise"    // integers 0 to 255, uniform, divided by 255: the paper's footnote 1
	Normal   StartKind = "normal"   // N(0, 1): the authors' code. The first step clips to [0, 1]
	White    StartKind = "white"    // all 1
	Black    StartKind = "black"    // all 0
	OneNoise StartKind = "one"      // one image of Noise for all samples
	Shuffled StartKind = "shuffled" // the images themselves, permuted so that none stays
	Near     StartKind = "near"     // the image plus N(0, 1/255): at the image itself the gradient is 0/0
)

// StartKinds returns all kinds.
func StartKinds() []StartKind {
	return []StartKind{Noise, Normal, White, Black, OneNoise, Shuffled, Near}
}

// Start returns the starting images for images x, n x c x h x w. draw returns the random generator
// of sample i; i is -1 for draws that all samples share.
func Start(kind StartKind, x tensor.Tensor, draw func(i int) *rand.Rand) (tensor.Tensor, error) {
	start := tensor.New(x.Shape...)
	if len(x.Shape) != 4 {
		return start, fmt.Errorf("starting: images have shape %v, not n x c x h x w", x.Shape)
	}
	n := x.Shape[0]
	each := func(f func(r *rand.Rand, i int) float32) {
		for k := range n {
			r, from := draw(k), start.At(k).Data
			for i := range from {
				from[i] = f(r, k*len(from)+i)
			}
		}
	}
	switch kind {
	case Noise:
		each(func(r *rand.Rand, _ int) float32 { return grey(r) })
	case Normal:
		each(func(r *rand.Rand, _ int) float32 { return float32(r.NormFloat64()) })
	case Near:
		each(func(r *rand.Rand, i int) float32 { return min(max(x.Data[i]+float32(r.NormFloat64()/255), 0), 1) })
	case White:
		for i := range start.Data {
			start.Data[i] = 1
		}
	case Black:
	case OneNoise:
		one := start.Data
		if n > 0 {
			one = start.At(0).Data
		}
		r := draw(-1)
		for i := range one {
			one[i] = grey(r)
		}
		for k := 1; k < n; k++ {
			copy(start.At(k).Data, one)
		}
	case Shuffled:
		for k, from := range resample.Cycle(draw(-1), n) {
			copy(start.At(k).Data, x.At(from).Data)
		}
	default:
		return start, fmt.Errorf("start %q: it must be one of %v", kind, StartKinds())
	}
	return start, nil
}

// grey returns a random integer from 0 to 255, divided by 255.
func grey(r *rand.Rand) float32 { return float32(r.IntN(256)) / 255 }

// Draw returns an image drawn uniformly from the ball around x, c x h x w, clipped to [0, 1].
func (b Ball) Draw(x tensor.Tensor, r *rand.Rand) tensor.Tensor {
	y := tensor.New(x.Shape...)
	shift := make([]float64, len(x.Data))
	switch b.Norm {
	case L2:
		var sum float64
		for i := range shift {
			shift[i] = r.NormFloat64()
			sum += shift[i] * shift[i]
		}
		length := b.Radius * math.Pow(r.Float64(), 1/float64(len(shift)))
		for i := range shift {
			shift[i] *= length / math.Sqrt(sum)
		}
	case Linf:
		for i := range shift {
			shift[i] = b.Radius * (2*r.Float64() - 1)
		}
	}
	for i, v := range x.Data {
		y.Data[i] = min(max(v+float32(shift[i]), 0), 1)
	}
	return y
}
