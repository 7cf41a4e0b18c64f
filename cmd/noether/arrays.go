package main

import (
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/tensor"
)

// arraySource returns an array, samples x channels x ..., with a row for each sample: flattened or,
// if pooled, the mean of each channel.
func arraySource(a *dataset.ArrayFile, pooled bool) (similarity.Source, error) {
	shape := a.Shape()
	flat := flatArray{a, shape[0], tensor.Size(shape[1:])}
	if !pooled || len(shape) < 3 {
		return flat, nil
	}
	return similarity.Pooled(flat, shape[1])
}

type flatArray struct {
	array *dataset.ArrayFile
	n, p  int // rows and columns of the matrix
}

func (f flatArray) Dims() (n, p int) { return f.n, f.p }

// Single reports whether float32 represents all values of the type of the file exactly.
func (f flatArray) Single() bool { return f.array.Single() }

func (f flatArray) Read(index []int, dst []float64) error { return f.array.Rows(index, dst) }
