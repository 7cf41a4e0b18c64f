package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// savePNG writes an image into a folder.
func savePNG(t *testing.T, dir, name string, img image.Image) {
	t.Helper()
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		t.Fatal(err)
	}
	write(t, dir, name, data.Bytes())
}

// parityOf runs parity with --json.
func parityOf(t *testing.T, args ...string) parityReport {
	t.Helper()
	text, err := output(t, append(append([]string{"parity"}, args...), "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var r parityReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

func sameValues(t *testing.T, what string, got map[string]*interval, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if s := got[name]; s == nil || !(math.Abs(float64(s.Value)-v) <= 1e-9) {
			t.Errorf("%s: %s is %+v, want %v", what, name, s, v)
		}
	}
}

func (p *parityPrediction) byName() map[string]*interval {
	return map[string]*interval{"agreement": p.Agreement, "original": p.AccuracyOriginal, "other": p.AccuracyOther, "difference": p.AccuracyDifference,
		"miou": p.MIoU, "iou": p.IoU, "flips": p.ClassFlips, "change": p.ConfidenceChange,
		"follows": p.EquivarianceOriginal, "other follows": p.EquivarianceOther, "follows less": p.EquivarianceDifference}
}

// TestParityOfDetectors compares a detector of coloured squares with one that calls those at the
// left red. Of 12 images with one square each, 3 differ. Their average precisions are of 101 steps
// of recall: red 1, since the false ones come after the true ones of the same score; green 51, with
// 2 of 4 found; blue 76, with 3 of 4.
func TestParityOfDetectors(t *testing.T) {
	dir := t.TempDir()
	const size, side = 32, 8
	exact, biased := filepath.Join(dir, "exact.onnx"), filepath.Join(dir, "biased.onnx")
	testmodel.WriteDetector(t, exact, size, false)
	testmodel.WriteDetector(t, biased, size, true)
	var images, boxes []string
	for i, left := range []int{12, 12, 14, 16, 4, 4, 12, 14, 4, 12, 14, 16} {
		img := image.NewNRGBA(image.Rect(0, 0, size, size))
		for p := range size * size {
			c := color.NRGBA{A: 255}
			if x, y := p%size, p/size; x >= left && x < left+side && y >= 8 && y < 8+side {
				*[]*uint8{&c.R, &c.G, &c.B}[i/4] = 255
			}
			img.Set(p%size, p/size, c)
		}
		name := fmt.Sprintf("%02d.png", i)
		savePNG(t, filepath.Join(dir, "images"), name, img)
		images = append(images, fmt.Sprintf(`{"id": %d, "file_name": %q, "height": %d, "width": %d}`, i, name, size, size))
		boxes = append(boxes, fmt.Sprintf(`{"id": %d, "image_id": %d, "category_id": %d, "bbox": [%d, 8, %d, %d]}`, i+1, i, i/4+1, left, side, side))
	}
	annotations := write(t, dir, "instances.json", fmt.Appendf(nil, `{"images": [%s], "annotations": [%s], "categories": [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}, {"id": 3, "name": "blue"}]}`,
		strings.Join(images, ", "), strings.Join(boxes, ", ")))
	data := fmt.Sprintf("coco: {annotations: %q, images: %q}", filepath.ToSlash(annotations), filepath.ToSlash(filepath.Join(dir, "images")))
	flags := []string{"--preprocess", "none", "--output", "{boxes: suppressed, classes: 3}"}

	// A half turn brings the squares at 14 and 16 to the left, of which three are not red.
	r := parityOf(t, append([]string{exact, biased, data, "--transform", "rotate: {values: [180]}"}, flags...)...)
	if len(r.Predictions) != 2 {
		t.Fatalf("%d comparisons, want 2: %+v", len(r.Predictions), r)
	}
	p := r.Predictions[0]
	sameValues(t, "clean", p.byName(), map[string]float64{"agreement": 0.75, "iou": 1, "flips": 0.25, "change": 0, "original": 1, "other": (1 + 51./101 + 76./101) / 3, "difference": (51./101 + 76./101 - 2) / 3})
	if p.Outputs != "boxes" || p.Accuracy != "map" || p.N != 12 || p.Differ != 3 || len(p.Worst) != 3 {
		t.Errorf("%+v", p)
	}
	for i, s := range p.Worst {
		if want := []int{4, 5, 8}[i]; s.Index != want || filepath.Base(s.Name) != fmt.Sprintf("%02d.png", want) || s.Agreement != 0 {
			t.Errorf("sample %d that differs most: %+v, want %d", i, s, want)
		}
	}
	if d := p.AccuracyDifference; !(d.Low < d.Value && d.Value < d.High) {
		t.Errorf("the difference is %+v", *d)
	}
	sameValues(t, "turned", r.Predictions[1].byName(), map[string]float64{"agreement": 9. / 12, "original": 1, "other": (1 + 76./101 + 51./101) / 3, "follows": 1, "other follows": 1, "follows less": 0})

	r = parityOf(t, append([]string{exact, exact, data}, flags...)...)
	p = r.Predictions[0]
	sameValues(t, "identical", p.byName(), map[string]float64{"agreement": 1, "iou": 1, "flips": 0, "change": 0, "original": 1, "other": 1, "difference": 0})
	if d := p.AccuracyDifference; p.Differ != 0 || !(d.Low < 0 && d.High > 0) {
		t.Errorf("identical detectors: %d differ, the difference is %+v", p.Differ, *d)
	}

	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{data}, 0, "boxes agree: F1 0.75"},
		{[]string{data}, 0, "04.png (0)"},
		{[]string{data}, 0, "mAP 1 "},
		{[]string{data, "--fail-if", "agreement < 0.99!"}, gateExit, ""},
		{[]string{data, "--fail-if", "agreement < 0.1"}, 0, ""},
		{[]string{data, "--fail-if", "map-difference < -0.2!"}, gateExit, ""},
		{[]string{filepath.Join(dir, "images")}, 0, "mAP: the data have no labelled boxes or masks"},
	} {
		text, err := output(t, append(append([]string{"parity", exact, biased}, c.args...), flags...)...)
		text = strings.Join(strings.Fields(text), " ")
		if exitCode(err) != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit %d, want %d with %q: %v\n%s", c.args, exitCode(err), c.code, c.want, err, text)
		}
	}
}

