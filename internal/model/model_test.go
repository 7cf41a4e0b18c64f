package model_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/enginetest"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// save builds a graph with build, writes it to a file and returns the path.
func save(t testing.TB, build func(b *onnx.Builder)) string {
	t.Helper()
	return saveOpset(t, onnx.DefaultOpset, build)
}

// openLayer opens a model with one layer (a tensor whose values are measured; "output" stands for
// the model's output) and a session that ends with the test.
func openLayer(t testing.TB, rt *ort.Runtime, path, layer string) (*model.Model, *model.Session) {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{layer}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return m, s
}

// saveOpset is save for a graph of an opset.
func saveOpset(t testing.TB, opset int, build func(b *onnx.Builder)) string {
	t.Helper()
	b := onnx.NewBuilder(opset)
	build(b)
	return testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
}

// TestDeclaredBatch runs a batch through a model that declares a batch of any size but works for
// one image only.
func TestDeclaredBatch(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	path := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 1, 2, 2)
		b.Output("y", b.Relu(b.Reshape(x, 1, 4)))
	})
	_, s := openLayer(t, rt, path, "y")
	buf, err := s.NewBuffers(3)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Tensor{Shape: []int{3, 1, 2, 2}, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	if err := s.Run(context.Background(), split(x), buf); err != nil {
		t.Fatal(err)
	}
	if y := buf.Layer(0); !slices.Equal(y.Data, x.Data) || !slices.Equal(y.Shape, []int{3, 4}) {
		t.Errorf("got %v, want %v", y, x.Data)
	}
}

// TestWindows checks that tensors whose first axis is not the batch are no layers: windows of
// images, of which there are several for each image, and a sum over the batch.
func TestWindows(t *testing.T) {
	t.Parallel()
	path := save(t, func(b *onnx.Builder) {
		x := b.Relu(b.Input("x", onnx.Float, -1, 3, 4, 4))
		windows := b.Reshape(x, -1, 4, 3) // four of each image
		b.Output("windows", windows)
		b.Output("merged", b.Reshape(windows, -1, 48))
		b.Output("total", b.ReduceSum(x, false))
	})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	if names := onnx.Names(m.Layers()); slices.Contains(names, "windows") || slices.Contains(names, "total") || !slices.Contains(names, "merged") {
		t.Errorf("layers %q", names)
	}
	for _, name := range []string{"windows", "total"} {
		if _, err := modeltest.Open(t, path, model.Options{Layers: []string{name}}); err == nil || !strings.Contains(err.Error(), "not the batch") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := modeltest.Open(t, path, model.Options{Layers: []string{"wind*"}}); err == nil {
		t.Error("Open with a pattern that matches no usable layer: no error")
	}
}

// TestFurtherInputs sets the values of inputs other than the image.
func TestFurtherInputs(t *testing.T) {
	t.Parallel()
	path := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 1, 1, 2)
		mask := b.Cast(b.Input("mask", onnx.Int64, -1, 2), onnx.Float)
		gain := b.Input("gain", onnx.Float)
		b.Output("mask-only", b.Relu(mask))
		b.Output("y", b.Mul(b.Mul(b.Reshape(x, -1, 2), mask), gain))
	})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}, Output: "y", Inputs: map[string][]float64{"mask": {1, -1}, "gain": {10}}})
	if err != nil {
		t.Fatal(err)
	}
	names := onnx.Names(m.Layers())
	if slices.Contains(names, "mask-only") || !slices.Contains(names, "y") {
		t.Fatalf("layers %q: layers must depend on the image", names)
	}
	s, err := m.NewSession(m.Layers(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf, err := s.NewBuffers(3)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Tensor{Shape: []int{2, 1, 1, 2}, Data: []float32{1, 2, 3, 4}}
	if err := s.Run(context.Background(), split(x), buf); err != nil {
		t.Fatal(err)
	}
	if y := buf.Layer(slices.Index(names, "y")); !slices.Equal(y.Data, []float32{10, -20, 30, -40}) {
		t.Errorf("got %v", y.Data)
	}
	for want, inputs := range map[string]map[string][]float64{
		`input "mask" (int64[batch 2]) needs values`: {"gain": {1}},
		"has 3 values: set 2":                        {"mask": {1, 2, 3}, "gain": {1}},
		"has no values":                              {"mask": {}, "gain": {1}},
		`unknown input "mist"`:                       {"mask": {1}, "gain": {1}, "mist": {1}},
	} {
		if _, err := modeltest.Open(t, path, model.Options{Inputs: inputs}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("inputs %v: error %v, want %q", inputs, err, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	// A network of images of 3 x 4 x 4 with the outputs doubled and scores (see inputs_test.go).
	image := save(t, network(form{onnx.Float, "NCHW", -1, 3}))
	tokens := save(t, func(b *onnx.Builder) { b.Output("y", b.Cast(b.Input("tokens", onnx.Int64, -1, 128), onnx.Float)) })
	dynamic := save(t, func(b *onnx.Builder) { b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, -1, -1))) })
	twoImages := save(t, func(b *onnx.Builder) {
		b.Output("y", b.Add(b.Input("left", onnx.Float, -1, 3, 4, 4), b.Input("right", onnx.Float, -1, 3, 4, 4)))
	})
	foreign := save(t, func(b *onnx.Builder) {
		b.NeedDomain("com.example", 1)
		b.Output("y", b.Node("com.example", "Frobnicate", 1, nil, b.Input("x", onnx.Float, -1, 3, 4, 4))[0])
	})
	unknown := save(t, func(b *onnx.Builder) { b.Output("y", b.Op("Frobnicate", nil, b.Input("x", onnx.Float, -1, 3, 4, 4))) })
	newer := saveOpset(t, 99, func(b *onnx.Builder) { b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, 4, 4))) })
	text := filepath.Join(t.TempDir(), "text.onnx") // a Git LFS pointer
	if err := os.WriteFile(text, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path    string
		options model.Options
		want    string
	}{
		"missing":         {filepath.Join(t.TempDir(), "none.onnx"), model.Options{}, "no such file"},
		"text":            {text, model.Options{}, "text file"},
		"foreign op":      {foreign, model.Options{}, "the engine does not support an operator of the model: com.example:Frobnicate"},
		"unknown op":      {unknown, model.Options{}, "the engine does not support an operator of the model: Frobnicate"},
		"newer opset":     {newer, model.Options{}, "the model uses opset 99 of ai.onnx, and this ONNX Runtime supports up to "},
		"tokens":          {tokens, model.Options{}, "no input takes an image (float, double or uint8 of rank 4 with 1 or 3 channels) or a waveform (float of rank 2, or 3 with 1 channel): it has tokens int64[batch 128], which may take arrays as they are (layout: raw)"},
		"tokens as image": {tokens, model.Options{Input: "tokens"}, "does not take an image"},
		"two images":      {twoImages, model.Options{}, "several inputs can take an image (left float[batch 3 4 4], right float[batch 3 4 4])"},
		"no such input":   {image, model.Options{Input: "z"}, `unknown input "z": it has x float[batch 3 4 4]`},
		"no such output":  {image, model.Options{Output: "z"}, `unknown output "z"`},
		"dynamic size":    {dynamic, model.Options{}, "does not fix the size of images"},
		"no such layout":  {image, model.Options{Layout: "CHWN"}, `layout "CHWN"`},
		"wrong layout":    {image, model.Options{Layout: "NHWC"}, "no input takes an image"},
		"no such layer":   {image, model.Options{Layers: []string{"op:Conv"}}, `no layer matches "op:Conv"`},
		"mean":            {image, model.Options{Preprocess: model.Preprocess{Mean: []float32{1, 2}}}, "mean has 2 values"},
		"height":          {image, model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Height: 5}}}, `preprocess makes images of height 5, and input "x" (float[batch 3 4 4]) takes 4`},
		"no such scores":  {image, model.Options{Scores: "odds"}, `scores "odds"`},
		"map as scores":   {image, model.Options{Scores: "logits", Output: "doubled"}, `output "doubled" is set to logits of classes`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := modeltest.Open(t, c.path, c.options)
			if err == nil {
				t.Fatal("no error")
			}
			msg := err.Error()
			if !strings.Contains(msg, c.want) || !strings.HasPrefix(msg, "model "+c.path+": ") || strings.Contains(msg, "\n") || strings.Count(msg, c.path) != 1 {
				t.Errorf("error %q, want one line with the file once and %q", msg, c.want)
			}
		})
	}
}

