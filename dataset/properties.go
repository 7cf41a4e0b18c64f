package dataset

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// ImageProperties are the names of the values that PropertiesOf returns, in order.
var ImageProperties = []string{"brightness", "contrast", "sharpness", "size"}

// PropertiesOf returns properties of an image, c x h x w with values in [0, 1] and one or three
// channels, in the order of ImageProperties. They are those of its luma in 8 bits, 0 to 255, which
// is 0.299 R + 0.587 G + 0.114 B.
//
//	brightness  mean
//	contrast    standard deviation
//	sharpness   variance of the Laplacian, the sum of a pixel's four neighbours minus four times the
//	            pixel, over the pixels that have four; 0 if none has
//	size        square root of width x height, in pixels
func PropertiesOf(image tensor.Tensor) ([]float64, error) {
	if image.Rank() != 3 || image.Shape[0] != 1 && image.Shape[0] != 3 {
		return nil, fmt.Errorf("brightness and sharpness are properties of images of 1 or 3 channels, not of shape %v", image.Shape)
	}
	h, w := image.Shape[1], image.Shape[2]
	n := h * w
	luma := make([]float64, n)
	weights := []float64{1}
	if image.Shape[0] == 3 {
		weights = []float64{0.299, 0.587, 0.114}
	}
	for c, weight := range weights {
		for i, v := range image.Data[c*n : (c+1)*n] {
			luma[i] += 255 * weight * float64(v)
		}
	}
	var laplacian []float64
	for y := 1; y < h-1; y++ {
		for i := y*w + 1; i < y*w+w-1; i++ {
			laplacian = append(laplacian, luma[i-1]+luma[i+1]+luma[i-w]+luma[i+w]-4*luma[i])
		}
	}
	mean, variance := moments(luma)
	_, sharpness := moments(laplacian)
	return []float64{mean, math.Sqrt(variance), sharpness, math.Sqrt(float64(n))}, nil
}

// moments returns the mean and the variance of values, dividing by their number; 0 for none.
func moments(values []float64) (mean, variance float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, variance
}

// ObjectProperties are the names of the values that ObjectOf returns, in order.
var ObjectProperties = []string{"object-x", "object-y", "object-size"}

// ObjectOf returns where the largest labelled object of an image is, in the order of
// ObjectProperties: the centre of its box, and the square root of the box's area, as fractions of
// the image. With a mask, the object is the pixels of other classes than the first, the background, and
// the centre their mean. It returns false if there is none. Crowds do not count.
func ObjectOf(t *Truth) ([]float64, bool) {
	if t == nil {
		return nil, false
	}
	var largest []float64
	for _, o := range t.Objects {
		size := math.Sqrt(max(0, o.Right-o.Left) * max(0, o.Bottom-o.Top))
		if !o.Crowd && (largest == nil || size > largest[2]) {
			largest = []float64{(o.Left + o.Right) / 2, (o.Top + o.Bottom) / 2, size}
		}
	}
	if t.Mask.Rank() != 2 {
		return largest, largest != nil
	}
	h, w := t.Mask.Shape[0], t.Mask.Shape[1]
	var x, y, n float64
	for i, class := range t.Mask.Data {
		if class > 0 { // 0 is the background
			x, y, n = x+float64(i%w)+0.5, y+float64(i/w)+0.5, n+1
		}
	}
	if n == 0 || n == float64(h*w) { // no object, or nothing but objects
		return nil, false
	}
	return []float64{x / n / float64(w), y / n / float64(h), math.Sqrt(n / float64(h*w))}, true
}
