package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestInitVideos checks that the study that init writes for an array of videos runs as it is, and
// that every frame of them is transformed alike: the mean of a video is that of its rotations.
func TestInitVideos(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "clips.npy", npy(normals(1, 6*4*3*8*8), 6, 4, 3, 8, 8)) // frames, channels, height, width
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 4, 3, 8, 8)
	b.Output("means", b.ReduceMean(x, false, 3, 4)) // of each frame and channel
	b.Output("columns", b.ReduceMean(x, false, 3))  // which a mirror image has in the other order
	b.Output("pixels", b.Reshape(b.Relu(x), 0, -1)) // which it has elsewhere
	model, out := testmodel.Save(t, filepath.Join(dir, "video.onnx"), b), filepath.Join(dir, "run")
	study := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", model, data, "-o", study); code != 0 {
		t.Fatal(message)
	}
	text, err := os.ReadFile(study)
	if err != nil || !strings.Contains(string(text), "layout: raw") || strings.Contains(string(text), "preprocess:") {
		t.Errorf("the study (%v):\n%s", err, text)
	}
	text = []byte(strings.Replace(string(text), "layers: ", "layers: [means, columns, pixels] #", 1))
	lines := strings.Split(string(text), "\n")
	kept := lines[:0]
	for _, line := range lines {
		if !strings.HasPrefix(line, "      - ") { // the layers that init chose
			kept = append(kept, line)
		}
	}
	write(t, dir, "study.yaml", []byte(strings.Join(kept, "\n")))
	if code, message := call(t, "run", study, "-o", out); code != 0 {
		t.Fatal(message)
	}
	seen := map[string]bool{}
	for _, r := range readScores(t, out) {
		if r.Measure != "distance" || r.Statistic != "l2" {
			continue
		}
		exact := r.Transform == "mirror" || r.Transform == "quarter"
		seen[r.Transform+" "+r.Layer] = true
		if zero := r.Value < 1e-5; exact && zero != (r.Layer == "means") {
			t.Errorf("%s %s moves %s by %v", r.Transform, r.Parameter, r.Layer, r.Value)
		}
	}
	for _, want := range []string{"mirror means", "mirror columns", "quarter pixels", "tilt pixels"} {
		if !seen[want] {
			t.Errorf("no score of %s among %v", want, seen)
		}
	}
}

// TestInitVectors checks the error for arrays that no transformation applies to.
func TestInitVectors(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "x.npy", npy(normals(1, 4*7), 4, 7))
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 7)))
	code, message := call(t, "init", testmodel.Save(t, filepath.Join(dir, "m.onnx"), b), data)
	if code == 0 || !strings.Contains(message, "pairs of arrays") {
		t.Errorf("exit code %d: %s", code, message)
	}
}

// TestInitDetectors checks that the study that init writes for detectors of the YOLO family keeps the
// shape of images, has the values that they take, and runs as it is.
func TestInitDetectors(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		write(t, dir, fmt.Sprintf("photos/%d.png", i), img(t, 48, i))
	}
	const anchors = 21 // of strides 8, 16 and 32 in an image of 32 x 32
	x, y := make([]float32, anchors*8), make([]float32, anchors*8)
	copy(x[5*8:], []float32{.25, -.25, float32(math.Log(2)), 0, .5, .8, .1, 0})
	copy(y[5*8:], []float32{18, 6, 16, 8, .5, .8, .1, 0})
	copy(y, []float32{10, 8, 8, 8, .5, .6, .1, 0})
	for layout, c := range map[string]struct {
		rows []float32
		want string
	}{
		"yolox":  {x, "preprocess: {letterbox: 32, order: bgr, range: [0, 255]}"},
		"yolov5": {y, "preprocess: {letterbox: 32}"},
	} {
		b := onnx.NewBuilder(17)
		level := b.ReduceMean(b.Input("images", onnx.Float, -1, 3, 32, 32), false, 3) // depends on the image
		rows := b.Const("rows", tensor.Tensor{Shape: []int{1, anchors, 8}, Data: c.rows})
		b.Output("output", b.Add(rows, b.Mul(b.ReduceMean(level, true, 1, 2), b.Scalar(1e-6))))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := m.WithMetadata("names", "{0: 'cat', 1: 'dog', 2: 'owl'}").Bytes()
		if err != nil {
			t.Fatal(err)
		}
		path, study := write(t, dir, layout+".onnx", raw), filepath.Join(dir, layout+".yaml")
		if code, message := call(t, "init", path, filepath.Join(dir, "photos"), "-o", study); code != 0 {
			t.Fatal(message)
		}
		text, err := os.ReadFile(study)
		if err != nil || !strings.Contains(string(text), c.want) || !strings.Contains(string(text), layout) {
			t.Errorf("%s: the study (%v) lacks %q:\n%s", layout, err, c.want, text)
		}
		out := filepath.Join(dir, layout)
		if code, message := call(t, "run", study, "-o", out); code != 0 {
			t.Errorf("%s: %s", layout, message)
		}
		found := 0
		for _, r := range readScores(t, out) {
			if r.Measure == "dense-equivariance" && !math.IsNaN(r.Value) {
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: dense-equivariance has no value", layout)
		}
	}
}
