package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// inside returns a region of an image of h x w as COCO's run lengths: down the columns, the numbers
// of pixels that are in turn outside and inside the region. area is the number of pixels inside.
func inside(r cocoRegion, h, w int) (runs []int, area int) {
	m := newRegionMask(h, w)
	m.add(r, 1)
	previous, n := float32(0), 0
	for p := range h * w {
		v := m.classes[p%h*w+p/h]
		if v != previous {
			runs, previous, n = append(runs, n), v, 0
		}
		n++
		area += int(v)
	}
	return append(runs, n), area
}

// TestRegionsMatchPycocotools compares the regions (the pixels of objects) with those of
// pycocotools, which testdata/coco_masks.py wrote: masks of single polygons (Polygons) and run
// lengths (Runs), and maps of the class of each pixel (Maps).
func TestRegionsMatchPycocotools(t *testing.T) {
	t.Parallel()
	var golden struct {
		Polygons []struct {
			Name          string
			Height, Width int
			Segmentation  json.RawMessage
			Runs          []int
			Area          int
		}
		Runs []struct {
			Name       string
			Size       []int
			Counts     []int
			Compressed string
			Area       int
		}
		Maps []struct {
			Height, Width int
			Objects       []struct {
				Segmentation json.RawMessage
				Class        int
				Crowd        bool
			}
			Classes []float32
		}
	}
	text, err := os.ReadFile("testdata/coco_masks.json")
	if err == nil {
		err = json.Unmarshal(text, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Polygons {
		r, err := parseRegion(c.Segmentation)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if runs, area := inside(r, c.Height, c.Width); !slices.Equal(runs, c.Runs) || area != c.Area {
			t.Errorf("%s: %s in %d x %d has the runs %v, want %v", c.Name, c.Segmentation, c.Height, c.Width, runs, c.Runs)
		}
	}
	for _, c := range golden.Runs {
		size, _ := json.Marshal(c.Size)
		counts, _ := json.Marshal(c.Counts)
		compressed, _ := json.Marshal(c.Compressed)
		for _, counts := range [][]byte{counts, compressed} {
			r, err := parseRegion(fmt.Appendf(nil, `{"size": %s, "counts": %s}`, size, counts))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if runs, area := inside(r, c.Size[0], c.Size[1]); !slices.Equal(runs, c.Counts) || area != c.Area {
				t.Errorf("%s: the runs %v of %s, want %v", c.Name, runs, counts, c.Counts)
			}
		}
	}
	for i, c := range golden.Maps {
		for range 2 { // the order does not matter
			slices.Reverse(c.Objects)
			m := newRegionMask(c.Height, c.Width)
			for _, o := range c.Objects {
				r, err := parseRegion(o.Segmentation)
				if err != nil {
					t.Fatal(err)
				}
				if o.Crowd { // pixels of a group of objects have the class -1: they are ignored
					o.Class = -1
				}
				m.add(r, o.Class)
			}
			if !slices.Equal(m.classes, c.Classes) {
				t.Errorf("map %d: classes %v, want %v", i, m.classes, c.Classes)
			}
		}
	}
	if len(golden.Polygons) < 70 || len(golden.Runs) < 8 || len(golden.Maps) < 6 {
		t.Error("golden values are missing")
	}
}

// masksText has two images, 40 pixels wide and 20 high: b.png with a dog, a car that overlaps it,
// and a group of cars in the last five columns (100 pixels after 700); a.png without objects.
const masksText = `{"categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
 "images": [{"id": 9, "file_name": "b.png", "height": 20, "width": 40}, {"id": 4, "file_name": "a.png", "height": 20, "width": 40}],
 "annotations": [{"id": 1, "image_id": 9, "category_id": 18, "segmentation": [[0, 0, 10, 0, 10, 20, 0, 20]]} ,
  {"id": 2, "image_id": 9, "category_id": 3, "segmentation": [[5, 0, 20, 0, 20, 20, 5, 20], [30, 0, 35, 0, 35, 20, 30, 20]]},
  {"id": 3, "image_id": 9, "category_id": 3, "iscrowd": 1, "segmentation": {"size": [20, 40], "counts": [700, 100]}}]}`

// openMasks opens the images of masksText, which cocoFolder writes, with the masks of an annotation
// file, text. No categories means all.
func openMasks(t testing.TB, text string, categories ...string) (*COCO, error) {
	t.Helper()
	dir := cocoFolder(t)
	return OpenCOCO(context.Background(), COCOOptions{Annotations: writeText(t, filepath.Join(dir, "masks.json"), text), Images: dir, Masks: true, Categories: categories})
}

// TestCOCOMasks checks masks after a resize and a crop (Frame), the names of their classes, and
// that the fingerprint (a hash) of the data depends on the categories and the regions.
func TestCOCOMasks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	fingerprints := map[string]bool{}
	for _, c := range []struct {
		categories []string
		names      []string
		frame      Frame
		want       string // each row of b.png's mask: indices into names; -1: no class
	}{
		{nil, []string{"background", "car", "dog"}, Frame{Height: 4, Width: 8}, "[2 -1 1 1 0 0 1 -1]"},
		{[]string{"dog", "3"}, []string{"background", "dog", "car"}, Frame{Height: 4, Width: 8}, "[1 -1 2 2 0 0 2 -1]"},
		{[]string{"dog"}, []string{"background", "dog"}, Frame{Height: 4, Width: 8}, "[1 1 0 0 0 0 0 0]"},
		{[]string{"car"}, []string{"background", "car"}, Frame{Resize: 4, Height: 4, Width: 10}, "[-1 0 1 1 1 0 0 1 -1 -1]"},
	} {
		src, err := openMasks(t, masksText, c.categories...)
		if err != nil {
			t.Fatal(err)
		}
		fingerprints[src.Fingerprint()] = true
		var names []string
		classes, ok := TruthClasses(src)
		for _, k := range classes {
			names = append(names, k.Name)
		}
		if !ok || !slices.Equal(names, c.names) || !slices.Equal(MaskClasses(Limit(src, 1)), c.names) {
			t.Errorf("%v: classes %v, of masks %v, want %v", c.categories, names, MaskClasses(src), c.names)
		}
		s, err := src.At(ctx, 1, c.frame)
		if err != nil {
			t.Fatal(err)
		}
		w := c.frame.Width
		for y := range 4 {
			if got := fmt.Sprint(s.Truth.Mask.Data[y*w : (y+1)*w]); got != c.want {
				t.Errorf("%v: row %d is %s, want %s", c.categories, y, got, c.want)
			}
		}
		empty, err := src.At(ctx, 0, Frame{})
		if err != nil || !slices.Equal(empty.Truth.Mask.Data, tensor.New(20, 40).Data) || empty.Truth.Objects != nil {
			t.Errorf("the image without objects: %+v, %v", empty.Truth, err)
		}
	}
	for old, text := range map[string]string{"35, 20, 30": "35, 19, 30", "[700, 100]": "[700, 99, 1]", `"iscrowd": 1`: `"iscrowd": 0`} {
		src, err := openMasks(t, strings.Replace(masksText, old, text, 1))
		if err != nil {
			t.Fatal(err)
		}
		fingerprints[src.Fingerprint()] = true
	}
	// cocoText, another annotation file, is opened without Masks.
	boxes, err := OpenCOCO(ctx, COCOOptions{Annotations: writeText(t, filepath.Join(t.TempDir(), "labels.json"), cocoText), Images: cocoFolder(t)})
	if err != nil || MaskClasses(boxes) != nil {
		t.Errorf("data with boxes only: classes of masks %v, error %v; want none", MaskClasses(boxes), err)
	}
	if len(fingerprints) != 4+3 { // 4 cases and 3 changed texts
		t.Errorf("%d different fingerprints, want 7", len(fingerprints))
	}
}

// Regions are read from the annotation file whenever an image is read. A file that has changed
// since it was opened is an error.
func TestChangedCOCOMaskFile(t *testing.T) {
	t.Parallel()
	src, err := openMasks(t, masksText)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"shorter": masksText[:400], "another polygon": strings.Replace(masksText, "[[5, 0", "[[6, 0", 1), "invalid JSON": strings.Replace(masksText, "[[5, 0", "[[5; 0", 1)} {
		writeText(t, src.options.Annotations, text)
		var bad *BadSample // the error of a single image, which this is not
		if _, err := src.At(t.Context(), 1, Frame{}); err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), "masks.json: they changed while they were in use: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	writeText(t, src.options.Annotations, masksText)
	if _, err := src.At(t.Context(), 1, Frame{}); err != nil {
		t.Error(err)
	}
}

