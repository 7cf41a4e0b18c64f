package invert

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// A Kind of start is where a search begins.
type Kind string

const (
	Noise    Kind = "noise"    // uniform integers 0 to 255, divided by 255, for each pixel: the paper's footnote 1
	Normal   Kind = "normal"   // N(0, 1): the authors' code. Values outside [0, 1] are clipped by the first step
	White    Kind = "white"    // all 1
	Black    Kind = "black"    // all 0
	OneNoise Kind = "one"      // one image of Noise for all samples
	Shuffled Kind = "shuffled" // the images themselves, each where another was
	Near     Kind = "near"     // the image plus N(0, 1/255): for controversial stimuli. At the image itself the gradient is 0/0
)

// Kinds are all kinds of start.
func Kinds() []Kind { return []Kind{Noise, Normal, White, Black, OneNoise, Shuffled, Near} }

// Start returns where to begin for images x, n x c x h x w. draw gives the generator of a sample, by its place; it is called
// with -1 for what concerns all of them.
func Start(kind Kind, x tensor.Tensor, draw func(i int) *rand.Rand) (tensor.Tensor, error) {
	start := tensor.New(x.Shape...)
	if len(x.Shape) != 4 {
		return start, fmt.Errorf("starting: images have the shape n x c x h x w, not %v", x.Shape)
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
		for k, from := range derangement(n, draw(-1)) {
			copy(start.At(k).Data, x.At(from).Data)
		}
	default:
		return start, fmt.Errorf("start %q: it is one of %v", kind, Kinds())
	}
	return start, nil
}

func grey(r *rand.Rand) float32 { return float32(r.IntN(256)) / 255 }

// derangement is a permutation that leaves nothing in place (but for n = 1), uniform among the cyclic ones (Sattolo 1986).
func derangement(n int, r *rand.Rand) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		k := r.IntN(i)
		p[i], p[k] = p[k], p[i]
	}
	return p
}

// InBall returns an image drawn uniformly from the ball around x, c x h x w, clipped to [0, 1].
func (b Ball) InBall(x tensor.Tensor, r *rand.Rand) tensor.Tensor {
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
