package dataset

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePNG writes an image of w x h pixels: a red border around pixels that differ.
func writePNG(t *testing.T, path string, w, h int) {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{uint8(7 * x), uint8(5 * y), 90, 255}
			if x == 0 || y == 0 || x == w-1 || y == h-1 {
				c = color.NRGBA{255, 0, 0, 255}
			}
			img.Set(x, y, c)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

// TestGrouped checks that only samples of the given classes remain, with labels in the order of the
// classes' names.
func TestGrouped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"ant/a.png", "bee/a.png", "bee/b.png", "cow/a.png"} {
		writePNG(t, filepath.Join(dir, name), 6, 6)
	}
	src := must(OpenFolder(t.Context(), FolderOptions{Dir: dir}))
	g, err := Grouped(t.Context(), src, map[string][]int{"cow": {7}, "bee": {3, 9}, "yak": {1}}, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range g.Len() {
		s, err := g.At(t.Context(), i, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Name+"="+g.Classes()[s.Label])
	}
	if text := strings.Join(got, " "); text != "bee/a.png=bee bee/b.png=bee cow/a.png=cow" {
		t.Errorf("the samples are %s", text)
	}
	of := GroupsOf(Shuffle(g, 1))
	if of == nil || !of.Mean || len(of.Outputs) != 2 || of.Largest() != 9 || of.Outputs[1][0] != 7 {
		t.Errorf("the groups are %+v", of)
	}
	if GroupsOf(src) != nil {
		t.Error("a folder has groups")
	}
	other := must(Grouped(t.Context(), src, map[string][]int{"cow": {7}, "bee": {3, 8}, "yak": {1}}, true))
	if other.Fingerprint() == g.Fingerprint() {
		t.Error("other groups have the same fingerprint")
	}
	if _, err := Grouped(t.Context(), src, map[string][]int{"yak": {1}}, false); err == nil || !strings.Contains(err.Error(), "none of the folders of classes (ant, bee, cow)") {
		t.Errorf("without any of the classes: %v", err)
	}
}

// TestTrimmed checks that an image without its border is brought to a frame as the file of the inner
// image is.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePNG(t, filepath.Join(dir, "a.png"), 40, 30)
	writePNG(t, filepath.Join(dir, "small.png"), 4, 9)
	src := must(OpenFolder(t.Context(), FolderOptions{Dir: dir}))
	const border = 2
	trimmed := Trimmed(src, border)
	whole, err := src.At(t.Context(), 0, Frame{})
	if err != nil {
		t.Fatal(err)
	}
	inner := image.NewNRGBA(image.Rect(0, 0, 40-2*border, 30-2*border))
	for y := range 30 - 2*border {
		for x := range 40 - 2*border {
			at := (y+border)*40 + x + border
			inner.Set(x, y, color.NRGBA{uint8(whole.Input.Data[at]*255 + 0.5), uint8(whole.Input.Data[1200+at]*255 + 0.5), uint8(whole.Input.Data[2400+at]*255 + 0.5), 255})
		}
	}
	for _, f := range []Frame{{}, {Resize: 20, Height: 16, Width: 16, Channels: 3}, {Height: 8, Width: 8, Channels: 1, Interpolation: "bicubic"}} {
		got, err := trimmed.At(t.Context(), 0, f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.Image(inner)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Input.Data) != len(want.Data) {
			t.Fatalf("%+v: the shape is %v, want %v", f, got.Input.Shape, want.Shape)
		}
		for i, v := range want.Data {
			if got.Input.Data[i] != v {
				t.Fatalf("%+v: value %d is %v, want %v", f, i, got.Input.Data[i], v)
			}
		}
	}
	if _, err := trimmed.At(t.Context(), 1, Frame{}); err == nil || !strings.Contains(err.Error(), "no larger than its border") {
		t.Errorf("an image of 4 pixels: %v", err)
	}
}
