package train

import (
	"context"

	"github.com/noether-ml/noether/tensor"
)

// Arrays is a Source of n samples in memory. Row i of every array belongs to sample i. A Batch has
// the same fields for some of the samples; see there for what they are.
type Arrays struct {
	Inputs  []tensor.Tensor // of the model, in order, each n x ...
	Target  tensor.Tensor   // what the output should be, n x ..., or empty
	Classes []int           // the class of each sample, or nil
	Masks   tensor.Tensor   // the class of each position, n x h x w, or empty
	Tasks   []Targets       // of Spec.Tasks, each for n samples

	batch Batch
}

// Len implements Source.
func (a *Arrays) Len() int {
	if len(a.Inputs) == 0 {
		return 0
	}
	return a.Inputs[0].Shape[0]
}

// Batch implements Source. The next call overwrites the result.
func (a *Arrays) Batch(_ context.Context, indices []int) (Batch, error) {
	if len(a.batch.Inputs) != len(a.Inputs) {
		a.batch.Inputs = make([]tensor.Tensor, len(a.Inputs))
	}
	for i, x := range a.Inputs {
		a.batch.Inputs[i] = rows(a.batch.Inputs[i], x, indices)
	}
	if a.Target.Rank() > 0 {
		a.batch.Target = rows(a.batch.Target, a.Target, indices)
	}
	a.batch.Classes = a.batch.Classes[:0]
	for _, i := range indices {
		if a.Classes != nil {
			a.batch.Classes = append(a.batch.Classes, a.Classes[i])
		}
	}
	if a.Masks.Rank() > 0 {
		a.batch.Masks = rows(a.batch.Masks, a.Masks, indices)
	}
	a.batch.Tasks = a.batch.Tasks[:0]
	for _, t := range a.Tasks {
		a.batch.Tasks = append(a.batch.Tasks, t.rows(indices))
	}
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
