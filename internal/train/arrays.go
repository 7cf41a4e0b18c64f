package train

import (
	"context"

	"github.com/noether-ml/noether/tensor"
)

// Arrays is a Source of n samples in memory. Row i of every array belongs to sample i. A Batch has
// the same fields for some of the samples; see there for what they are.
type Arrays struct {
	Inputs []tensor.Tensor
	Targets
	Tasks []Targets

	batch Batch
}

func (a *Arrays) Len() int {
	if len(a.Inputs) == 0 {
		return 0
	}
	return a.Inputs[0].Shape[0]
}

// Batch implements Source. The next call overwrites the result.
func (a *Arrays) Batch(_ context.Context, indices []int) (Batch, error) {
	all := Batch{a.Inputs, a.Targets, a.Tasks}
	a.batch = all.rows(a.batch, indices)
	return a.batch, nil
}

// rows returns the rows of x with the given indices. It uses the memory of dst if that is large
// enough.
func rows(dst, x tensor.Tensor, indices []int) tensor.Tensor {
	width := tensor.Size(x.Shape[1:])
	if cap(dst.Data) < width*len(indices) {
		dst.Data = make([]float32, width*len(indices))
	}
	dst.Data = dst.Data[:width*len(indices)]
	dst.Shape = append([]int{len(indices)}, x.Shape[1:]...)
	for row, i := range indices {
		copy(dst.Data[row*width:], x.Data[i*width:][:width])
	}
	return dst
}
