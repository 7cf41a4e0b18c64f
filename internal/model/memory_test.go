package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/enginetest"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestActivationsBeyondMemory checks that opening a model whose activations exceed the memory
// limit fails with an error of one line, whether the graph gives their size or computes it from
// the image. Without the check the system would kill the process.
func TestActivationsBeyondMemory(t *testing.T) { // not parallel, since the limit holds for all sessions
	rt := orttest.Load(t)
	dir := t.TempDir()
	const side = 8192 // 3 x side x side activations in float32 take 768 MiB
	constant := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 3, 16, 16)
		zeros := b.Op("ConstantOfShape", nil, b.Ints(3, side, side))
		b.Output("y", b.Add(b.ReduceMean(x, false, 2, 3), b.ReduceMean(zeros, false, 1, 2)))
	})
	tiled := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 3, 16, 16)
		b.Output("y", b.ReduceMean(b.Op("Tile", nil, x, b.Ints(1, 1, side/16, side/16)), false, 2, 3))
	})
	resized := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 3, 16, 16)
		b.Output("y", b.ReduceMean(b.Op("Resize", nil, x, "", "", b.Ints(1, 3, side, side)), false, 2, 3))
	})
	// Write writes a small convolutional network, and WriteExpanding a model that expands the means
	// of the channels to side x side values. The graph gives this size (true) or computes it.
	small := testmodel.Write(t, dir, "small", testmodel.Options{})
	// The function returns the free memory in bytes.
	rt.LimitMemory(func() int64 { return 256 << 20 })
	defer rt.LimitMemory(nil)
	for op, path := range map[string]string{
		"ConstantOfShape": constant, "Tile": tiled, "Resize": resized,
		"Expand to a constant size": testmodel.WriteExpanding(t, dir, "known", side, true),
		"Expand to a computed size": testmodel.WriteExpanding(t, dir, "data", side, false),
	} {
		_, err := modeltest.Open(t, path, model.Options{})
		var memory *ort.MemoryError
		if !errors.As(err, &memory) || memory.Op != strings.Fields(op)[0] || memory.Need != 768<<20 || memory.Free <= 0 || memory.Free > 256<<20 ||
			strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), fmt.Sprintf("(%s) needs 768 MiB more memory, and ", memory.Op)) {
			t.Errorf("%s: %v, want an error that the operator needs 768 MiB more", op, err)
		}
	}
	if _, err := modeltest.Open(t, small, model.Options{}); err != nil {
		t.Errorf("a small model: %v", err)
	}
}

// TestLayersBeyondMemory checks that NewBuffers, which makes the buffers of the layers for a number
// of images, fails if they would exceed half of the free memory (and 64 MiB). Here 1 GiB is free;
// 100 images take 0.3 GiB, 200 take 0.6 GiB.
func TestLayersBeyondMemory(t *testing.T) {
	t.Parallel()
	net := &enginetest.Network{Input: []int{3, 16, 16}, Layer: []tensor.Layer{{Name: "y", Shape: []int{3, 512, 512}, Axes: "NCHW"}}, Bounds: engine.Limits{Memory: 1 << 30}}
	m, err := model.Open(t.Context(), net, model.Options{Layers: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewBuffers(100); err != nil {
		t.Error(err)
	}
	if _, err := s.NewBuffers(200); err == nil || !strings.Contains(err.Error(), "take 0.6 GiB for a batch of 200 images, and 1.0 GiB of memory are free") {
		t.Errorf("buffers of 0.6 GiB: error %v", err)
	}
}
