// Package testmodel writes small models for tests.
package testmodel

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Options are the options of Write.
type Options struct {
	Classes int     // 0: 8
	Batch   int     // batch size; 0: a dynamic dimension, for batches of any size
	Size    int     // side of the images, a multiple of 2; 0: 16
	Poison  float32 // added to one weight of the convolution, for instance NaN, to test error handling
}

// Write writes NAME.onnx into a folder and returns its path. The model is a convolution "conv" of
// stride 2 over images of 3 x Size x Size, a ReLU, and a linear layer "logits". The name seeds the
// weights.
func Write(t testing.TB, dir, name string, o Options) string {
	t.Helper()
	o.Classes = cmp.Or(o.Classes, 8)
	o.Size = cmp.Or(o.Size, 16)
	batch := cmp.Or(o.Batch, -1)
	r := seed.Rand(7, name)
	random := func(shape ...int) tensor.Tensor {
		w := tensor.New(shape...)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64() * 0.5)
		}
		return w
	}
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, batch, 3, o.Size, o.Size)
	w := random(6, 3, 3, 3)
	w.Data[0] += o.Poison
	conv := b.Conv(x, b.Const("w", w), b.Const("b", random(6)), onnx.Attrs{"pads": []int{1, 1, 1, 1}, "strides": []int{2, 2}})
	b.Output("conv", conv)
	flat := b.Flatten(b.Relu("conv"), 1)
	b.Output("logits", b.Gemm(flat, b.Const("v", random(6*(o.Size/2)*(o.Size/2), o.Classes)), b.Const("c", random(o.Classes)), nil))
	return Save(t, filepath.Join(dir, name+".onnx"), b, "logits")
}

// WriteEndless writes NAME.onnx into a folder and returns its path. The model takes images of 3 x
// 16 x 16 and adds 1 to them in a Loop that never ends, each iteration of which takes microseconds.
func WriteEndless(t testing.TB, dir, name string) string {
	t.Helper()
	scalar := func(name string, typ onnx.Type) *pb.ValueInfoProto {
		return &pb.ValueInfoProto{Name: &name, Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{
			TensorType: &pb.TypeProto_Tensor{ElemType: new(int32(typ)), Shape: &pb.TensorShapeProto{}}}}}
	}
	images := scalar("old", onnx.Float)
	images.Type.GetTensorType().Shape = nil
	sum := proto.Clone(images).(*pb.ValueInfoProto)
	sum.Name = new("new")
	b := onnx.NewBuilder(17)
	x := b.Identity(b.Input("x", onnx.Float, -1, 3, 16, 16))
	one := b.Scalar(1)
	body := &pb.GraphProto{
		Name:   new("body"),
		Input:  []*pb.ValueInfoProto{scalar("i", onnx.Int64), scalar("before", onnx.Bool), images},
		Output: []*pb.ValueInfoProto{scalar("after", onnx.Bool), sum},
		Node: []*pb.NodeProto{
			{OpType: new("Identity"), Input: []string{"before"}, Output: []string{"after"}},
			{OpType: new("Add"), Input: []string{"old", string(one)}, Output: []string{"new"}},
		},
	}
	always := b.Cast(one, onnx.Bool)
	y := b.Op("Loop", onnx.Attrs{"body": body}, "", always, x)
	b.Output("y", b.ReduceMean(y, false, 2, 3))
	return Save(t, filepath.Join(dir, name+".onnx"), b)
}

// WriteExpanding writes NAME.onnx into a folder and returns its path. The model takes images of 3 x
// 16 x 16, expands the mean of each channel to side x side values, 12 side^2 bytes for each image,
// and averages these again. Unless known is set, the size is computed from the images, so that no
// analysis of the graph can find it.
func WriteExpanding(t testing.TB, dir, name string, side int, known bool) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	size := b.Ints(1, 3, side, side)
	if !known {
		zero := b.Cast(b.Mul(b.ReduceMean(x, false), b.Scalar(0)), onnx.Int64)
		size = b.Add(size, zero)
	}
	wide := b.Op("Expand", nil, b.ReduceMean(x, true, 2, 3), size)
	b.Output("y", b.ReduceMean(b.Relu(wide), false, 2, 3))
	return Save(t, filepath.Join(dir, name+".onnx"), b)
}

// WriteSlow writes NAME.onnx into a folder and returns its path. The model takes images of 3 x 16 x
// 16. Its only slow operator is a pooling with about window^4 comparisons, which ONNX Runtime
// cannot interrupt.
func WriteSlow(t testing.TB, dir, name string, window int) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	return savePooling(t, dir, name, window, b, b.Input("x", onnx.Float, -1, 3, 16, 16), b.Ints(1, 1, 2*window, 2*window))
}

// WriteSlowUnlessBlack is like WriteSlow, but its model makes only about window^2 comparisons for
// black images.
func WriteSlowUnlessBlack(t testing.TB, dir, name string, window int) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	brightest := b.Op("ReduceMax", onnx.Attrs{"keepdims": 0}, x)
	bright := b.Cast(b.Op("Ceil", nil, brightest), onnx.Int64) // 0 or 1
	size := b.Add(b.Ints(1, 1, window, window), b.Mul(bright, b.Ints(0, 0, window, window)))
	return savePooling(t, dir, name, window, b, x, size)
}

// savePooling saves a model that expands the mean of each of its images x to a size, n x c x h x w,
// and computes the maximum over each window of window x window values.
func savePooling(t testing.TB, dir, name string, window int, b *onnx.Builder, x, size onnx.Value) string {
	t.Helper()
	wide := b.Op("Expand", nil, b.ReduceMean(x, true, 1, 2, 3), size)
	pooled := b.Op("MaxPool", onnx.Attrs{"kernel_shape": []int{window, window}}, wide)
	b.Output("y", b.ReduceMean(pooled, false, 2, 3))
	return Save(t, filepath.Join(dir, name+".onnx"), b)
}

// Save writes the graph of a builder to a file and returns its path. If outputs are given, the
// model has these outputs only.
func Save(t testing.TB, path string, b *onnx.Builder, outputs ...string) string {
	t.Helper()
	m, err := b.Model()
	if err == nil && len(outputs) > 0 {
		m, err = rewrite.WithOutputs(m, outputs)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// WriteTrapping saves a model for images of 3 x 16 x 16, on which ONNX Runtime divides the smallest
// 64-bit integer by -1. That traps on x86-64 and ends the process. If onlyDark is set, it does so
// only for images whose brightest value is above 0 and at most 0.2.
func WriteTrapping(t testing.TB, dir, name string, onlyDark bool) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	brightest := b.Op("ReduceMax", onnx.Attrs{"axes": []int{1, 2, 3}, "keepdims": 0}, x)
	visible, bright := b.Op("Ceil", nil, brightest), b.Op("Ceil", nil, b.Sub(brightest, b.Scalar(0.2)))
	low := b.Cast(b.Sub(visible, bright), onnx.Int64) // 1 for dark images, else 0
	if !onlyDark {
		low = b.Add(b.Mul(low, b.Ints(0)), b.Ints(1))
	}
	quotient := b.Op("Div", nil, b.Mul(low, b.Ints(math.MinInt64)), b.Sub(b.Mul(low, b.Ints(0)), b.Ints(1)))
	trapped := b.Reshape(b.Cast(quotient, onnx.Float), -1, 1)
	b.Output("y", b.Add(b.ReduceMean(x, false, 2, 3), trapped))
	return Save(t, filepath.Join(dir, name+".onnx"), b)
}