// TestParityOfNamedClasses compares equal boxes of detectors whose classes have other names or
// numbers.
func TestParityOfNamedClasses(t *testing.T) {
	dir := t.TempDir()
	original := writeBoxes(t, dir) // its class 1 is an owl
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := range 4 {
		savePNG(t, filepath.Join(dir, "images"), fmt.Sprintf("%d.png", i), img)
	}
	m, err := onnx.Read(original)
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]struct {
		agreement float64
		why       string
	}{
		"{0: 'cat', 1: 'owl'}":           {1, ""},
		"{0: 'owl', 1: 'cat'}":           {0, ""},
		"{0: 'cat', 1: 'dog'}":           {0, `class "owl" of model original is not a class of model other (cat, ...): predictions are compared class by class, and need the same classes`},
		"{0: 'cat', 1: 'owl', 2: 'dog'}": {0, "the decoded output of model original has 2 classes, and of model other 3"},
		"":                               {1, ""},
	} {
		raw, err := m.WithMetadata("names", names).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		other := write(t, dir, "other.onnx", raw)
		r := parityOf(t, original, other, filepath.Join(dir, "images"), "--preprocess", "none", "--output", "{boxes: suppressed}")
		if r.NotCompared != want.why || (want.why == "") != (len(r.Predictions) == 1) {
			t.Errorf("%s: %d comparisons; not compared: %q, want %q", names, len(r.Predictions), r.NotCompared, want.why)
		}
		for _, p := range r.Predictions {
			sameValues(t, names, p.byName(), map[string]float64{"agreement": want.agreement, "flips": 1 - want.agreement})
		}
	}
}

