package model_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestBatchThatDoesNotFitTheDevice runs 24 images through a layer of 64 MiB an image on a software
// driver, which emulates a GPU and allows tensors of at most 1 GiB. The batch must be divided in
// two, and one message must say so.
func TestBatchThatDoesNotFitTheDevice(t *testing.T) {
	gputest.UseSoftwareDriver(t)
	dir := t.TempDir()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 8, 8)
	mean := b.ReduceMean(x, true, 1, 2, 3)
	expanded := b.Node("", "Expand", 1, nil, mean, b.Ints(1, 64, 512, 512))[0]
	cropped := b.Node("", "Slice", 1, nil, expanded, b.Ints(0, 0, 0), b.Ints(1, 1, 1), b.Ints(1, 2, 3))[0]
	b.Output("twice", b.Add(cropped, mean))
	path := testmodel.Save(t, filepath.Join(dir, "expanded.onnx"), b, "twice")
	rt := orttest.Load(t)
	var messages []string
	rt.Notify(func(text string) { messages = append(messages, text) })
	defer rt.Notify(nil)
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"twice"}}, ort.NetworkOptions{Device: "webgpu"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var images []tensor.Tensor
	for i := range 24 {
		image := tensor.New(3, 8, 8)
		for k := range image.Data {
			image.Data[k] = float32(i)
		}
		images = append(images, image)
	}
	for _, images := range [][]tensor.Tensor{images, images[:1]} {
		buf, err := s.NewBuffers(24)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), images, buf); err != nil {
			t.Fatal(err)
		}
		for i, v := range buf.Layer(0).Data {
			if d := v - 2*float32(i); d > 1e-3 || d < -1e-3 {
				t.Errorf("image %d: %v, want %v", i, v, 2*i)
			}
		}
	}
	if len(messages) != 1 || !strings.Contains(messages[0], "too little memory for 24 images at once: running 12 at a time") {
		t.Errorf("messages: %s", fmt.Sprint(messages))
	}
}
