package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// byName returns the rows of a run by "transformation parameter statistic factor", where empty
// parts are left out. The factor is what a score is limited to, such as class=0.
func byName(r *study.Result) map[string]scores.Row {
	out := map[string]scores.Row{}
	for _, row := range r.Rows {
		out[strings.Join(strings.Fields(strings.Join([]string{row.Transform, row.Parameter, row.Statistic, row.Factor}, " ")), " ")] = row
	}
	return out
}

// A detector that finds coloured squares finds them where quarter turns and flips move them. One
// whose class depends on the position does not keep the class. The output of kind suppressed is
// boxes after non-maximum suppression. A null is the value that chance gives: here that of x of one
// image with T(x) of another. A view is a transformation with one of its values.
func TestDetectorUnderQuarterTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.WriteDetector(t, filepath.Join(dir, "exact.onnx"), 32, false)
	testmodel.WriteDetector(t, filepath.Join(dir, "biased.onnx"), 32, true)
	r := studytest.Run(t, studytest.Parse(t, dir, `name: boxes
samples: true
data: [{name: shapes, shapes: {n: 120, size: 32, kinds: [square]}}]
models:
  - {name: exact, onnx: exact.onnx, output: {boxes: suppressed, classes: 3}}
transforms:
  - {name: turn, rotate: {values: [90, 180, 270]}}
  - {name: flip, flip: horizontal}
  - {name: darker, brightness: 0.9}
measures: [dense-equivariance, distance]
`), filepath.Join(dir, "run"), studytest.Options(t))
	got := byName(r)
	for _, view := range []string{"turn 90", "turn 180", "turn 270", "flip", "darker"} {
		for statistic, want := range map[string]float64{"matched": 1, "iou": 1, "class-flips": 0, "confidence-change": 0, "matched class=0": 1, "matched class=2": 1, "matched confidence=0.9": 1} {
			row, ok := got[view+" "+statistic]
			if view == "darker" && statistic == "iou" {
				want = 0.9824704425771373 // darker pixels at the border of the shape fall below the threshold of WriteDetector
			}
			if !ok || math.Abs(row.Value-want) > 1e-6 || row.Layer != "" || row.N != 120 {
				t.Errorf("%s %s: %+v, want %v", view, statistic, row, want)
			}
		}
		if row := got[view+" matched"]; !(row.Low > 0.9 && row.Low < 1) || !(row.Null < 0.9) {
			t.Errorf("%s: interval from %v, null %v", view, row.Low, row.Null)
		}
	}
	r = studytest.Run(t, studytest.Parse(t, dir, `name: biased
data: [{name: shapes, shapes: {n: 120, size: 32, kinds: [square]}}]
models: [{name: biased, onnx: biased.onnx, output: {boxes: suppressed, classes: 3}}]
transforms: [{name: flip, flip: horizontal}]
measures: [dense-equivariance]
`), filepath.Join(dir, "biased"), studytest.Options(t))
	row := byName(r)["flip class-flips"]
	if !(row.Value > 0.1) {
		t.Errorf("the class depends on the position, but it changes for few boxes: %+v", row)
	}
	// Each image has one square: those whose class changes are the failures.
	file, err := os.Open(filepath.Join(dir, "biased", "failures.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	failures, err := scores.ReadMistakes(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := int(math.Round(row.Value * 120)); len(failures) != want {
		t.Errorf("%d failures, want %d", len(failures), want)
	}
	for _, m := range failures {
		if m.Kind != scores.Changed || m.Cost != 1 || m.Transform != "flip" || m.Moved != "matched 1.00, class-flips 1.00" || !math.IsNaN(m.MovedConfidence) {
			t.Errorf("%+v", m)
		}
	}
	groups, err := os.Open(filepath.Join(dir, "biased", "failure-groups.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer groups.Close()
	all, err := scores.ReadMistakeGroups(groups)
	last := all[len(all)-1]
	if err != nil || last.Column != scores.AllSamples || last.Kind != scores.Changed || last.N != 120 || math.Abs(last.Share.Mean-row.Value) > 1e-9 {
		t.Errorf("the group of all samples: %+v (%v), want a share of %v", last, err, row.Value)
	}
	set, err := pictures.Open(os.DirFS(filepath.Join(dir, "biased")))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	names, err := set.Glob("pictures/failures/*.png")
	if err != nil || len(names) == 0 {
		t.Fatalf("no contact sheets of failures (%v)", err)
	}
	sheet, err := set.Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer sheet.Close()
	img, err := png.Decode(sheet)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if color.NRGBAModel.Convert(img.At(x, y)) == (color.NRGBA{213, 94, 0, 255}) {
				found++
			}
		}
	}
	if found < 24*4*10 { // twelve samples in two views, whose boxes have a border of some ten pixels a side
		t.Errorf("%d pixels of %s are of boxes that are found", found, names[0])
	}
}