// TestParityWithoutBoxes checks that detectors of weak boxes only are not called equal, and that a
// condition on their agreement is an error.
func TestParityWithoutBoxes(t *testing.T) {
	dir := t.TempDir()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	mean := b.ReduceMean(b.Input("images", onnx.Float, -1, 3, 64, 64), true, 1, 2, 3)
	weak := b.Const("", tensor.Tensor{Shape: []int{1, 1, 6}, Data: []float32{10, 10, 30, 40, 0.3, 1}})
	rows := b.Add(b.Mul(b.Squeeze(mean, 3), b.Scalar(0)), weak)
	b.OutputInfo(onnx.ValueInfo{Name: "output0", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 1}, {Size: 6}}}, rows)
	model := testmodel.Save(t, filepath.Join(dir, "weak.onnx"), b)
	for i := range 4 {
		savePNG(t, filepath.Join(dir, "images"), fmt.Sprintf("%d.png", i), image.NewNRGBA(image.Rect(0, 0, 64, 64)))
	}
	args := []string{"parity", model, model, filepath.Join(dir, "images"), "--preprocess", "none", "--output", "{boxes: suppressed}"}
	text, err := output(t, args...)
	if want := "predictions are not compared: no box has a score of at least 0.5"; err != nil || !strings.Contains(text, want) {
		t.Errorf("no %q (%v) in\n%s", want, err, text)
	}
	if _, err := output(t, append(args, "--fail-if", "agreement < 0.5")...); exitCode(err) != 1 {
		t.Errorf("a condition on no score: %v", err)
	}
}

