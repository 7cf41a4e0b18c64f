package dataset

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeImage writes a PNG file.
func writeImage(t testing.TB, path string, img image.Image) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

// writeText writes a text file and returns its path.
func writeText(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cocoText has two images of 40 x 20: b.png with a dog and a group of cars ("iscrowd"), and a.png
// without objects.
const cocoText = `{"info": {"year": 2017}, "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 3, "name": "car"}],
 "images": [{"id": 9, "file_name": "b.png", "height": 20, "width": 40}, {"id": 4, "file_name": "a.png", "height": 20, "width": 40}],
 "annotations": [{"id": 1, "image_id": 9, "category_id": 18, "bbox": [10, 5, 20, 10], "area": 120.5, "iscrowd": 0, "segmentation": [[1, 2, 3, 4, 5, 6]]},
  {"id": 2, "image_id": 9, "category_id": 3, "bbox": [0, 0, 4, 2], "iscrowd": 1}]}`

// cocoFolder returns a folder with the two images of cocoText.
func cocoFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png"} {
		writeImage(t, filepath.Join(dir, name), image.NewGray(image.Rect(0, 0, 40, 20)))
	}
	return dir
}

// TestCOCO checks boxes and classes in the frame of a model: the part of the image that it gets.
// The classes are 0 (car) and 1 (dog), in order of their ids.
func TestCOCO(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), cocoFolder(t)
	c, err := OpenCOCO(ctx, COCOOptions{Annotations: writeText(t, filepath.Join(dir, "labels.json"), cocoText), Images: dir})
	if err != nil {
		t.Fatal(err)
	}
	classes, ok := TruthClasses(c)
	if want := []TruthClass{{3, "car"}, {18, "dog"}}; !ok || !slices.Equal(classes, want) {
		t.Errorf("classes %v, want %v", classes, want)
	}
	if c.Len() != 2 || c.Classes() != nil {
		t.Errorf("%d images with classes %v, want 2 without classes of whole images", c.Len(), c.Classes())
	}
	empty, err := c.At(ctx, 0, Frame{}) // its Truth is its annotation
	if err != nil || empty.Name != "a.png" || empty.Truth == nil || len(empty.Truth.Objects) != 0 {
		t.Errorf("the first sample is %+v, error %v; want a.png without objects", empty, err)
	}
	for name, f := range map[string]struct {
		frame Frame
		want  Object
		area  float64 // pixels of the stored image that the frame shows
	}{
		"unchanged": {Frame{}, Object{Left: 0.25, Top: 0.25, Right: 0.75, Bottom: 0.75, Area: 120.5, Class: 1}, 800},
		"stretched": {Frame{Height: 30, Width: 30}, Object{Left: 0.25, Top: 0.25, Right: 0.75, Bottom: 0.75, Area: 120.5, Class: 1}, 800},
		// The middle square of 20 x 20 pixels.
		"cropped": {Frame{Resize: 10, Height: 10, Width: 10}, Object{Left: 0, Top: 0.25, Right: 1, Bottom: 0.75, Area: 120.5, Class: 1}, 400},
	} {
		s, err := c.At(ctx, 1, f.frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Truth.Objects[0]; got != f.want || math.Abs(s.Truth.Area-f.area) > 1e-9 {
			t.Errorf("%s: %+v of %v, want %+v of %v", name, got, s.Truth.Area, f.want, f.area)
		}
		if crowd := s.Truth.Objects[1]; !crowd.Crowd || crowd.Area != 8 || crowd.Class != 0 {
			t.Errorf("%s: the group of cars is %+v, want a crowd with area 8 and class 0", name, crowd)
		}
	}
	// The fingerprint is a hash of the images and annotations.
	other, err := OpenCOCO(ctx, COCOOptions{Annotations: writeText(t, filepath.Join(dir, "other.json"), strings.Replace(cocoText, "120.5", "121", 1)), Images: dir})
	if err != nil || other.Fingerprint() == c.Fingerprint() {
		t.Errorf("a file with another area has the same fingerprint, or error %v", err)
	}
	if sub, ok := TruthClasses(Limit(c, 1)); !ok || len(sub) != 2 {
		t.Errorf("classes of the first image alone: %v, want two", sub)
	}
}

