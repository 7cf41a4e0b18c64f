package study

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
)

// TestContactSheets looks at the sheets of a run: one for each transformation of the input, in which a picture at 180 degrees is the one as
// it is, turned by hand.
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
				t.Fatalf("the picture at 180 degrees differs at %d, %d", x, y)
			}
		}
	}
	if len(colours) < 2 {
		t.Error("the picture is blank")
	}
	var caption map[string]string
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, &caption)
	}
	if err != nil || caption["title"] != "quarter of shapes" || caption["caption"] != "Each of 3 lines is a picture, from left to right as it is and at 90, 180." {
		t.Errorf("%q, %v", caption, err)
	}
	mustRun(t, parseIn(t, dir, studyText), out, options(t)) // what was drawn stays where nobody asks
	if _, err := os.Stat(files[0]); err != nil {
		t.Error(err)
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