// TestParityOfSegmenters compares a segmenter of colours with one that exchanges red and green, and
// with one that sees nothing in the left quarter, on images of 16 x 16 with 16 red pixels in that
// quarter, which a flip moves to the right, and 32 green ones.
func TestParityOfSegmenters(t *testing.T) {
	dir := t.TempDir()
	const size = 16
	save := func(name string, from int, order ...int) string {
		seen := tensor.New(1, 1, 1, size)
		for i := from; i < size; i++ {
			seen.Data[i] = 1
		}
		b := onnx.NewBuilder(onnx.DefaultOpset)
		x := b.Input("x", onnx.Float, -1, 3, size, size)
		background := b.Add(b.Mul(b.ReduceMax(x, true, 1), b.Scalar(0)), b.Scalar(0.25))
		colours := b.Op("Gather", onnx.Attrs{"axis": 1}, x, b.Ints(order...))
		b.OutputInfo(onnx.ValueInfo{Name: "out", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 4}, {Size: size}, {Size: size}}}, b.Concat(1, background, b.Mul(colours, b.Const("seen", seen))))
		return testmodel.Save(t, filepath.Join(dir, name), b)
	}
	original, swapped, blind := save("original.onnx", 0, 0, 1, 2), save("swapped.onnx", 0, 1, 0, 2), save("blind.onnx", 4, 0, 1, 2)
	for i := range 12 {
		img, mask := image.NewNRGBA(image.Rect(0, 0, size, size)), image.NewGray(image.Rect(0, 0, size, size))
		for p := range size * size {
			c, class := color.NRGBA{A: 255}, uint8(0)
			switch x, y := p%size, p/size; {
			case x < 4 && y >= i%4 && y < i%4+4:
				c.R, class = 255, 1
			case x >= 8 && x < 12 && y >= i%4 && y < i%4+8:
				c.G, class = 255, 2
			}
			img.Set(p%size, p/size, c)
			mask.SetGray(p%size, p/size, color.Gray{class})
		}
		savePNG(t, filepath.Join(dir, "images"), fmt.Sprintf("%02d.png", i), img)
		savePNG(t, filepath.Join(dir, "masks"), fmt.Sprintf("%02d.png", i), mask)
	}
	data := fmt.Sprintf("{images: {folder: %q, masks: %q}}", filepath.ToSlash(filepath.Join(dir, "images")), filepath.ToSlash(filepath.Join(dir, "masks")))
	flags := []string{"--preprocess", "none", "--transform", "flip: horizontal"}
	for _, c := range []struct {
		other                   string
		agreement, miou, differ float64
	}{{original, 1, 1, 0}, {swapped, 1 - 48./256, 1. / 3, 12}} {
		r := parityOf(t, append([]string{original, c.other, data}, flags...)...)
		if len(r.Predictions) != 2 {
			t.Fatalf("%d comparisons, want 2: %+v", len(r.Predictions), r)
		}
		for _, p := range r.Predictions {
			sameValues(t, c.other+" "+p.Transform, p.byName(), map[string]float64{"agreement": c.agreement, "miou": c.miou, "original": 1, "other": c.miou, "difference": c.miou - 1})
			if p.Transform != "" {
				sameValues(t, c.other, p.byName(), map[string]float64{"follows": 1, "other follows": 1, "follows less": 0})
			} else if p.EquivarianceOther != nil {
				t.Errorf("clean samples have an equivariance of %+v", *p.EquivarianceOther)
			}
			if p.Outputs != "class-map" || p.Accuracy != "miou" || p.N != 12 || p.Differ != int(c.differ) {
				t.Errorf("%+v", p)
			}
			if d := p.AccuracyDifference; !(d.Low <= d.Value && d.Value <= d.High) {
				t.Errorf("the difference is %+v", *d)
			}
		}
	}
	of := parityOf(t, append([]string{original, blind, data}, flags...)...).Predictions
	sameValues(t, "blind", of[0].byName(), map[string]float64{"agreement": 1 - 16./256})
	sameValues(t, "blind, flipped", of[1].byName(), map[string]float64{"agreement": 1, "follows": 1, "other follows": 1 - 16./256, "follows less": -16. / 256})
	text, err := output(t, append([]string{"parity", original, swapped, filepath.Join(dir, "images")}, flags...)...)
	for _, want := range []string{"class maps agree for 0.8125", "mean IoU of 0.3333", "12 of 12 samples differ", "under  agreement                  equivariance       difference\nflip   0.8125     [0.812, 0.812]  1             → 1  +0 "} {
		if err != nil || !strings.Contains(strings.ReplaceAll(text, " \n", "\n"), want) {
			t.Errorf("no %q (%v) in\n%s", want, err, text)
		}
	}

	study := write(t, dir, "study.yaml", fmt.Appendf(nil, `name: agreement
data: {name: street, images: %q}
models: [{name: float, onnx: original.onnx, preprocess: none}, {name: swapped, onnx: swapped.onnx, preprocess: none}]
transforms: [{name: flip, flip: horizontal}]
measures: [dense-equivariance, {dense-agreement: {between: [float, swapped]}}]
`, filepath.ToSlash(filepath.Join(dir, "images"))))
	text, err = output(t, "run", study, "-o", filepath.Join(dir, "run"))
	if want := "agreement with float"; err != nil || !strings.Contains(text, want) || !strings.Contains(text, "0.812") {
		t.Errorf("no %q of 0.812 (%v) in\n%s", want, err, text)
	}

	depth := onnx.NewBuilder(onnx.DefaultOpset)
	x := depth.Input("x", onnx.Float, -1, 3, size, size)
	depth.OutputInfo(onnx.ValueInfo{Name: "depth", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 1}, {Size: size}, {Size: size}}}, depth.ReduceMax(x, true, 1))
	values := testmodel.Save(t, filepath.Join(dir, "depth.onnx"), depth)
	r := parityOf(t, values, values, filepath.Join(dir, "images"), "--preprocess", "none", "--output", "{values: depth}")
	if want := "of decoded outputs, boxes and class maps are compared, and these are values"; r.NotCompared != want {
		t.Errorf("not compared: %q, want %q", r.NotCompared, want)
	}
}
