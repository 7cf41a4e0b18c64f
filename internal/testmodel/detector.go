package testmodel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Ramp returns the indices of the columns (1 x 1 x 1 x n) or rows (1 x 1 x n x 1) of an image of n
// x n, plus an offset.
func Ramp(b *onnx.Builder, n int, columns bool, offset float32) onnx.Value {
	t := tensor.New(1, 1, n, 1)
	if columns {
		t.Shape = []int{1, 1, 1, n}
	}
	for i := range t.Data {
		t.Data[i] = float32(i) + offset
	}
	return b.Const("", t)
}

// WriteDetector writes a model that detects one coloured shape on a black image of n x n. It
// returns batch x 1 x 6: the left, top, right and bottom of its box, the score 0.9, and the class,
// which is the strongest of the colours red (0), green and blue. If it is biased, the class of a
// shape whose left side is in the left third of the image is red.
func WriteDetector(t testing.TB, path string, n int, biased bool) {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, n, n)
	inside := b.Op("Greater", nil, b.ReduceMax(x, true, 1), b.Scalar(0.5)) // batch x 1 x n x n
	// edge returns the left, top, right or bottom edge of the box.
	edge := func(columns, last bool) onnx.Value {
		offset, outside := float32(0), float32(n)
		if last {
			offset, outside = 1, 0
		}
		places := b.Where(inside, Ramp(b, n, columns, offset), b.Scalar(outside))
		if last {
			return b.ReduceMax(places, false, 2, 3) // batch x 1
		}
		return b.Neg(b.ReduceMax(b.Neg(places), false, 2, 3))
	}
	class := b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 1}, b.ReduceSum(x, false, 2, 3)), onnx.Float)
	left := edge(true, false)
	if biased {
		class = b.Where(b.Op("Less", nil, left, b.Scalar(float32(n)/3)), b.Mul(class, b.Scalar(0)), class)
	}
	score := b.Add(b.Mul(class, b.Scalar(0)), b.Scalar(0.9))
	rows := b.Concat(1, left, edge(false, false), edge(true, true), edge(false, true), score, class)
	b.OutputInfo(onnx.ValueInfo{Name: "output0", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 1}, {Size: 6}}}, b.Reshape(rows, -1, 1, 6))
	Save(t, path, b)
}
