// Package tensor defines dense float32 tensors in row-major order, which the packages of Noether
// exchange: an image is c x h x w (channels, height, width), a batch of b feature maps
// b x c x h x w.
//
//	z, err := tensor.From(values, 8, 64, 7, 7) // 8 samples of 64 channels
//	z.At(3)                                    // 64 x 7 x 7: the fourth sample, not copied
package tensor

import (
	"fmt"
	"math"
	"slices"
)

// A Tensor is a shape and values in row-major order. The zero Tensor is empty. A copy of a Tensor
// shares its Data.
type Tensor struct {
	Shape []int
	Data  []float32
}

// New returns a tensor of zeros. It panics if a dimension is negative.
func New(shape ...int) Tensor {
	return Tensor{Shape: slices.Clone(shape), Data: make([]float32, Size(shape))}
}

// From wraps data, without copying it, as a tensor of the given shape. A shape of another size than
// that of data, or with a negative dimension, is an error.
func From(data []float32, shape ...int) (Tensor, error) {
	for _, d := range shape {
		if d < 0 {
			return Tensor{}, fmt.Errorf("tensor: dimension %d of shape %v is negative", d, shape)
		}
	}
	if Size(shape) != len(data) {
		return Tensor{}, fmt.Errorf("tensor: shape %v needs %d values, not %d", shape, Size(shape), len(data))
	}
	return Tensor{Shape: slices.Clone(shape), Data: data}, nil
}

// Size returns the number of values that a shape holds: the product of its dimensions, 1 for a
// scalar. It panics if a dimension is negative.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 0 {
			panic(fmt.Sprintf("tensor: negative dimension in shape %v", shape))
		}
		n *= d
	}
	return n
}

// Len returns the number of values.
func (t Tensor) Len() int { return len(t.Data) }

// Rank returns the number of axes.
func (t Tensor) Rank() int { return len(t.Shape) }

// At returns the i-th slice along the first axis; it shares the values of t.
func (t Tensor) At(i int) Tensor {
	n := Size(t.Shape[1:])
	return Tensor{Shape: t.Shape[1:], Data: t.Data[i*n : (i+1)*n : (i+1)*n]}
}

// Slice returns the slices lo to hi (exclusive) along the first axis; it shares the values of t.
func (t Tensor) Slice(lo, hi int) Tensor {
	n := Size(t.Shape[1:])
	shape := slices.Clone(t.Shape)
	shape[0] = hi - lo
	return Tensor{Shape: shape, Data: t.Data[lo*n : hi*n : hi*n]}
}

// Clone returns a copy that does not share values with t.
func (t Tensor) Clone() Tensor {
	return Tensor{Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
}

// Reshape returns the same values under another shape of the same size. It panics if the sizes
// differ.
func (t Tensor) Reshape(shape ...int) Tensor {
	if Size(shape) != len(t.Data) {
		panic(fmt.Sprintf("tensor: cannot reshape %v to %v", t.Shape, shape))
	}
	return Tensor{Shape: slices.Clone(shape), Data: t.Data}
}

// FirstNonFinite returns the index of the first value that is NaN or infinite, or -1 if there is
// none.
func (t Tensor) FirstNonFinite() int {
	// v - v is 0 for a finite v and NaN otherwise. Four independent sums hide the latency of
	// additions.
	var a, b, c, d float32
	x := t.Data
	for ; len(x) >= 4; x = x[4:] {
		a += x[0] - x[0]
		b += x[1] - x[1]
		c += x[2] - x[2]
		d += x[3] - x[3]
	}
	for _, v := range x {
		a += v - v
	}
	if a+b+c+d == 0 {
		return -1
	}
	return slices.IndexFunc(t.Data, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
}

// Float64s returns the values in float64.
func Float64s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// Norm returns the Euclidean norm of v.
func Norm(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// Distance returns the Euclidean distance between v and w, which must have the same length.
func Distance(v, w []float32) float64 {
	var sum float64
	for i, x := range v {
		d := float64(x) - float64(w[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