// TestDynamicSize opens a model of images of any size, and checks the size of a layer and of the
// frame: what data sets resize images to, where 0 leaves the size of the image. Options.Size is
// used where Preprocess fixes no size.
func TestDynamicSize(t *testing.T) {
	t.Parallel()
	path := save(t, func(b *onnx.Builder) { b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, -1, -1))) })
	for _, c := range []struct {
		options                 model.Options
		height, width           int // of the layer
		frameHeight, frameWidth int
	}{
		{model.Options{Size: [2]int{5, 6}}, 5, 6, 0, 0},
		{model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Height: 7, Width: 8}}, Size: [2]int{5, 6}}, 7, 8, 7, 8},
		{model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Resize: 9, Square: true}}}, 9, 9, 9, 9},
	} {
		c.options.Layers = []string{"y"}
		m, err := modeltest.Open(t, path, c.options)
		if err != nil {
			t.Fatal(err)
		}
		f := m.Frame()
		if l := m.Layers()[0]; !slices.Equal(l.Shape, []int{3, c.height, c.width}) || f.Height != c.frameHeight || f.Width != c.frameWidth || f.Channels != 3 {
			t.Errorf("%+v: layer %v, frame %+v", c.options, l.Shape, f)
		}
	}
}

// TestParallelParts checks that the parts of a batch give the same layers in parallel, in a batch
// session, as in sequence, for any number of threads and images. The network doubles its input.
func TestParallelParts(t *testing.T) {
	t.Parallel()
	images := make([]tensor.Tensor, 37) // in parts of eight images or more, which differ in size
	for i := range images {
		images[i] = tensor.New(3, 4, 4)
		for j := range images[i].Data {
			images[i].Data[j] = float32((i*48+j)%97) / 97
		}
	}
	for _, threads := range []int{1, 2, 3, 4, 6} {
		net := doubler()
		net.Bounds.Workers = threads
		m, err := model.Open(t.Context(), net, model.Options{Layers: []string{"doubled"}})
		if err != nil {
			t.Fatal(err)
		}
		sequential, err := m.NewSession(m.Layers(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer sequential.Close()
		parallel, err := m.NewBatchSession(m.Layers(), false, len(images), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer parallel.Close()
		for _, n := range []int{37, 1, 19, 18, 37, 10, 36} {
			var layers [2][]float32
			for i, s := range []*model.Session{sequential, parallel} {
				buf, err := s.NewBuffers(len(images))
				if err != nil {
					t.Fatal(err)
				}
				for _, run := range []int{n, 37, n} { // runs do not affect later ones
					if err := s.Run(t.Context(), images[:run], buf); err != nil {
						t.Fatal(err)
					}
				}
				if buf.Len() != n {
					t.Fatalf("the buffers hold %d images, want those of the last run, %d", buf.Len(), n)
				}
				layers[i] = slices.Clone(buf.Layer(0).Data)
			}
			if !slices.Equal(layers[0], layers[1]) {
				t.Errorf("layers of %d images on %d threads differ from those in sequence", n, threads)
			}
		}
	}
}

// doubler returns a network that doubles images of 3 x 4 x 4.
func doubler() *enginetest.Network {
	return &enginetest.Network{Name: "doubler", Input: []int{3, 4, 4}, Layer: []tensor.Layer{{Name: "doubled", Op: "Mul", Shape: []int{3, 4, 4}, Axes: "NCHW"}},
		Compute: func(x []float32, out [][]float32) {
			for i, v := range x {
				out[0][i] = 2 * v
			}
		}}
}

// TestNetworkWithoutGraph checks what Open finds out from the names and shapes of layers alone.
func TestNetworkWithoutGraph(t *testing.T) {
	t.Parallel()
	net := doubler()
	net.Layer = append(net.Layer, tensor.Layer{Name: "logits", Shape: []int{10}, Axes: "NC"}, tensor.Layer{Name: "boxes", Shape: []int{4}, Axes: "NC"})
	for pattern, want := range map[string]string{"all": "doubled logits boxes", "op:mul": "doubled", "*o*s": "logits boxes", "output": "doubled logits boxes"} {
		m, err := model.Open(t.Context(), net, model.Options{Layers: []string{pattern}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(onnx.Names(m.Layers()), " "); got != want {
			t.Errorf("%s matches %s, want %s", pattern, got, want)
		}
		if m.Output() != "logits" || m.Scores() != "logits" || m.Classes() != 10 || m.NoGradient() == "" || m.SHA256() != "doubler" {
			t.Errorf("%d %s of output %q, gradient %q, hash %q", m.Classes(), m.Scores(), m.Output(), m.NoGradient(), m.SHA256())
		}
	}
	for _, o := range []model.Options{{Layers: []string{"penultimate"}}, {Decode: output.Setting{Boxes: "yolov8"}}} {
		if _, err := model.Open(t.Context(), net, o); err == nil || !strings.HasPrefix(err.Error(), "model doubler: ") {
			t.Errorf("%+v: error %v, want one with the model's name", o, err)
		}
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	m, err := model.Open(t.Context(), doubler(), model.Options{Layers: []string{"doubled"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf, err := s.NewBuffers(2) // for two images
	if err != nil {
		t.Fatal(err)
	}
	good := tensor.New(3, 4, 4)
	wrong := tensor.New(3, 4, 5)
	if err := s.Run(context.Background(), []tensor.Tensor{good, wrong}, buf); err == nil || err.Error() != "model doubler: image 1 of the batch: takes images of 3 x 4 x 4, not of 3 x 4 x 5" {
		t.Errorf("an image of the wrong size: %v", err)
	}
	if err := s.Run(context.Background(), []tensor.Tensor{good, good, good}, buf); err == nil {
		t.Error("Run of three images with buffers for two: no error")
	}
	if _, err := buf.LogProbs(nil); err == nil {
		t.Error("LogProbs of a session without scores: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx, []tensor.Tensor{good}, buf); err != context.Canceled {
		t.Errorf("a run under a cancelled context: %v, want %v", err, context.Canceled)
	}
	if _, err := s.NewBuffers(0); err == nil {
		t.Error("NewBuffers(0): no error")
	}
	if _, err := m.NewSession([]tensor.Layer{{Name: "scores"}}, false); err == nil {
		t.Error("NewSession of a layer that was not chosen: no error")
	}
	if _, err := m.NewSession(nil, false); err == nil {
		t.Error("NewSession without layers and scores: no error")
	}
	if _, err := m.NewSession(nil, true); err == nil || !strings.Contains(err.Error(), "scores classes") {
		t.Errorf("scores of an output that is a feature map: %v", err)
	}
}
