// Package ball bounds how far an adversarial image may be from the image x that it is made from,
// and adds the operations of projected gradient descent in such a ball to ONNX graphs.
package ball

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Norm is a norm of the difference between two images.
type Norm string

const (
	L2   Norm = "l2"   // Euclidean norm
	Linf Norm = "linf" // largest absolute value
)

// A Ball bounds the distance of an image from x. The zero Ball sets no bound.
type Ball struct {
	Norm   Norm
	Radius float64 // in the norm, for images with values in [0, 1]
}

// MaxRadius is the largest radius.
const MaxRadius = 1e6

// Check returns an error if the norm is unknown or the radius out of range.
func (b Ball) Check() error {
	switch {
	case b == Ball{}:
	case b.Norm != L2 && b.Norm != Linf:
		return fmt.Errorf("ball with unknown norm %q: it must be %s or %s", b.Norm, L2, Linf)
	case !(b.Radius > 0) || b.Radius > MaxRadius:
		return fmt.Errorf("ball with radius %v: it must be above 0 and at most %v", b.Radius, float64(MaxRadius))
	}
	return nil
}

// Draw returns an image drawn uniformly from the ball around x and clipped to [0, 1]. x is c x h x
// w. The zero Ball gives x itself, clipped.
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

// Project adds to the graph w the projection of images x onto the ball around their centres,
// clipped to [0, 1]. image is the shape of one image, and x and centre are n x image. Since the
// values of a centre are in [0, 1], clipping does not leave the ball. The zero Ball only clips.
func (b Ball) Project(w *onnx.Builder, x, centre onnx.Value, image []int) onnx.Value {
	radius := w.Scalar(float32(b.Radius))
	switch b.Norm {
	case L2:
		offset := w.Sub(x, centre)
		flat := w.Flatten(offset, 1)
		length := w.Sqrt(w.ReduceSum(w.Mul(flat, flat), true, 1))
		factor := w.Div(radius, w.Op("Max", nil, length, radius))
		x = w.Add(centre, w.Mul(offset, PerImage(w, factor, image)))
	case Linf:
		x = w.Op("Max", nil, w.Op("Min", nil, x, w.Add(centre, radius)), w.Sub(centre, radius))
	}
	return w.Op("Max", nil, w.Op("Min", nil, x, w.Scalar(1)), w.Scalar(0))
}

// PerImage reshapes v, n x 1, for broadcasting over n x image, where image is the shape of one
// image.
func PerImage(w *onnx.Builder, v onnx.Value, image []int) onnx.Value {
	shape := slices.Repeat([]int{1}, 1+len(image))
	shape[0] = -1
	return w.Reshape(v, shape...)
}

// Normalise divides a gradient, n x image, by its Euclidean norm for each image, and leaves a zero
// gradient unchanged. It first divides by the largest magnitude, so that squares of small gradients
// do not underflow. norm is n x 1.
func Normalise(w *onnx.Builder, g onnx.Value, image []int) (direction, norm onnx.Value) {
	flat := w.Flatten(g, 1)
	largest := w.ReduceMax(w.Abs(flat), true, 1)
	scaled := w.Div(flat, w.Op("Max", nil, largest, w.Scalar(minNormal)))
	// The length of scaled is at least 1, unless the gradient is 0 or subnormal.
	length := w.Sqrt(w.ReduceSum(w.Mul(scaled, scaled), true, 1))
	unit := w.Div(scaled, w.Op("Max", nil, length, w.Scalar(1)))
	return w.Reshape(unit, append([]int{-1}, image...)...), w.Mul(length, largest)
}

// minNormal is slightly above the smallest normal float32, 1.2e-38.
const minNormal = 2e-38
