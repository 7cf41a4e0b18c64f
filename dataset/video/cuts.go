package video

import "github.com/noether-ml/noether/tensor"

const bins = 32 // of a histogram, over grey values from 0 to 1

// A histogram is the distribution of the grey values of a frame: the fraction of pixels in each
// bin.
type histogram [bins]float64

func histogramOf(frame tensor.Tensor) histogram {
	var h histogram
	n := frame.Shape[1] * frame.Shape[2]
	one := 1 / float64(n)
	for i := range n {
		h[min(bins-1, max(0, int(grey(frame, i, n)*bins)))] += one
	}
	return h
}

// grey returns the grey value of pixel i of a frame of 1 or 3 planes of n pixels.
func grey(frame tensor.Tensor, i, n int) float32 {
	if frame.Shape[0] == 1 {
		return frame.Data[i]
	}
	return 0.2989*frame.Data[i] + 0.587*frame.Data[n+i] + 0.114*frame.Data[2*n+i]
}

// change returns the total variation distance of two histograms, half the l1 distance: 0 to 1. It
// is small for motion within a scene and large at a cut.
func change(a, b histogram) float64 {
	var sum float64
	for i, v := range a {
		sum += max(v-b[i], b[i]-v)
	}
	return sum / 2
}
