package study

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
)

// TestContactSheets checks that a run writes one contact sheet for each transformation of the
// input. The image at 180 degrees must equal the rotated original.
func TestContactSheets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	mustRun(t, parseIn(t, dir, studyText+"pictures: 3\n"), out, options(t))
	files, err := filepath.Glob(filepath.Join(out, "pictures", "views", "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%q, %v", files, err)
	}
	sheet := readPNG(t, files[1])
	const sheetGap = 4
	const side = 64 // 16 x 16, enlarged
	if want := image.Rect(0, 0, 3*(side+sheetGap)+sheetGap, 3*(side+sheetGap)+sheetGap); sheet.Bounds() != want {
		t.Fatalf("the sheet is %v, not %v", sheet.Bounds(), want)
	}
	tile := func(column, x, y int) any { return sheet.At(sheetGap+column*(side+sheetGap)+x, sheetGap+y) }
	colours := map[any]bool{}
	for y := range side {
		for x := range side {
			colours[tile(0, x, y)] = true
			if tile(0, x, y) != tile(2, side-1-x, side-1-y) {
				t.Fatalf("the image at 180 degrees differs at %d, %d", x, y)
			}
		}
	}
	if len(colours) < 2 {
		t.Error("the image is blank")
	}
	var caption map[string]any
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, &caption)
	}
	if err != nil || caption["title"] != "quarter of shapes" || caption["caption"] != "Each of 3 lines is an image, from left to right as it is and at 90, 180." {
		t.Errorf("%q, %v", caption, err)
	}
	mustRun(t, parseIn(t, dir, studyText+"pictures: 0\n"), out, options(t)) // sheets stay if a later run does not request them
	if _, err := os.Stat(files[0]); err != nil {
		t.Error(err)
	}
}

// TestModelImages checks that the images beside a model are copied to the run folder, with their
// captions.
func TestModelImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testmodel.Write(t, dir, "small", testmodel.Options{})
	beside := strings.TrimSuffix(path, ".onnx") + ".pictures"
	if err := os.Mkdir(beside, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"layer1.png": "one", "layer1.json": `{"title": "Filters", "caption": "Edges."}`, "layer2.png": "two", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(beside, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "run")
	mustRun(t, parseIn(t, dir, studyText), out, options(t))
	for name, want := range map[string]string{"small-layer1.png": "one", "small-layer1.json": `{"caption":"Edges.","model":"small","title":"Filters"}`,
		"small-layer2.png": "two", "small-layer2.json": `{"model":"small","title":"layer2 of small"}`} {
		got, err := os.ReadFile(filepath.Join(out, "pictures", "models", name))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(beside, "layer1.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), parseIn(t, dir, studyText), filepath.Join(dir, "again"), options(t)); err == nil || !strings.Contains(err.Error(), "caption") {
		t.Errorf("a caption that is cut: %v", err)
	}
}

func readPNG(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
