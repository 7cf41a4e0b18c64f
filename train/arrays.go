package train

import (
	"context"

	"github.com/noether-ml/noether/tensor"
)

// Arrays are samples in memory: the same rows of every array belong together.
type Arrays struct {
	Inputs  []tensor.Tensor // n x ...
	Target  tensor.Tensor   // n x ..., or empty
	Classes []int           // or nil

	batch Batch
}

// Len implements Source.
func (a *Arrays) Len() int {
	if len(a.Inputs) == 0 {
		return 0
	}
	return a.Inputs[0].Shape[0]
}

// Batch implements Source.
func (a *Arrays) Batch(_ context.Context, places []int) (Batch, error) {
	if len(a.batch.Inputs) != len(a.Inputs) {
		a.batch.Inputs = make([]tensor.Tensor, len(a.Inputs))
	}
	for i, x := range a.Inputs {
		a.batch.Inputs[i] = rows(a.batch.Inputs[i], x, places)
	}
	if a.Target.Rank() > 0 {
		a.batch.Target = rows(a.batch.Target, a.Target, places)
	}
	a.batch.Classes = a.batch.Classes[:0]
	for _, p := range places {
		if a.Classes != nil {
			a.batch.Classes = append(a.batch.Classes, a.Classes[p])
		}
	}
	return a.batch, nil
}

// rows gathers rows of x into dst, whose memory it takes again where that is large enough.
func rows(dst, x tensor.Tensor, places []int) tensor.Tensor {
	width := tensor.Size(x.Shape[1:])
	if cap(dst.Data) < width*len(places) {
		dst.Data = make([]float32, width*len(places))
	}
	dst.Data = dst.Data[:width*len(places)]
	dst.Shape = append([]int{len(places)}, x.Shape[1:]...)
	for i, p := range places {
		copy(dst.Data[i*width:], x.Data[p*width:][:width])
	}
	return dst
}
