// Package reduction adds the sums of a measure.Reduction to the graph of a model.
package reduction

import (
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Build adds the values of a reduction to a graph, n x its Width. clean and transformed are n x the
// shape of the layer, and partners, n indices of type int32, is measure.Layout.Partners.
func Build(b *onnx.Builder, r *measure.Reduction, l tensor.Layer, clean, transformed, partners onnx.Value) onnx.Value {
	s := sums{b: b, run: runLength(tensor.Size(l.Shape)), size: tensor.Size(l.Shape), partners: partners}
	s.vectors[0] = [2]onnx.Value{s.inRuns(clean), s.inRuns(transformed)}
	for i, z := range s.vectors[0] {
		s.squares[i] = s.sum("ReduceSumSquare", z)
	}
	var values []onnx.Value
	for _, one := range r.Sums {
		values = append(values, s.value(one))
	}
	if r.Means {
		for _, z := range []onnx.Value{clean, transformed} {
			values = append(values, means(b, l, z))
		}
	}
	return b.Concat(1, values...)
}

// sums builds the sums of a layer.
type sums struct {
	b         *onnx.Builder
	run, size int // number of values of a run, and of the layer
	partners  onnx.Value
	vectors   [2][2]onnx.Value // z and z' in runs; then the same of length 1, once they are needed
	squares   [2]onnx.Value    // of z and z'
}

// inRuns divides vectors into runs. A device adds each run on other cores, and then their sums.
func (s *sums) inRuns(z onnx.Value) onnx.Value { return s.b.Reshape(z, 0, s.size/s.run, s.run) }

// sum reduces all axes but the first.
func (s *sums) sum(op string, z onnx.Value) onnx.Value {
	return s.b.ReduceSum(s.b.Reduce(op, z, false, 2), true, 1)
}

func (s *sums) value(one measure.Sum) onnx.Value {
	kind := 0
	if one.Directions {
		kind = 1
		s.normalise()
	}
	op := "ReduceSumSquare"
	if one.Absolute {
		op = "ReduceL1"
	}
	x, y := s.vectors[kind][0], s.vectors[kind][1]
	switch one.Of {
	case measure.OfClean, measure.OfTransformed:
		i := int(one.Of - measure.OfClean)
		if kind == 0 && !one.Absolute {
			return s.squares[i]
		}
		return s.sum(op, s.vectors[kind][i])
	case measure.OfShuffledDifference:
		x = s.b.Gather(x, s.partners, 0)
	}
	return s.sum(op, s.b.Sub(x, y))
}

// normalise sets the vectors of length 1.
func (s *sums) normalise() {
	if s.vectors[1][0] != "" {
		return
	}
	b := s.b
	for i, z := range s.vectors[0] {
		length := b.Sqrt(b.Op("Max", nil, s.squares[i], b.Scalar(measure.LeastSquares)))
		s.vectors[1][i] = b.Mul(z, b.Reshape(b.Div(b.Scalar(1), length), 0, 1, 1))
	}
}

// runLength returns the number of values of the runs in which a vector of n values is added: the
// divisor of n that is nearest to, and at least, 1024.
func runLength(n int) int {
	for run := 1024; run < n; run++ {
		if n%run == 0 {
			return run
		}
	}
	return n
}

// means returns the pooling Mean of activations.
func means(b *onnx.Builder, l tensor.Layer, z onnx.Value) onnx.Value {
	var axes []int
	for _, i := range pooling.Mean.Axes(l) {
		axes = append(axes, 1+i)
	}
	if axes != nil {
		z = b.ReduceMean(z, false, axes...)
	}
	return b.Reshape(z, -1, pooling.Mean.Dim(l))
}