// TestBadCOCOMasks replaces a part of masksText, old, by an invalid text. Text instead of a list of
// counts is COCO's compressed form of run lengths.
func TestBadCOCOMasks(t *testing.T) {
	t.Parallel()
	polygon, runs := "[[0, 0, 10, 0, 10, 20, 0, 20]]", `{"size": [20, 40], "counts": [700, 100]}`
	for name, c := range map[string]struct{ old, text, want string }{
		"odd number of values":      {polygon, "[[0, 0, 10, 0, 10, 20, 0]]", "annotations[0] (id 1): a polygon of segmentation has 7 numbers: x and y of at least 3 points are needed"},
		"two points":                {polygon, "[[0, 0, 10, 0]]", "annotations[0] (id 1): a polygon of segmentation has 4 numbers"},
		"empty polygon":             {polygon, "[[0, 0, 10, 0, 10, 20], []]", "has 0 numbers"},
		"NaN":                       {polygon, "[[NaN, 0, 10, 0, 10, 20]]", "segmentation has null instead of a number"},
		"infinite number":           {polygon, "[[1e999, 0, 10, 0, 10, 20]]", "annotations[0] (id 1): segmentation is neither"},
		"distant coordinate":        {polygon, "[[-1e200, 0, 10, 0, 10, 20]]", "annotations[0] (id 1): a polygon of segmentation has the coordinate -1e+200: it is too far"},
		"null":                      {polygon, "[[null, 0, 10, 0, 10, 20]]", "annotations[0] (id 1): segmentation has null instead of a number"},
		"not nested":                {polygon, "[0, 0, 10, 0, 10, 20]", "annotations[0] (id 1): segmentation is neither a list of polygons [x, y, x, y, ...] nor {counts, size}"},
		"text for polygons":         {polygon, `"mask"`, "annotations[0] (id 1): segmentation is neither"},
		"no polygons":               {polygon, "[]", "annotations[0] (id 1): it has no segmentation, which masks need"},
		"no segmentation":           {`, "segmentation": ` + polygon, "", "annotations[0] (id 1): it has no segmentation"},
		"truncated runs":            {runs, `{"size": [20, 40], "counts": [700, 99]}`, "annotations[2] (id 3): counts of segmentation: they add up to 799 of the 20 x 40 pixels: is it truncated?"},
		"runs beyond the image":     {runs, `{"size": [20, 40], "counts": [700, 101]}`, "annotations[2] (id 3): counts of segmentation: the run of 101 exceeds the 20 x 40 pixels, of which 100 are left"},
		"negative":                  {runs, `{"size": [20, 40], "counts": [-1, 801]}`, "annotations[2] (id 3): counts of segmentation: the run of -1"},
		"fractions":                 {runs, `{"size": [20, 40], "counts": [700.5, 99.5]}`, "annotations[2] (id 3): counts of segmentation: they are neither"},
		"no counts":                 {runs, `{"size": [20, 40]}`, "annotations[2] (id 3): counts of segmentation: they are neither"},
		"truncated compressed runs": {runs, `{"size": [20, 40], "counts": "le0"}`, "annotations[2] (id 3): counts of segmentation: they add up to 700"},
		"ends within a number":      {runs, `{"size": [20, 40], "counts": "l"}`, "the text ends within a number: is it truncated?"},
		"invalid character":         {runs, `{"size": [20, 40], "counts": "l!"}`, `character '!' at 1 is not one of compressed runs`},
		"long number":               {runs, `{"size": [20, 40], "counts": "oooooooooooooo0"}`, "the number at 0 is too long"},
		"size without width":        {runs, `{"size": [20], "counts": [800]}`, "annotations[2] (id 3): size of segmentation is not [height, width]"},
		"size of another image":     {runs, `{"size": [40, 20], "counts": [800]}`, "annotations[2] (id 3): size of segmentation is [40, 20], and the image has height 20 and width 40"},
		"huge size":                 {runs, `{"size": [4000000000, 4000000000], "counts": [800]}`, "annotations[2] (id 3): size of segmentation is [4000000000 4000000000]"},
	} {
		if !strings.Contains(masksText, c.old) {
			t.Fatalf("%s: the text has no %q", name, c.old)
		}
		_, err := openMasks(t, strings.Replace(masksText, c.old, c.text, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for category, want := range map[string]string{"cat": `"cat" is neither the name nor the id of a category; there are car, dog`, "4": `"4" is neither`, "18": "the category dog is listed twice"} {
		if _, err := openMasks(t, masksText, "dog", category); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("category %s: %v, want %q", category, err, want)
		}
	}
	// Regions of categories that are left out are not checked.
	if _, err := openMasks(t, strings.Replace(masksText, polygon, "[[1, 2]]", 1), "car"); err != nil {
		t.Error(err)
	}
}

// FuzzRegion checks that any text gives an error of one line, or a region that can be drawn. The
// area of a region of run lengths is the sum of every second one.
func FuzzRegion(f *testing.F) {
	for _, text := range []string{`[[0, 0, 10, 0, 10, 20, 0, 20]]`, `[[-1e8, 0.5, 1e8, 3, 2, 1e8], [3, 3, 3, 3, 3, 3]]`, `{"size": [5, 7], "counts": [3, 2, 30]}`, `{"size": [5, 7], "counts": "320N4"}`, `{"size": [-1, 7], "counts": "ooo"}`, `null`, `[[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRegion([]byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		h, w := 9, 7
		if r.polygons == nil {
			if h, w = r.height, r.width; h*w > 1<<16 {
				return
			}
		}
		runs, area := inside(r, h, w)
		if r.polygons != nil {
			return
		}
		sum := 0
		for i, n := range r.runs {
			sum += i % 2 * n
		}
		if area != sum {
			t.Errorf("%d pixels of the runs %v, want %d", area, runs, sum)
		}
	})
}

// BenchmarkCOCOMask reads the mask of an image of 640 x 480 with 8 polygons of 40 points.
func BenchmarkCOCOMask(b *testing.B) {
	dir := b.TempDir()
	writeImage(b, filepath.Join(dir, "a.png"), image.NewGray(image.Rect(0, 0, 640, 480)))
	var annotations []string
	for k := range 8 {
		var points []string
		for i := range 40 {
			points = append(points, fmt.Sprintf("%.2f, %.2f", 200+10*float64(k)+150*float64(i%7)/7, 100+float64(i*7)))
		}
		annotations = append(annotations, fmt.Sprintf(`{"id": %d, "image_id": 1, "category_id": 1, "segmentation": [[%s]]}`, k, strings.Join(points, ", ")))
	}
	text := `{"categories": [{"id": 1, "name": "a"}], "images": [{"id": 1, "file_name": "a.png", "height": 480, "width": 640}], "annotations": [` + strings.Join(annotations, ",") + "]}"
	src, err := OpenCOCO(b.Context(), COCOOptions{Annotations: writeText(b, filepath.Join(dir, "a.json"), text), Images: dir, Masks: true})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := src.mask(src.images[0], Frame{Height: 224, Width: 224}); err != nil {
			b.Fatal(err)
		}
	}
}