// A segmenter that classifies each pixel alone is equivariant. One that adds a term which grows
// with the column to the logits of the background is not.
func TestSegmenterUnderQuarterTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, slope := range map[string]float32{"pointwise": 0, "ramp": 0.1} {
		saveGraph(t, filepath.Join(dir, name+".onnx"), func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, -1, 3, 16, 16)
			background := b.Add(b.Mul(b.ReduceMax(x, true, 1), b.Scalar(0)), b.Scalar(0.25))
			logits := b.Concat(1, b.Add(background, b.Mul(testmodel.Ramp(b, 16, true, 0), b.Scalar(slope))), x)
			b.OutputInfo(onnx.ValueInfo{Name: "out", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 4}, {Size: 16}, {Size: 16}}}, logits)
		})
	}
	r := studytest.Run(t, studytest.Parse(t, dir, `name: maps
data: [{name: shapes, shapes: {n: 60, size: 16}}]
models: [{name: pointwise, onnx: pointwise.onnx}, {name: ramp, onnx: ramp.onnx}]
transforms: [{name: turn, rotate: 90}]
measures: [dense-equivariance]
`), filepath.Join(dir, "run"), studytest.Options(t))
	checked := map[string]int{} // rows of each model
	for _, row := range r.Rows {
		switch {
		case row.Statistic != "pixel-agreement" || row.Model == "ramp" && row.Factor != "":
			continue
		case row.Model == "pointwise" && row.Value != 1 || row.Model == "ramp" && !(row.Value < 0.98):
			t.Errorf("%+v", row)
		}
		checked[row.Model]++
	}
	if len(r.Rows) < 20 || checked["pointwise"] == 0 || checked["ramp"] == 0 {
		t.Errorf("%d rows, of them %v of pixel-agreement, want at least 20, and some of each model", len(r.Rows), checked)
	}
}

