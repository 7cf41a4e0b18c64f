package run_test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/onnx"
)

// writeRegions writes 12 images of 24 x 16 pixels into images/ with a red and a green rectangle,
// and a row of blue pixels. The regions go to regions.json in COCO's format: polygons of the
// rectangles, and the right quarter of the image as a group (iscrowd) of blue objects, in
// run-length encoding. The same masks go as PNG files to masks/, with 1 for red, 2 for green and
// 255 (no class) for the group.
func writeRegions(t *testing.T, dir string) {
	t.Helper()
	const h, w = 16, 24
	save := func(name string, img image.Image) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = png.Encode(f, img)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"images", "masks"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var images, annotations []string
	for i := range 12 {
		img, mask := image.NewRGBA(image.Rect(0, 0, w, h)), image.NewGray(image.Rect(0, 0, w, h))
		for p := range h * w {
			img.SetRGBA(p%w, p/w, color.RGBA{A: 255})
		}
		annotate := func(category, crowd int, segmentation string) {
			annotations = append(annotations, fmt.Sprintf(`{"id": %d, "image_id": %d, "category_id": %d, "iscrowd": %d, "segmentation": %s}`, len(annotations)+1, i, category, crowd, segmentation))
		}
		for k, r := range []image.Rectangle{image.Rect(i%5, 1, i%5+5, 5+i%3), image.Rect(9, i%4, 9+3+i%3, 12)} {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					img.SetRGBA(x, y, [...]color.RGBA{{R: 255, A: 255}, {G: 255, A: 255}}[k])
					mask.SetGray(x, y, color.Gray{uint8(k + 1)})
				}
			}
			annotate(10*(k+1), 0, fmt.Sprintf("[[%d, %d, %[3]d, %[2]d, %[3]d, %[4]d, %[1]d, %[4]d]]", r.Min.X, r.Min.Y, r.Max.X, r.Max.Y))
		}
		for x := 18; x < w; x++ {
			for y := range h {
				mask.SetGray(x, y, color.Gray{255})
			}
			img.SetRGBA(x, x-i, color.RGBA{B: 255, A: 255})
		}
		annotate(30, 1, fmt.Sprintf(`{"size": [%d, %d], "counts": [%d, %d]}`, h, w, 18*h, 6*h))
		name := fmt.Sprintf("%02d.png", i)
		save("images/"+name, img)
		save("masks/"+name, mask)
		images = append(images, fmt.Sprintf(`{"id": %d, "file_name": %q, "height": %d, "width": %d}`, i, name, h, w))
	}
	text := fmt.Sprintf(`{"images": [%s], "annotations": [%s], "categories": [{"id": 10, "name": "red"}, {"id": 20, "name": "green"}, {"id": 30, "name": "blue"}]}`, strings.Join(images, ", "), strings.Join(annotations, ", "))
	if err := os.WriteFile(filepath.Join(dir, "regions.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A segmenter that classifies each pixel by its colour has the same scores on COCO's regions as on
// the same masks in PNG files. It is correct, except for objects of a category that the study
// leaves out. Of coco data, masks lists the categories that are used, and classes is the class of
// the model for each of them; the data named exchanged have red and green exchanged. clean-miou and
// moved-miou are the mean IoU on original and on transformed images, or the IoU of one class.
func TestSegmenterOnCOCO(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeRegions(t, dir)
	saveGraph(t, filepath.Join(dir, "net.onnx"), func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, -1, 3, 16, 24) // classes: 0 background, 1 red, 2 green, 3 blue
		background := b.Add(b.Mul(b.ReduceMax(x, true, 1), b.Scalar(0)), b.Scalar(0.25))
		b.OutputInfo(onnx.ValueInfo{Name: "out", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1, Symbol: "batch"}, {Size: 4}, {Size: 16}, {Size: 24}}}, b.Concat(1, background, x))
	})
	r := studytest.Run(t, studytest.Parse(t, dir, `name: coco
data:
  - {name: regions, coco: {annotations: regions.json, images: images, masks: true}}
  - {name: files, images: {folder: images, masks: masks}}
  - {name: listed, coco: {annotations: regions.json, images: images, masks: [green, 10]}, classes: [2, 1]}
  - {name: exchanged, coco: {annotations: regions.json, images: images, masks: [green, red]}, classes: [1, 2]}
  - {name: red, coco: {annotations: regions.json, images: images, masks: [red]}, classes: [1]}
models: [{name: net, onnx: net.onnx}]
transforms: [{name: flip, flip: horizontal}, {name: shift, translate: {x: 0.125}}]
measures: [dense-accuracy, dense-equivariance]
`), filepath.Join(dir, "run"), studytest.Options(t))
	got := map[string]float64{}
	for _, row := range r.Rows {
		got[strings.Join([]string{row.Data, row.Transform, row.Statistic, row.Factor}, " ")] = row.Value
	}
	for _, want := range []struct {
		name      string // data, transform, statistic and factor
		low, high float64
	}{
		{"regions flip clean-miou ", 1, 1}, {"regions flip moved-miou ", 1, 1}, {"regions shift moved-miou ", 1, 1},
		{"regions flip clean-miou class=0", 1, 1}, {"regions flip clean-miou class=2", 1, 1},
		{"files flip clean-miou ", 1, 1}, {"files shift moved-miou ", 1, 1},
		{"listed flip clean-miou class=1", 1, 1}, {"listed flip clean-miou class=2", 1, 1},
		{"exchanged flip clean-miou class=1", 0, 0}, {"exchanged flip clean-miou class=2", 0, 0},
		// Without the other categories, what the model calls green or blue is background in the
		// data.
		{"red flip clean-miou class=1", 1, 1}, {"red flip clean-miou class=0", 0.5, 0.95},
	} {
		if v, ok := got[want.name]; !ok || v < want.low || v > want.high {
			t.Errorf("%s is %v, want %v to %v", want.name, v, want.low, want.high)
		}
	}
	compared := 0
	for name, v := range got {
		if other, ok := got["files"+strings.TrimPrefix(name, "regions")]; ok && strings.HasPrefix(name, "regions") {
			compared++
			if v != other && (v == v || other == other) {
				t.Errorf("%s is %v, and %v of the masks in files", name, v, other)
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d scores are compared with those of the masks in files", compared)
	}
	for keys, want := range map[string]string{
		"masks: [green]}":                   "the data have 1 categories, with numbers up to 20, and a background, and the model has 4 classes without names: set classes to the class of each category",
		"masks: [green]}, classes: [4]":     "classes: 4 is not a class of the model, which has 4",
		"masks: [violet]}":                  `"violet" is neither the name nor the id of a category; there are red, green, blue`,
		"masks: red}":                       "masks is true, or a list of categories, such as [person, car]",
		"masks: []}":                        "masks is true, or a list of categories",
		"masks: false}, classes: [0, 1, 2]": "bbox is []", // without masks boxes are read, which are missing
	} {
		s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(`name: bad
data: [{name: regions, coco: {annotations: regions.json, images: images, `+keys+`}]
models: [{name: net, onnx: net.onnx}]
measures: [dense-accuracy]
`), nil)
		if err == nil {
			_, err = study.Run(t.Context(), s, filepath.Join(dir, "bad"), studytest.Options(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", keys, err, want)
		}
	}
}
