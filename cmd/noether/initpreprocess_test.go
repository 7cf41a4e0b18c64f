package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestGuessPreprocess checks the preprocessing that init writes for models with different inputs:
// "none", a preset (the usual preprocessing of networks for ImageNet or CIFAR-10), or settings.
func TestGuessPreprocess(t *testing.T) {
	t.Parallel()
	// short is the median length of the shorter sides; same: all images have the same size.
	photos := imageSizes{height: 375, width: 500, short: 300}
	squares := func(n int) imageSizes { return imageSizes{height: n, width: n, same: true, short: n} }
	// Networks for ImageNet usually resize to 256 and crop to 224; 329 is 288 in this ratio. 64 is
	// the largest multiple of 32 that the images allow.
	for _, c := range []struct {
		name       string
		typ        onnx.Type
		shape      []int
		normalises bool // the model itself subtracts a mean and divides by a deviation
		sizes      imageSizes
		want       string
	}{
		{"usual input size", onnx.Float, []int{-1, 3, 224, 224}, false, photos, "imagenet"},
		{"larger input", onnx.Float, []int{-1, 3, 288, 288}, false, photos, "{preset: imagenet, resize: 329, crop: 288}"},
		{"not square", onnx.Float, []int{-1, 3, 320, 192}, false, photos, "{preset: imagenet, resize: 320, crop: [320, 192]}"},
		{"images of the input's size", onnx.Float, []int{-1, 3, 224, 224}, false, squares(224), "{preset: imagenet, resize: 224, crop: 224}"},
		{"any input size", onnx.Float, []int{-1, 3, -1, -1}, false, photos, "imagenet"},
		{"any input size, small images", onnx.Float, []int{-1, 3, -1, -1}, false, imageSizes{height: 90, width: 120, short: 70}, "{resize: 64, crop: 64}"},
		{"small input", onnx.Float, []int{-1, 3, 32, 32}, false, squares(32), "cifar10"},
		{"small input, large images", onnx.Float, []int{-1, 3, 32, 32}, false, photos, "{preset: cifar10, resize: 32, crop: 32}"},
		{"bytes, channels last", onnx.Uint8, []int{-1, 320, 320, 3}, false, photos, "{resize: 320, crop: 320}"},
		{"normalisation in the model", onnx.Float, []int{-1, 3, 224, 224}, true, photos, "{resize: 224, crop: 224, range: [0, 255]}"},
		{"grey", onnx.Float, []int{-1, 1, 28, 28}, false, squares(28), "none"},
		{"a line of text", onnx.Float, []int{-1, 3, 48, -1}, false, imageSizes{height: 48, width: 320, same: true, short: 48}, "{crop: [48, 320], mean: 0.5, std: 0.5}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := onnx.NewBuilder(17)
			x, channels := b.Input("x", c.typ, c.shape...), c.shape[1]
			if c.typ == onnx.Uint8 {
				x, channels = b.Transpose(b.Cast(x, onnx.Float), 0, 3, 1, 2), c.shape[3]
			}
			if c.normalises {
				x = b.Div(b.Sub(x, b.Scalar(120)), b.Scalar(60))
			}
			b.Output("y", b.Relu(b.Conv(x, b.Full(0.1, 4, channels, 1, 1), "", nil)))
			path := testmodel.Save(t, t.TempDir()+"/m.onnx", b)
			m, err := modeltest.Open(t, path, model.Options{Size: [2]int{64, 64}})
			if err != nil {
				t.Fatal(err)
			}
			if got := guessPreprocess(m, c.sizes, c.sizes.candidates()[0]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestSizesOf checks that sizesOf returns the size of the first image, and the median of the
// shorter sides, which one small image does not change much.
func TestSizesOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, size := range [][2]int{{400, 300}, {64, 64}, {320, 280}} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.png", i)))
		if err == nil {
			err = errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, size[0], size[1]))), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := dataset.OpenFolder(t.Context(), dataset.FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sizesOf(t.Context(), data); err != nil || got != (imageSizes{height: 300, width: 400, short: 280}) {
		t.Errorf("the sizes are %+v, error %v; want the first size and the median of the shorter sides, 280", got, err)
	}
}

// TestSuggestedPreprocess checks that inspect gives the preprocessing that init writes for the same
// images, and none without images or where the model states its own.
func TestSuggestedPreprocess(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		write(t, dir, fmt.Sprintf("photos/%d.png", i), img(t, 300, i))
	}
	photos := filepath.Join(dir, "photos")
	for side, want := range map[int]any{224: "imagenet", 32: map[string]any{"preset": "cifar10", "resize": 32.0, "crop": 32.0}} {
		b := onnx.NewBuilder(17)
		x := b.Input("x", onnx.Float, -1, 3, side, side)
		b.Output("y", b.Relu(b.Conv(x, b.Full(0.1, 4, 3, 1, 1), "", nil)))
		path := testmodel.Save(t, filepath.Join(dir, fmt.Sprintf("m%d.onnx", side)), b)
		inspected := func(args ...string) any {
			text, err := output(t, append([]string{"inspect", path, "--json"}, args...)...)
			var found inspection
			if err != nil || json.Unmarshal([]byte(text), &found) != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return found.Suggested
		}
		got := inspected("--data", photos)
		text, err := output(t, "init", path, photos)
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(text, "\n    preprocess: ")
		line, _, _ = strings.Cut(line, "\n")
		var written any
		if err := yaml.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprint(got), fmt.Sprint(written); a != b || a != fmt.Sprint(want) {
			t.Errorf("%d pixels: inspect gives %s and init %s, want %v", side, a, b, want)
		}
		if got := inspected(); got != nil {
			t.Errorf("without data: %v, want none", got)
		}
		write(t, dir, "preprocessor_config.json", []byte(`{"do_resize": false, "do_normalize": false, "do_rescale": true}`))
		if got := inspected("--data", photos); got != nil {
			t.Errorf("beside preprocessor_config.json: %v, want none", got)
		}
		if err := os.Remove(filepath.Join(dir, "preprocessor_config.json")); err != nil {
			t.Fatal(err)
		}
	}
}
