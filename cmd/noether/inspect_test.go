package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// writeBoxes writes a model of images of 64 x 64 pixels that returns one box for each image, with
// names of classes in its metadata. As in YOLO v10, boxes that overlap a stronger one are already
// suppressed.
func writeBoxes(t *testing.T, dir string) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	mean := b.ReduceMean(b.Input("images", onnx.Float, -1, 3, 64, 64), true, 1, 2, 3)
	// The upper left and lower right corner (10, 10) and (30, 40), the score 0.9, and the class 1.
	box := b.Const("", tensor.Tensor{Shape: []int{1, 1, 6}, Data: []float32{10, 10, 30, 40, 0.9, 1}})
	rows := b.Add(b.Mul(b.Squeeze(mean, 3), b.Scalar(0)), box)
	b.OutputInfo(onnx.ValueInfo{Name: "output0", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 1}, {Size: 6}}}, rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.WithMetadata("names", "{0: 'cat', 1: 'owl'}").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "boxes.onnx", raw)
}

// The output is shown as {boxes: LAYOUT}.
func TestInspectShowsHowBoxesAreDecoded(t *testing.T) {
	path := writeBoxes(t, t.TempDir())
	text, err := output(t, "inspect", path)
	if want := "{boxes: suppressed} of output0, at most 1 boxes, 2 classes: cat; owl"; err != nil || !strings.Contains(text, want) {
		t.Errorf("%v: no %q in\n%s", err, want, text)
	}
	text, err = output(t, "inspect", path, "--json")
	var found inspection
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if d := found.Decoded; d == nil || d.Kind != "boxes" || d.Layout != "suppressed" || d.Classes != 2 || !slices.Equal(d.Names, []string{"cat", "owl"}) {
		t.Errorf("the decoded output is %+v, want boxes of two classes after suppression, cat and owl", d)
	}
}

// The names of the outputs tell how they are read: as a heat map for each keypoint, or as normals,
// the vectors perpendicular to the surface at each pixel.
func TestInspectShowsKeypointsAndNormals(t *testing.T) {
	for name, c := range map[string]struct {
		channels int
		want     string
	}{
		"heatmaps": {17, "{keypoints: heat-maps} of heatmaps, 17 keypoints"},
		"normals":  {3, "{values: normals} of normals, 8 x 8"},
	} {
		b := onnx.NewBuilder(17)
		x := b.Input("x", onnx.Float, -1, 3, 8, 8)
		b.OutputInfo(onnx.ValueInfo{Name: name, Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: c.channels}, {Size: 8}, {Size: 8}}},
			b.Concat(1, slices.Repeat([]onnx.Value{b.ReduceMean(x, true, 1)}, c.channels)...))
		path := testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
		if text, err := output(t, "inspect", path); err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%v: no %q in\n%s", err, c.want, text)
		}
	}
}

// The study file that init writes for a detector measures dense-equivariance. Its statistic matched
// is the fraction of boxes that are found again.
func TestInitMeasuresBoxes(t *testing.T) {
	dir := t.TempDir()
	path := writeBoxes(t, dir)
	for i := range 12 {
		write(t, dir, "photos/"+string(rune('a'+i))+".png", img(t, 64, i))
	}
	study := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", path, filepath.Join(dir, "photos"), "-o", study); code != 0 {
		t.Fatal(message)
	}
	text, err := os.ReadFile(study)
	if want := "\n  - dense-equivariance       # are the same things found at the moved positions? The output is read as {boxes: suppressed}\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: no %q in\n%s", err, want, text)
	}
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	scores, err := os.ReadFile(filepath.Join(run, "scores.csv"))
	if err != nil || !strings.Contains(string(scores), ",matched,") {
		t.Errorf("%v: no matched in\n%s", err, scores)
	}
}

// TestInspectOfTextEncoder checks that inspect asks for --length, the number of tokens, and lists
// the layers with it. NTC is the order of axes batch, tokens, channels.
func TestInspectOfTextEncoder(t *testing.T) {
	path := filepath.Join("..", "..", "internal", "study", "run", "testdata", "text", "encoder.onnx")
	text, err := output(t, "inspect", path)
	if want := `input "input_ids" (int64[batch tokens]) has an axis of free size: set --length`; err != nil || !strings.Contains(text, want) {
		t.Errorf("%v: no %q in\n%s", err, want, text)
	}
	text, err = output(t, "inspect", path, "--length", "12", "--json")
	var found inspection
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if last := found.Layers[len(found.Layers)-1]; found.Takes != "arrays" || found.Classes != 3 || last.Name != "logits" || found.Layers[0].Axes != "NTC" || !slices.Equal(found.Layers[0].Shape, []int{12, 16}) {
		t.Errorf("inspect prints %+v, want a model of arrays with 3 classes, from an NTC layer of 12 x 16 to logits", found)
	}
}
