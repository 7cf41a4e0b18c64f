package infer

import (
	"encoding/binary"
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// An array is the value of a small tensor; unknown elements are NaN.
type array struct {
	shape []int
	data  []float64 // row-major
}

// MaxValues is the largest number of elements of a tensor whose values are inferred.
const MaxValues = 1 << 12

// generate computes elements from their indices by f; nil for a shape that is unknown or too large.
func generate(shape []int, f func(index []int) float64) *array {
	n := 1
	for _, d := range shape {
		if d < 0 || d > MaxValues {
			return nil
		}
		if n *= d; n > MaxValues {
			return nil
		}
	}
	if shape == nil {
		return nil
	}
	a := &array{shape: shape, data: make([]float64, n)}
	index := make([]int, len(shape))
	for i := range a.data {
		a.data[i] = f(index)
		for k := len(shape) - 1; k >= 0; k-- {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return a
}

// at returns the element at index, broadcast over axes of size 1 and missing leading axes, or NaN
// if index is out of range or has fewer axes than the array.
func (a *array) at(index []int) float64 {
	skip := len(index) - len(a.shape)
	if skip < 0 {
		return math.NaN()
	}
	offset := 0
	for k, d := range a.shape {
		i := index[k+skip]
		if d == 1 {
			i = 0
		}
		if i < 0 || i >= d {
			return math.NaN()
		}
		offset = offset*d + i
	}
	return a.data[offset]
}

// ints returns the elements as integers, limited to int32, or nil if any is unknown.
func (a *array) ints() []int {
	if a == nil {
		return nil
	}
	list := make([]int, len(a.data))
	for i, v := range a.data {
		if math.IsNaN(v) {
			return nil
		}
		list[i] = int(max(math.MinInt32, min(math.MaxInt32, v)))
	}
	return list
}

func (a *array) sizes() []int {
	if a == nil {
		return nil
	}
	list := make([]int, len(a.data))
	for i, v := range a.data {
		list[i] = -1
		if v >= 0 && v <= math.MaxInt32 {
			list[i] = int(v)
		}
	}
	return list
}

// vector returns an array of rank 1 that holds a list of dimensions; -1 is an unknown one.
func vector(sizes []int) *array {
	return generate([]int{len(sizes)}, func(i []int) float64 {
		if sizes[i[0]] < 0 {
			return math.NaN()
		}
		return float64(sizes[i[0]])
	})
}

// constantArray returns the value of a constant, or nil if it is too large, stored in another file
// or of a type that shape arithmetic does not use.
func constantArray(t *pb.TensorProto) *array {
	n, err := pbutil.Elements(t.GetDims())
	if err != nil || n > MaxValues || pbutil.External(t) {
		return nil
	}
	a := &array{shape: pbutil.Ints(t.Dims), data: make([]float64, n)}
	switch onnx.Type(t.GetDataType()) {
	case onnx.Int64:
		readElements[int64](a.data, t.RawData, t.Int64Data)
	case onnx.Int32:
		readElements[int32](a.data, t.RawData, t.Int32Data)
	case onnx.Bool:
		readElements[uint8](a.data, t.RawData, t.Int32Data)
	case onnx.Float:
		readElements[float32](a.data, t.RawData, t.FloatData)
	default:
		return nil
	}
	return a
}

// readElements reads a checked tensor from raw, as values of type T, or from list if raw is nil.
func readElements[T, L uint8 | int32 | int64 | float32](dst []float64, raw []byte, list []L) {
	if raw == nil {
		for i := range dst {
			dst[i] = float64(list[i])
		}
		return
	}
	values := make([]T, len(dst))
	if _, err := binary.Decode(raw, binary.LittleEndian, values); err != nil {
		panic(err)
	}
	for i, v := range values {
		dst[i] = float64(v)
	}
}