// TestBadCOCO checks that each mistake in the annotation file gives an error of one line.
func TestBadCOCO(t *testing.T) {
	t.Parallel()
	dir := cocoFolder(t)
	replace := func(old, text string) string {
		if !strings.Contains(cocoText, old) {
			t.Fatalf("the text has no %q", old)
		}
		return strings.Replace(cocoText, old, text, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "it is truncated, or empty"},
		"a list":          {"[]", "it is not a JSON object with images, annotations and categories"},
		"truncated":       {cocoText[:300], "it is truncated, or empty"},
		"stray character": {replace(`"images": [`, `"images": [?`), "invalid character"},
		"no categories":   {replace("categories", "classes"), "it has no categories"},
		"not a list":      {replace(`"info": {"year": 2017}`, `"annotations": 3`), "annotations is not a list"},
		"images twice":    {replace(`"info"`, `"images"`), "images is not a list"},
		"no image":        {replace(`"image_id": 9`, `"image_id": 7`), "annotations[0] (id 1): no image has the id 7"},
		"no category":     {replace(`"category_id": 3`, `"category_id": 4`), "annotations[1] (id 2): no category has the id 4"},
		"no image_id":     {replace(`"image_id": 9, `, ``), "annotations[0] (id 1): it lacks image_id or category_id"},
		"three numbers":   {replace("[0, 0, 4, 2]", "[0, 0, 4]"), "annotations[1] (id 2): bbox is [0 0 4], not [left, top, width, height] in pixels"},
		"negative width":  {replace("[0, 0, 4, 2]", "[0, 0, -4, 2]"), "bbox is [0 0 -4 2]"},
		"NaN":             {replace("[0, 0, 4, 2]", "[NaN, 0, 4, 2]"), "null is not a finite number"},
		"text as a box":   {replace("[0, 0, 4, 2]", `"box"`), "annotations[1]: bbox is a string"},
		"two images":      {replace(`"id": 4`, `"id": 9`), "two images have the id 9"},
		"two categories":  {replace(`"id": 3,`, `"id": 18,`), "two categories have the id 18"},
		"missing image":   {replace("a.png", "c.png"), "image c.png in " + dir + ": "},
		"outside":         {replace("a.png", "../a.png"), "images[1]: ../a.png is outside of the folder"},
		"no size":         {replace(`"height": 20, "width": 40}, {`, `"width": 40}, {`), "images[0] (b.png) has height 0 and width 40"},
		"no images":       {`{"images": [], "annotations": [], "categories": []}`, "it has no images"},
		"huge number":     {replace("120.5", "1e999"), "annotations[0]: "},
	} {
		_, err := OpenCOCO(context.Background(), COCOOptions{Annotations: writeText(t, filepath.Join(t.TempDir(), "labels.json"), c.text), Images: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	c, err := OpenCOCO(context.Background(), COCOOptions{Annotations: writeText(t, filepath.Join(dir, "labels.json"), replace(`"height": 20, "width": 40}]`, `"height": 21, "width": 40}]`)), Images: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.At(context.Background(), 0, Frame{}); err == nil || !strings.Contains(err.Error(), "a.png: the image has 40 x 20 pixels, and the annotations say 40 x 21") {
		t.Errorf("an image of another size: error %v", err)
	}
}

// TestCOCOWithNaN checks that NaN and infinity, which Python writes, in values that are not used or
// may be missing are read, and that regions after them are found in the file.
func TestCOCOWithNaN(t *testing.T) {
	t.Parallel()
	dir := cocoFolder(t)
	text := `{"info": {"score": NaN, "note": "NaN \" -Infinity"}, "images": [{"id": 1, "file_name": "a.png", "height": 20, "width": 40, "gps": [Infinity, -Infinity]}],
		"categories": [{"id": 3, "name": "a"}], "annotations": [
		{"id": 1, "image_id": 1, "category_id": 3, "area": NaN, "bbox": [1, 2, 3, 4], "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]]},
		{"id": 2, "image_id": 1, "category_id": 3, "weight": -Infinity, "bbox": [1, 2, 5, 6], "segmentation": [[10, 10, 14, 10, 14, 14, 10, 14]]}]}`
	for _, masks := range []bool{false, true} {
		c, err := OpenCOCO(t.Context(), COCOOptions{Annotations: writeText(t, filepath.Join(dir, "nan.json"), text), Images: dir, Masks: masks})
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.At(t.Context(), 0, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		if masks {
			if m := s.Truth.Mask; m.Data[40+1] != 1 || m.Data[12*40+12] != 1 || m.Data[8*40+8] != 0 {
				t.Errorf("the mask has %v, %v and %v in the two regions and between; want 1, 1 and 0", m.Data[40+1], m.Data[12*40+12], m.Data[8*40+8])
			}
		} else if o := s.Truth.Objects; len(o) != 2 || o[0].Area != 12 || o[1].Area != 30 {
			t.Errorf("the objects are %+v, want areas of 12 and 30", o)
		}
	}
}

// TestManyBoxes checks that more than a million boxes of one image are read.
func TestManyBoxes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("parses a text of 48 MB, which -short leaves out")
	}
	var text strings.Builder
	text.WriteString(`{"categories": [{"id": 1, "name": "a"}], "images": [{"id": 1, "file_name": "a.png", "height": 20, "width": 40}], "annotations": [`)
	const n = 1_000_001
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(`{"image_id":1,"category_id":1,"bbox":[1,2,3,4]}`)
	}
	text.WriteString("]}")
	parsed, err := parseCOCO(strings.NewReader(text.String()), false) // false: boxes, not masks
	if err != nil || len(parsed.annotations) != n {
		t.Fatalf("not all annotations are read, error %v", err)
	}
	c := &COCO{fileList: fileList{dir: cocoFolder(t)}}
	if err := c.fill(parsed); err != nil || len(c.images[0].objects) != n {
		t.Errorf("the image has %d objects, want %d: %v", len(c.images[0].objects), n, err)
	}
}

// FuzzCOCO checks that any text gives images that each have a file, or an error of one line.
func FuzzCOCO(f *testing.F) {
	f.Add(cocoText)
	f.Add(`{"images": [{"id": 1, "file_name": "a.png", "height": 1, "width": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1e308, 1e308]}], "categories": [{"id": 1}]}`)
	f.Add(`{"images": null, "annotations": {}, "categories": [[]]}`)
	dir := cocoFolder(f)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseCOCO(strings.NewReader(text), false)
		if err == nil {
			c := &COCO{fileList: fileList{dir: dir}}
			if err = c.fill(parsed); err == nil && (c.Len() == 0 || len(c.files) != c.Len()) {
				t.Errorf("%d images of %d files", c.Len(), len(c.files))
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
	})
}

// TestMasks checks class masks: images with a class for each pixel, as a grey value (a.png) or as
// an index into a palette (b.png). The class is -1 where the mask has the value Ignore, and in the
// part of a frame outside the image.
func TestMasks(t *testing.T) {
	t.Parallel()
	ctx, images, masks := context.Background(), cocoFolder(t), t.TempDir()
	folder, err := OpenFolder(ctx, FolderOptions{Dir: images})
	if err != nil {
		t.Fatal(err)
	}
	grey := image.NewGray(image.Rect(0, 0, 40, 20))
	palette := image.NewPaletted(image.Rect(0, 0, 40, 20), color.Palette{color.Black, color.White, color.Gray{9}})
	for x := range 40 {
		for y := range 20 {
			grey.SetGray(x, y, color.Gray{uint8(x / 10)})
			palette.SetColorIndex(x, y, uint8(x/20))
		}
	}
	grey.SetGray(39, 19, color.Gray{255})
	writeImage(t, filepath.Join(masks, "a.png"), grey)
	writeImage(t, filepath.Join(masks, "b.png"), palette)
	src, err := WithMasks(ctx, folder, MasksOptions{Dir: masks, Ignore: 255})
	if err != nil {
		t.Fatal(err)
	}
	if classes, ok := TruthClasses(src); !ok || classes != nil {
		t.Errorf("classes %v, %v; want masks without names of classes", classes, ok)
	}
	if src.Fingerprint() == folder.Fingerprint() {
		t.Error("masks do not change the fingerprint")
	}
	for _, c := range []struct {
		i     int
		frame Frame
		want  string
	}{
		{0, Frame{Height: 2, Width: 4}, "[0 1 2 3 0 1 2 3]"},
		{1, Frame{Height: 2, Width: 4}, "[0 0 1 1 0 0 1 1]"},
		{1, Frame{Resize: 2, Height: 2, Width: 2}, "[0 1 0 1]"},
		{1, Frame{Resize: 2, Height: 2, Width: 6}, "[-1 0 0 1 1 -1 -1 0 0 1 1 -1]"},
	} {
		s, err := src.At(ctx, c.i, c.frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.Truth.Mask.Data); got != c.want {
			t.Errorf("mask %d in %+v: %s, want %s", c.i, c.frame, got, c.want)
		}
	}
	s, err := src.At(ctx, 0, Frame{})
	// Of 40 * 20 pixels.
	if err != nil || s.Truth.Mask.Data[799] != -1 || s.Truth.Mask.Data[798] != 3 {
		t.Errorf("the last two pixels are not class 3 and -1 (ignored); error %v", err)
	}
	writeImage(t, filepath.Join(masks, "a.png"), image.NewGray(image.Rect(0, 0, 41, 20)))
	writeImage(t, filepath.Join(masks, "b.png"), image.NewRGBA(image.Rect(0, 0, 40, 20)))
	if src, err = WithMasks(ctx, folder, MasksOptions{Dir: masks, Ignore: 255}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a.png: mask a.png: it has 41 x 20 pixels and the image 40 x 20: a mask has the size of its image", "b.png: mask b.png: its pixels are of the kind colour"} {
		if _, err := src.At(ctx, i, Frame{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := os.Remove(filepath.Join(masks, "a.png")); err != nil {
		t.Fatal(err)
	}
	if _, err := WithMasks(ctx, folder, MasksOptions{Dir: masks}); err == nil || !strings.Contains(err.Error(), "the mask of a.png") {
		t.Errorf("a missing mask: %v", err)
	}
}
