package video

import (
	"math"

	"github.com/noether-ml/noether/internal/quickselect"
)

// The contrast of whitened frames. The range of a frame contains all but the largest hundredth of
// its absolute values. The scale of a frame is the mean range of the frames of its scene, weighted
// by a Gaussian over time. A value w becomes
//
//	1/2 + w / (2 scale),  cut off at 0 and 1,
//
// so each frame uses nearly all of the range of an image, and the factor varies smoothly over time.
const (
	extentQuantile = 0.99
	smoothness     = 10.0 // frames, the Gaussian's standard deviation
	leastScale     = 1e-3 // as a fraction of an image's range: a blank frame stays mid-grey
)

// extent returns the quantile extentQuantile of the magnitudes of values. It overwrites scratch,
// which has the length of values.
func extent(values, scratch []float32) float64 {
	for i, v := range values {
		scratch[i] = float32(math.Abs(float64(v)))
	}
	k := int(extentQuantile * float64(len(scratch)-1))
	return float64(quickselect.Nth(scratch, k))
}

// smoothed returns the scales of the frames of a scene from their extents.
func smoothed(extents []float64) []float64 {
	radius := int(3 * smoothness)
	scales := make([]float64, len(extents))
	for t := range extents {
		var sum, weights float64
		for u := max(0, t-radius); u <= min(len(extents)-1, t+radius); u++ {
			d := float64(u-t) / smoothness
			weight := math.Exp(-d * d / 2)
			sum, weights = sum+weight*extents[u], weights+weight
		}
		scales[t] = max(leastScale, sum/weights)
	}
	return scales
}

// scaled returns the contrast-scaled value of a whitened one.
func scaled(w float32, scale float64) float32 {
	return float32(min(1, max(0, 0.5+float64(w)/(2*scale))))
}
