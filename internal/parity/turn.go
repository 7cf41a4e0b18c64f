package parity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// A turn brings one sample of the other model's layer into the original's order of axes: axis i of
// the result is axis turn[i]. nil: the values have that order already.
type turn []int

// turnOf returns the turn between two layers, and whether their shapes agree: up to the order of
// known axes, or up to axes of size 1.
func turnOf(original, other tensor.Layer) (turn, bool) {
	if t := byAxes(original, other); t != nil {
		return t, true
	}
	same := slices.Equal(withoutOnes(original.Shape), withoutOnes(other.Shape))
	return nil, same
}

// byAxes returns the turn of two layers with the same axes in different orders, else nil.
func byAxes(original, other tensor.Layer) turn {
	a, b := strings.TrimPrefix(string(original.Axes), "N"), strings.TrimPrefix(string(other.Axes), "N")
	if a == b || len(a) != len(b) || len(a) != len(original.Shape) || len(b) != len(other.Shape) || strings.Contains(a+b, "?") {
		return nil
	}
	t := make(turn, len(a))
	for i := range a {
		t[i] = strings.IndexByte(b, a[i])
		if t[i] < 0 || strings.Count(a, a[i:i+1]) > 1 || other.Shape[t[i]] != original.Shape[i] {
			return nil
		}
	}
	return t
}

func withoutOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// canonicalShape writes the shape of one sample with its channels first, without axes of size 1.
func canonicalShape(l tensor.Layer) string {
	shape := slices.Clone(l.Shape)
	if at := strings.IndexByte(string(l.Axes), 'C') - 1; at > 0 && at < len(shape) && strings.Count(string(l.Axes), "C") == 1 && len(l.Axes) == 4 {
		c := shape[at]
		shape = append([]int{c}, slices.Delete(shape, at, at+1)...)
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(withoutOnes(shape)), "[]"), " ", "x")
}

// inverse returns the turn from the original's order to the other's.
func (t turn) inverse() turn {
	if t == nil {
		return nil
	}
	out := make(turn, len(t))
	for i, at := range t {
		out[at] = i
	}
	return out
}

// apply returns a batch z with its axes turned and the shape of one sample, in dst if it has room.
func (t turn) apply(dst []float32, z tensor.Tensor, shape []int) tensor.Tensor {
	out := tensor.Tensor{Shape: append([]int{z.Shape[0]}, shape...)}
	if t == nil {
		out.Data = z.Data
		return out
	}
	out.Data = slices.Grow(dst[:0], len(z.Data))[:len(z.Data)]
	from := z.Shape[1:]
	strides := make([]int, len(from))
	n := 1
	for i, d := range slices.Backward(from) {
		strides[i] = n
		n *= d
	}
	index := make([]int, len(shape))
	for b := range z.Shape[0] {
		src, dst := z.Data[b*n:(b+1)*n], out.Data[b*n:(b+1)*n]
		clear(index)
		for k := range dst {
			at := 0
			for i, v := range index {
				at += v * strides[t[i]]
			}
			dst[k] = src[at]
			for i := len(index) - 1; i >= 0; i-- {
				if index[i]++; index[i] < shape[i] {
					break
				}
				index[i] = 0
			}
		}
	}
	return out
}
