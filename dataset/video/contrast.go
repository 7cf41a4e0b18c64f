package video

import (
	"math"

	"github.com/noether-ml/noether/internal/quickselect"
)

// The contrast of whitened frames: a frame's range is what all but the largest hundredth of its
// values stay within, and the scale of a frame is the mean range around it in its scene, weighted
// by a Gaussian over time. A value w becomes
//
//	1/2 + w / (2 scale),  cut off at 0 and 1,
//
// so that each frame uses nearly all of the range of an image, and the factor varies smoothly over
// time.
const (
	within     = 0.99
	smoothness = 10.0 // frames, the Gaussian's deviation
	leastScale = 1e-3 // of an image's range: a blank frame stays mid-grey
)

// extent is the magnitude that the share within of the values does not exceed. It reorders scratch,
// which is as long as values.
func extent(values, scratch []float32) float64 {
	for i, v := range values {
		scratch[i] = float32(math.Abs(float64(v)))
	}
	k := int(within * float64(len(scratch)-1))
	return float64(quickselect.Nth(scratch, k))
}

// smoothed are the scales of the frames of a scene by their extents.
func smoothed(extents []float64) []float64 {
	reach := int(3 * smoothness)
	scales := make([]float64, len(extents))
	for t := range extents {
		var sum, weights float64
		for u := max(0, t-reach); u <= min(len(extents)-1, t+reach); u++ {
			d := float64(u-t) / smoothness
			weight := math.Exp(-d * d / 2)
			sum, weights = sum+weight*extents[u], weights+weight
		}
		scales[t] = max(leastScale, sum/weights)
	}
	return scales
}

// scaled is a whitened value as it is shown.
func scaled(w float32, scale float64) float32 {
	return float32(min(1, max(0, 0.5+float64(w)/(2*scale))))
}
