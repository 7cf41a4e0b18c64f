package run_test

import (
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
)

// TestRPCOfADetector runs a detector on COCO-C: on images of squares, which it finds exactly, and on
// these under corruptions. mPC is the mean of the mAP of all corruptions and severities, and rPC its
// fraction of the clean mAP, as imagecorruptions defines them.
func TestRPCOfADetector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.WriteDetector(t, filepath.Join(dir, "net.onnx"), 32, false)
	writeSquares(t, dir)
	r := studytest.Run(t, studytest.Parse(t, dir, `name: coco-c
data:
  - name: squares
    benchmark: {name: coco-c, annotations: boxes.json, clean: ., kinds: [gaussian-noise, contrast, brightness, pixelate], severities: [1, 3, 5]}
    classes: ["0"]
models: [{name: net, onnx: net.onnx, output: {boxes: suppressed, classes: 3}}]
measures: [dense-accuracy]
`), filepath.Join(dir, "run"), studytest.Options(t))
	precision := map[string]float64{} // by data set
	for _, row := range r.Rows {
		if row.Statistic == "clean-map" && row.Factor == "" && row.Variant == "" {
			precision[row.Data] = row.Value
		}
	}
	if len(precision) != 1+4*3 || precision["squares/clean"] != 1 {
		t.Fatalf("the mAP is %v", precision)
	}
	var mean float64
	for _, kind := range []string{"gaussian-noise", "contrast", "brightness", "pixelate"} {
		var of []float64
		for _, severity := range []int{1, 3, 5} {
			of = append(of, precision[fmt.Sprintf("squares/%s-%d", kind, severity)])
			mean += of[len(of)-1] / 12
		}
		if of[0] < of[2]-0.05 {
			t.Errorf("%s: the mAP rises with the severity: %v", kind, of)
		}
	}
	found, err := scores.Benchmarks(r.Rows, r.Record)
	if err != nil {
		t.Fatal(err)
	}
	for statistic, want := range map[string]float64{"mpc": mean, "rpc": mean, "clean-precision": 1} {
		i := slices.IndexFunc(found, func(s scores.BenchmarkScore) bool { return s.Statistic == statistic })
		if i < 0 || math.Abs(found[i].Value-want) > 1e-12 || !found[i].Own && statistic != "clean-precision" {
			t.Errorf("%s is %+v, want %v", statistic, found, want)
		}
	}
	if mean < 0.05 || mean > 0.95 {
		t.Errorf("mPC is %v: the corruptions do not matter, or nothing is found", mean)
	}
}

// writeSequence writes an animated GIF of frames of size x size pixels, each of one of the colours
// r, g and b.
func writeSequence(t *testing.T, path string, size int, colours string) {
	t.Helper()
	palette := color.Palette{color.RGBA{200, 20, 20, 255}, color.RGBA{20, 200, 20, 255}, color.RGBA{20, 20, 200, 255}}
	var g gif.GIF
	for _, c := range colours {
		img := image.NewPaletted(image.Rect(0, 0, size, size), palette)
		for i := range img.Pix {
			img.Pix[i] = map[rune]uint8{'r': 0, 'g': 1, 'b': 2}[c]
		}
		g.Image, g.Delay = append(g.Image, img), append(g.Delay, 4)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gif.EncodeAll(f, &g); err != nil {
		t.Fatal(err)
	}
}

// TestFlipRate measures sequences of colours by a model whose classes are red, green and blue. In the
// first one, two of four frames differ from the one before and two from the first; in the second,
// three and three of four.
func TestFlipRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveGraph(t, filepath.Join(dir, "net.onnx"), func(b *onnx.Builder) {
		b.Output("logits", b.Mul(b.ReduceMean(b.Input("x", onnx.Float, -1, 3, 8, 8), false, 2, 3), b.Scalar(9)))
	})
	writeSequence(t, filepath.Join(dir, "clips", "a.gif"), 8, "rrggr")
	writeSequence(t, filepath.Join(dir, "clips", "b.gif"), 8, "rgbbr")
	r := studytest.Run(t, studytest.Parse(t, dir, `name: flips
data: [{name: clips, sequences: clips}, {name: shapes, shapes: {n: 4, size: 8}}]
models: [{name: net, onnx: net.onnx, preprocess: none}]
measures: [flip-rate]
`), filepath.Join(dir, "run"), studytest.Options(t))
	got := map[string]scores.Row{}
	for _, row := range r.Rows {
		got[row.Data+" "+row.Statistic] = row
	}
	if len(got) != 4 || len(r.Record.Skipped) != 1 {
		t.Errorf("scores %v, skipped %v: want four of the clips, and the shapes skipped", got, r.Record.Skipped)
	}
	// The distances of red and green are 2, of green and blue and of blue and red as well: the third
	// class stays third, or they rotate. Ties of the two weaker colours are in the order of classes.
	for statistic, want := range map[string]float64{"flip-rate": (0.5 + 0.75) / 2, "flip-rate-first": (0.5 + 0.75) / 2} {
		if row := got["clips "+statistic]; math.Abs(row.Value-want) > 1e-12 || row.N != 2 || !(row.Null > 0) {
			t.Errorf("%s is %+v, want %v", statistic, row, want)
		}
	}
	if d := got["clips top-5-distance"].Value; d < 1 || d > 4 {
		t.Errorf("the top-5 distance is %v", d)
	}
}
