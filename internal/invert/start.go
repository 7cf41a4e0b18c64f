package invert

import (
	"fmt"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// A StartKind names a way to make the images that a search starts from.
type StartKind string

const (
	// Noise draws uniform integers from 0 to 255, divided by 255 (Nanda et al. 2022, footnote 1).
	Noise StartKind = "noise"
	// Normal draws from N(0, 1), as the code of Nanda et al. does. The first step of the search
	// clips to [0, 1].
	Normal   StartKind = "normal"
	White    StartKind = "white"    // all 1
	Black    StartKind = "black"    // all 0
	OneNoise StartKind = "one"      // one image, drawn as for Noise, for all samples
	Shuffled StartKind = "shuffled" // the images x, permuted so that none of two or more samples starts at its own image
	// Near adds normal noise with standard deviation 1/255 to x, and clips to [0, 1]. The loss of
	// Contrast holds norms of f(x') - f(x), whose gradient at x itself is 0/0.
	Near StartKind = "near"
)

// StartKinds returns all kinds.
func StartKinds() []StartKind {
	return []StartKind{Noise, Normal, White, Black, OneNoise, Shuffled, Near}
}

// Start returns the starting images for images x, n x c x h x w; x of another rank is an error, and
// so is an unknown kind. draw returns the random generator of sample i; i is -1 for draws that all
// samples share.
func Start(kind StartKind, x tensor.Tensor, draw func(i int) *rand.Rand) (tensor.Tensor, error) {
	start := tensor.New(x.Shape...)
	if len(x.Shape) != 4 {
		return start, fmt.Errorf("making starting images: images have shape %v, want n x c x h x w", x.Shape)
	}
	n := x.Shape[0]
	fill := func(pixel func(r *rand.Rand, at int) float32) { // at is an index into x.Data
		for k := range n {
			r, values := draw(k), start.At(k).Data
			for i := range values {
				values[i] = pixel(r, k*len(values)+i)
			}
		}
	}
	switch kind {
	case Noise:
		fill(func(r *rand.Rand, _ int) float32 { return randomByte(r) })
	case Normal:
		fill(func(r *rand.Rand, _ int) float32 { return float32(r.NormFloat64()) })
	case Near:
		fill(func(r *rand.Rand, at int) float32 { return min(max(x.Data[at]+float32(r.NormFloat64()/255), 0), 1) })
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
			one[i] = randomByte(r)
		}
		for k := 1; k < n; k++ {
			copy(start.At(k).Data, one)
		}
	case Shuffled:
		for k, from := range resample.Cycle(draw(-1), n) {
			copy(start.At(k).Data, x.At(from).Data)
		}
	default:
		return start, fmt.Errorf("unknown start %q: it must be one of %v", kind, StartKinds())
	}
	return start, nil
}

func randomByte(r *rand.Rand) float32 { return float32(r.IntN(256)) / 255 }
