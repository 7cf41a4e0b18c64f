package video

import (
	"math"

	"github.com/noether-ml/noether/internal/quickselect"
)

// The contrast of whitened frames. The extent of a frame is the 0.99 quantile of its absolute
// values. The scale of a frame is the mean extent of the frames of its scene, weighted by a
// Gaussian over time. A value w becomes
//
//	1/2 + w / (2 scale),  cut off at 0 and 1,
//
// so each frame uses nearly all of the range of an image, and the scale varies smoothly over time.
const (
	extentQuantile = 0.99
	smoothness     = 10.0 // standard deviation of the Gaussian, in frames
	minScale       = 1e-3 // keeps a blank frame mid-grey
)

// extent returns the extent of the values of a frame. It overwrites scratch, which has the length
// of values.
func extent(values, scratch []float32) float64 {
	for i, v := range values {
		scratch[i] = float32(math.Abs(float64(v)))
	}
	k := int(extentQuantile * float64(len(scratch)-1))
	return float64(quickselect.Nth(scratch, k))
}

// scalesOf returns the scales of the frames of a scene from their extents.
func scalesOf(extents []float64) []float64 {
	radius := int(3 * smoothness) // frames farther away have nearly no weight
	scales := make([]float64, len(extents))
	for t := range extents {
		var sum, weights float64
		for u := max(0, t-radius); u <= min(len(extents)-1, t+radius); u++ {
			d := float64(u-t) / smoothness
			weight := math.Exp(-d * d / 2)
			sum, weights = sum+weight*extents[u], weights+weight
		}
		scales[t] = max(minScale, sum/weights)
	}
	return scales
}

// scaled returns what a whitened value w becomes at a scale.
func scaled(w float32, scale float64) float32 {
	return float32(min(1, max(0, 0.5+float64(w)/(2*scale))))
}
