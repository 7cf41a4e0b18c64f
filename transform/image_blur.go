package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Bounds in pixels, so that a mistyped value does not allocate a kernel of a gigabyte.
const (
	maxSigma  = 100
	maxKernel = 1001
)

// GaussianBlur convolves each channel with a Gaussian: torchvision's gaussian_blur. The weights
// exp(-k^2 / (2 sigma^2)) at whole k are cut at the kernel's side and sum to 1. Beyond its border
// the image is reflected about the border pixels' centres: c b | a b c | b a.
type GaussianBlur struct {
	Sigma Distribution // pixels, above 0
	// Kernel is the odd side in pixels; 0: 2 ceil(3 sigma) + 1, with 99.7 % of the Gaussian along
	// an axis.
	Kernel int
}

func (t GaussianBlur) Draw(r *rand.Rand) Op {
	o := blurOp{sigma: t.Sigma.Draw(r), radius: t.Kernel / 2}
	if t.Kernel == 0 {
		o.radius = int(math.Ceil(3 * o.sigma))
	}
	return o
}

func (t GaussianBlur) Random() bool { return anyRandom(t.Sigma) }

// OnMaps is true: blur treats all channels alike, so it applies to feature maps too.
func (t GaussianBlur) OnMaps() bool { return true }

type blurOp struct {
	sigma  float64 // pixels
	radius int     // the kernel reaches from -radius to radius
}

func (o blurOp) Parameter() float64 { return o.sigma }

func (o blurOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	kernel := gaussianKernel(o.sigma, o.radius)
	for plane := range c {
		at := plane * h * w
		convolveBoth(dst.Data[at:at+h*w], src.Data[at:at+h*w], h, w, kernel, reflectIndices)
	}
}

// gaussianKernel returns weights at -radius to radius, of sum 1; only the central one for deviation
// 0.
func gaussianKernel(sigma float64, radius int) []float32 {
	weights := make([]float64, 2*radius+1)
	var sum float64
	for k := range weights {
		if x := float64(k-radius) / sigma; sigma > 0 {
			weights[k] = math.Exp(-x * x / 2)
		} else if k == radius {
			weights[k] = 1
		}
		sum += weights[k]
	}
	kernel := make([]float32, len(weights))
	for k, v := range weights {
		kernel[k] = float32(v / sum)
	}
	return kernel
}

// convolveBoth convolves an h x w plane along rows and columns. border maps -radius to n - 1 +
// radius into [0, n). dst may be src.
func convolveBoth(dst, src []float32, h, w int, kernel []float32, border func(n, radius int) []int) {
	rows, columns := border(h, len(kernel)/2), border(w, len(kernel)/2)
	padded, half := make([]float32, len(columns)), make([]float32, h*w)
	for y := range h {
		gatherElements(padded, src[y*w:][:w], columns)
		convolveRow(half[y*w:][:w], padded, kernel)
	}
	for y := range h {
		convolveColumn(dst[y*w:][:w], half, rows[y:], kernel)
	}
}

// reflectIndices reflects -radius to n - 1 + radius about border pixels' centres: c b | a b c | b
// a.
func reflectIndices(n, radius int) []int {
	indices := make([]int, n+2*radius)
	period := max(2*(n-1), 1)
	for k := range indices {
		i := (k - radius) % period
		if i < 0 {
			i += period
		}
		indices[k] = min(i, period-i) % max(n, 1)
	}
	return indices
}

func gatherElements(dst, src []float32, indices []int) {
	for k, i := range indices {
		dst[k] = src[i]
	}
}

// convolveRow convolves one row, which is padded by the radius of the kernel on both sides.
func convolveRow(dst, padded, kernel []float32) {
	clear(dst)
	for k, weight := range kernel {
		window := padded[k:][:len(dst)]
		for j, v := range window {
			dst[j] += weight * v
		}
	}
}

// convolveColumn sums rows of a plane; rows[k] is under the k-th weight.
func convolveColumn(dst, plane []float32, rows []int, kernel []float32) {
	clear(dst)
	for k, weight := range kernel {
		window := plane[rows[k]*len(dst):][:len(dst)]
		for j, v := range window {
			dst[j] += weight * v
		}
	}
}