// Two models are exactly equivariant under quarter turns and flips: the surface normals of the
// brightness, taken as a height, and keypoints at the brightest position of each channel.
// Statistics are not 0 if the normals are taken for numbers, or their y component for pointing
// upwards.
func TestNormalsAndHeatMapsUnderQuarterTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slope := func(b *onnx.Builder, x onnx.Value, down bool) onnx.Value { // minus the central difference
		k, pads := tensor.Tensor{Shape: []int{1, 1, 1, 3}, Data: []float32{1, 0, -1}}, []int{0, 1, 0, 1}
		if down {
			k.Shape, pads = []int{1, 1, 3, 1}, []int{1, 0, 1, 0}
		}
		return b.Op("Conv", onnx.Attrs{"pads": pads}, x, b.Const("", k))
	}
	info := func(name string, channels int) onnx.ValueInfo {
		return onnx.ValueInfo{Name: name, Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: channels}, {Size: 16}, {Size: 16}}}
	}
	saveGraph(t, filepath.Join(dir, "normals.onnx"), func(b *onnx.Builder) {
		height := b.ReduceMean(b.Input("x", onnx.Float, -1, 3, 16, 16), true, 1)
		right, down := slope(b, height, false), slope(b, height, true)
		length := b.Op("Sqrt", nil, b.Add(b.Add(b.Mul(right, right), b.Mul(down, down)), b.Scalar(1)))
		b.OutputInfo(info("normals", 3), b.Concat(1, b.Div(right, length), b.Div(down, length), b.Op("Reciprocal", nil, length)))
	})
	saveGraph(t, filepath.Join(dir, "heat.onnx"), func(b *onnx.Builder) {
		b.OutputInfo(info("heatmaps", 3), b.Identity(b.Input("x", onnx.Float, -1, 3, 16, 16)))
	})
	// Images whose largest value in each channel is at one position.
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 24 {
		img := image.NewRGBA(image.Rect(0, 0, 16, 16))
		for p := range 256 {
			img.SetRGBA(p%16, p/16, color.RGBA{uint8(r.IntN(200)), uint8(r.IntN(200)), uint8(r.IntN(200)), 255})
		}
		for c := range 3 {
			img.Pix[img.PixOffset(r.IntN(16), r.IntN(16))+c] = 255
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%02d.png", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(png.Encode(f, img), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got := byModel(studytest.Run(t, studytest.Parse(t, dir, `name: maps
data: [{name: images, images: .}]
models:
  - {name: normals, onnx: normals.onnx, output: {values: normals}}
  - {name: numbers, onnx: normals.onnx, output: {values: map}}
  - {name: y-up, onnx: normals.onnx, output: {values: normals-y-up}}
  - {name: keypoints, onnx: heat.onnx, output: {keypoints: heat-maps}}
transforms:
  - {name: turn, rotate: {values: [90, 180, 270]}}
  - {name: flip, flip: horizontal}
measures: [dense-equivariance]
`), filepath.Join(dir, "run"), studytest.Options(t)))
	for _, view := range []string{"turn 90", "turn 180", "turn 270", "flip"} {
		for _, name := range []string{"normals " + view + " relative-error", "normals " + view + " angle", "keypoints " + view + " keypoint-distance", "keypoints " + view + " keypoint-distance keypoint=2"} {
			if row, ok := got[name]; !ok || !(row.Value < 1e-4) || !(row.Null > 0.1) { // Null: by chance
				t.Errorf("%s: %+v", name, row)
			}
		}
		if row, ok := got["numbers "+view+" relative-error"]; !ok || !(row.Value > 0.1) {
			t.Errorf("normals taken for numbers, %s: %+v", view, row)
		}
		// With y upwards quarter turns have the other direction; flips and half turns do not
		// change.
		if row, ok := got["y-up "+view+" angle"]; !ok || (row.Value > 1) != (view == "turn 90" || view == "turn 270") {
			t.Errorf("normals with y taken upwards, %s: %+v", view, row)
		}
	}
}

// byModel returns rows as byName does, with the model before the transformation.
func byModel(r *study.Result) map[string]scores.Row {
	out := map[string]scores.Row{}
	for _, row := range r.Rows {
		for name, row := range byName(&study.Result{Rows: []scores.Row{row}}) {
			out[row.Model+" "+name] = row
		}
	}
	return out
}

// TestDenseEquivarianceNeedsADecodedOutput checks the errors for a model whose output, 8 logits, is
// no boxes, masks, keypoints or map, with wrong settings of output too.
func TestDenseEquivarianceNeedsADecodedOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", testmodel.Options{})
	text := func(output string) string {
		return `name: none
data: [{name: shapes, shapes: {n: 20, size: 16}}]
models: [{name: net, onnx: net.onnx` + output + `}]
transforms: [{name: turn, rotate: 90}]
measures: [dense-equivariance]
`
	}
	for output, want := range map[string]string{
		"":                          "there is nothing to measure: dense-equivariance: no output of the model is recognised",
		", output: {boxes: yolov8}": "study.yaml:3:47: model ",
		", output: {boxes: yolov8, class-map: labels}": "set one of boxes, class-map, keypoints and values",
		", output: {boxes: yolo}":                      `unknown boxes "yolo"; did you mean "yolov10"?`,
	} {
		s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(text(output)), nil)
		if err == nil {
			_, err = study.NewPlan(t.Context(), s, studytest.Options(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", output, err, want)
		}
	}
}

// writeSquares writes 30 images of red squares into a folder, and their boxes in COCO's format as
// boxes.json, with the category 7.
func writeSquares(t *testing.T, dir string) {
	t.Helper()
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: 30, Size: 32, Kinds: []string{"square"}, Hue: []float64{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	var images, annotations []string
	for i := range shapes.Len() {
		s, err := shapes.At(t.Context(), i, dataset.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		left, top, right, bottom := 32, 32, 0, 0
		img := image.NewRGBA(image.Rect(0, 0, 32, 32))
		for p := range 32 * 32 {
			x, y, at := p%32, p/32, func(c int) uint8 { return uint8(s.Input.Data[c*32*32+p]*255 + 0.5) }
			img.SetRGBA(x, y, color.RGBA{at(0), at(1), at(2), 255})
			if at(0) > 127 {
				left, top, right, bottom = min(left, x), min(top, y), max(right, x+1), max(bottom, y+1)
			}
		}
		name := fmt.Sprintf("%02d.png", i)
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		images = append(images, fmt.Sprintf(`{"id": %d, "file_name": %q, "height": 32, "width": 32}`, i, name))
		annotations = append(annotations, fmt.Sprintf(`{"id": %d, "image_id": %d, "category_id": 7, "bbox": [%d, %d, %d, %d]}`, i+1, i, left, top, right-left, bottom-top))
	}
	text := fmt.Sprintf(`{"images": [%s], "annotations": [%s], "categories": [{"id": 7, "name": "red"}]}`, strings.Join(images, ", "), strings.Join(annotations, ", "))
	if err := os.WriteFile(filepath.Join(dir, "boxes.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A perfect detector has a mean average precision (mAP) of 1, also on flipped images. If the
// category of the boxes is another class of the model, it is 0. clean-map and moved-map are the
// mAP on original and on transformed images. classes lists the model's class for each category.
func TestAccuracyOfADetector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.WriteDetector(t, filepath.Join(dir, "net.onnx"), 32, false)
	writeSquares(t, dir)
	for class, want := range map[string]float64{"0": 1, "2": 0} {
		r := studytest.Run(t, studytest.Parse(t, dir, `name: labelled
data: [{name: squares, coco: {annotations: boxes.json, images: .}, classes: [`+class+`]}]
models: [{name: net, onnx: net.onnx, output: {boxes: suppressed, classes: 3}}]
transforms: [{name: flip, flip: horizontal}, {name: right, translate: {x: 0.5}}]
measures: [dense-accuracy, dense-equivariance]
`), filepath.Join(dir, "run"+class), studytest.Options(t))
		got := byName(r)
		for _, statistic := range []string{"flip clean-map", "flip moved-map", "flip clean-map class=" + class, "right clean-map"} {
			if row, ok := got[statistic]; !ok || math.Abs(row.Value-want) > 1e-6 {
				t.Errorf("class %s: %s is %+v, want %v", class, statistic, row, want)
			}
		}
	}
	_, err := study.Run(t.Context(), studytest.Parse(t, dir, `name: unmatched
data: [{name: squares, coco: {annotations: boxes.json, images: .}}]
models: [{name: net, onnx: net.onnx, output: {boxes: suppressed, classes: 3}}]
measures: [dense-accuracy]
`), filepath.Join(dir, "unmatched"), studytest.Options(t))
	if err == nil || !strings.Contains(err.Error(), "the data have 1 categories, with numbers up to 7, and the model has 3 classes without names: set classes") {
		t.Errorf("categories that do not match: %v", err)
	}
	// A category whose number is that of a class is taken for it, and the run says so.
	boxes := filepath.Join(dir, "boxes.json")
	text, err := os.ReadFile(boxes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(boxes, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`"id": 7, "name"`), []byte(`"id": 2, "name"`)), []byte(`"category_id": 7`), []byte(`"category_id": 2`)), 0o600); err != nil {
		t.Fatal(err)
	}
	for classes, want := range map[string]int{"": 1, ", classes: [2]": 0} {
		var warned []string
		o := studytest.Options(t)
		o.Warn = func(text string) { warned = append(warned, text) }
		studytest.Run(t, studytest.Parse(t, dir, `name: numbers
data: [{name: squares, coco: {annotations: boxes.json, images: .}`+classes+`}]
models: [{name: net, onnx: net.onnx, output: {boxes: suppressed, classes: 3}}]
transforms: [{name: flip, flip: horizontal}]
measures: [dense-accuracy]
`), filepath.Join(dir, "numbers"+fmt.Sprint(want)), o)
		warned = slices.DeleteFunc(warned, func(text string) bool { return !strings.Contains(text, "by number only") })
		if len(warned) != want || want == 1 && !strings.Contains(warned[0], "is taken for class 2") {
			t.Errorf("classes %q: warnings %q, want %d", classes, warned, want)
		}
	}
}
