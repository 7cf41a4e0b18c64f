package run_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestContactSheets checks that a run writes one contact sheet for each transformation of the
// input: a PNG file with a row for each of three images (pictures: 3), clean and transformed, and a
// JSON file with its caption. The image under quarter at 180 degrees must equal the rotated
// original. The study is studytest.Text, whose transformations of the input are
// quarter, a rotation by 90 and by 180 degrees, and tilt.
func TestContactSheets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text+"pictures: 3\n"), out, studytest.Options(t))
	files, err := filepath.Glob(filepath.Join(out, "pictures", "views", "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("files %q, error %v; want the sheets and captions of quarter and tilt", files, err)
	}
	sheet := readPNG(t, os.DirFS(out), "pictures/views/01.png")
	const sheetGap = 4
	const side = 64 // 16 x 16, enlarged
	if want := image.Rect(0, 0, 3*(side+sheetGap)+sheetGap, 3*(side+sheetGap)+sheetGap); sheet.Bounds() != want {
		t.Fatalf("the sheet is %v, want %v", sheet.Bounds(), want)
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
		t.Errorf("caption %q, error %v", caption, err)
	}
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text+"pictures: 0\n"), out, studytest.Options(t)) // sheets stay if a later run does not request them
	if _, err := os.Stat(files[0]); err != nil {
		t.Error(err)
	}
}

// TestWithoutImages checks that a run warns of data without images or transformations if the study
// requests contact sheets (pictures: 3). soundStudy (sound_test.go) has the recordings tones and
// the model listener.
func TestWithoutImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	testmodel.Write(t, dir, "small", testmodel.Options{})
	// The first of two data sets has as many transformations as a run has contact sheets, 48.
	many := "name: many\npictures: 1\ndata: [{name: first, shapes: {n: 8, size: 16}}, {name: second, shapes: {n: 8, size: 16}}]\n" +
		"models: [{name: small, onnx: small.onnx, layers: output}]\nmeasures: [accuracy]\ntransforms:\n"
	for angle := range 48 {
		many += fmt.Sprintf("  - {name: turn%d, rotate: %d}\n", angle, angle+1)
	}
	for i, c := range []struct{ study, want string }{
		{many, "pictures: none of second, since at most 48 contact sheets show transformations"},
		{soundStudy, ""},
		{soundStudy + "pictures: 0\n", ""},
		{soundStudy + "pictures: 3\n", "pictures: none of tones, whose samples are no images of 1 or 3 channels"},
		{strings.ReplaceAll(soundStudy, "transforms: [identity]\nmeasures: [accuracy, effective-invariance, distance]", "measures: [similarity: {between: [listener, listener], statistics: [debiased-cka], layers: penultimate}]") + "pictures: 3\n",
			"pictures: none of tones, since no transformation changes its samples"},
		{studytest.Text + "pictures: 3\n", ""},
	} {
		r := studytest.Run(t, studytest.Parse(t, dir, c.study), filepath.Join(dir, fmt.Sprint("run", i)), studytest.Options(t))
		got := ""
		for _, w := range r.Record.Warnings {
			if strings.HasPrefix(w, "pictures") {
				got += w
			}
		}
		if got != c.want {
			t.Errorf("study %d: warnings %q, want %q", i, got, c.want)
		}
	}
}

// TestModelImages checks that the images in the folder NAME.pictures beside a model NAME.onnx are
// copied to the run folder, with their captions.
func TestModelImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testmodel.Write(t, dir, "small", testmodel.Options{})
	imagesDir := strings.TrimSuffix(path, ".onnx") + ".pictures"
	if err := os.Mkdir(imagesDir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"layer1.png": "one", "layer1.json": `{"title": "Filters", "caption": "Edges."}`, "layer2.png": "two", "layer2.json": "null", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(imagesDir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "run")
	check := func(text, layer2 string) {
		t.Helper()
		studytest.Run(t, studytest.Parse(t, dir, text), out, studytest.Options(t))
		for name, want := range map[string]string{"small-layer1.png": "one", "small-layer1.json": `{"caption":"Edges.","model":"small","title":"Filters"}`,
			"small-layer2.png": layer2, "small-layer2.json": `{"model":"small","title":"layer2 of small"}`} {
			got, err := fs.ReadFile(studytest.Pictures(t, out), "pictures/models/"+name)
			if err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s holds %q, error %v; want %q", name, got, err, want)
			}
		}
	}
	check(studytest.Text, "two")
	if err := os.WriteFile(filepath.Join(imagesDir, "layer2.png"), []byte("three"), 0o666); err != nil {
		t.Fatal(err)
	}
	check(studytest.Text, "three")
	check(studytest.Text+"pictures: 2\n", "three")
	if err := os.WriteFile(filepath.Join(imagesDir, "layer1.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := study.Run(t.Context(), studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "again"), studytest.Options(t)); err == nil || !strings.Contains(err.Error(), "caption") {
		t.Errorf("a caption that is cut off: %v", err)
	}
}

func readPNG(t *testing.T, files fs.FS, name string) image.Image {
	t.Helper()
	f, err := files.Open(name)
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

// TestSampleSheets checks a sheet of samples, those that quarter changes most and least, against
// the per-sample values in samples.parquet. It also compares the image of one sample at 180 degrees
// with the rotated original. A sample's effective invariance, ei, is the geometric mean of the
// confidences on the clean and on the moved (transformed) image, and 0 if the predictions differ.
func TestSampleSheets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, studytest.Options(t))
	values := map[string]map[string]map[int]float64{} // by parameter, statistic and sample
	labels := map[int]int{}
	f, err := os.Open(filepath.Join(out, "samples.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	err = parquetfile.ReadSamples(f, info.Size(), func(r scores.SampleRow) {
		if r.Transform != "quarter" || r.Measure != "accuracy" || r.Trial != 0 {
			return
		}
		labels[r.Index] = r.Label
		if values[r.Parameter] == nil {
			values[r.Parameter] = map[string]map[int]float64{}
		}
		if values[r.Parameter][r.Statistic] == nil {
			values[r.Parameter][r.Statistic] = map[int]float64{}
		}
		values[r.Parameter][r.Statistic][r.Index] = r.Value
	})
	if err != nil || len(values) != 2 {
		t.Fatalf("values of %d parameters, %v", len(values), err)
	}
	sheet := readSampleSheet(t, studytest.Pictures(t, out), "pictures/samples/01.json")
	if sheet.Transform != "quarter" || sheet.Statistic != "ei" || sheet.Of != len(labels) || len(sheet.Models) != 1 || len(sheet.Parameters) != 2 {
		t.Fatalf("the sheet is %+v, want one of effective invariance under quarter, of 1 model and 2 angles", sheet)
	}
	m := sheet.Models[0]
	for k, parameter := range sheet.Parameters {
		byStatistic, view := values[parameter], m.Views[k]
		// Samples with another prediction when transformed, samples that are classified correctly
		// only when clean, and samples that are classified correctly when clean.
		changed, failed, right := 0, 0, 0
		for i := range labels {
			same := byStatistic["predicted-clean"][i] == byStatistic["predicted-moved"][i]
			if !same {
				changed++
			}
			if byStatistic["correct-clean"][i] == 1 {
				right++
				if byStatistic["correct-moved"][i] == 0 {
					failed++
				}
			}
		}
		if view.Changed != changed || view.Failed != failed || m.Right != right || m.Labelled != len(labels) {
			t.Errorf("%s: %d changed, %d failed of %d, %d labelled; the values say %d, %d, %d, %d", parameter, view.Changed, view.Failed, m.Right, m.Labelled, changed, failed, right, len(labels))
		}
		n, rightMoved := 0, 0 // samples, and those that are classified correctly when transformed
		for _, c := range view.ByClass {
			n, rightMoved = n+c.N, rightMoved+c.Right
		}
		confused := 0
		for _, c := range view.Confusion { // label, predicted class, number of samples
			confused += c[2]
		}
		if n != len(labels) || confused != n || rightMoved != right-failed+gained(byStatistic) {
			t.Errorf("%s: the classes have %d samples, %d right, %d in the confusion", parameter, n, rightMoved, confused)
		}
		for line, s := range sheet.Samples {
			want := 0.0
			if byStatistic["predicted-clean"][s.Index] == byStatistic["predicted-moved"][s.Index] {
				want = math.Sqrt(byStatistic["confidence-clean"][s.Index] * byStatistic["confidence-moved"][s.Index])
			}
			if math.Abs(float64(view.Value[line])-want) > 1e-4 {
				t.Errorf("sample %d at %s has the value %v, want %v", s.Index, parameter, view.Value[line], want)
			}
			if (view.Moved[line] == s.Label) != (byStatistic["correct-moved"][s.Index] == 1) {
				t.Errorf("sample %d at %s: the prediction is %q and the label %q", s.Index, parameter, sheet.Classes[view.Moved[line]], sheet.Classes[s.Label])
			}
		}
	}
	// No sample that is not shown changes more than the last of the most changed, and none changes
	// less than the first of the least changed. A change is 1 - confidence, or 1 + confidence if
	// the prediction changes, summed over angles. The confidence is the geometric mean of both.
	change := func(i int) (sum float64) {
		for _, byStatistic := range values {
			confidence := math.Sqrt(byStatistic["confidence-clean"][i] * byStatistic["confidence-moved"][i])
			if byStatistic["predicted-clean"][i] == byStatistic["predicted-moved"][i] {
				sum += 1 - confidence
			} else {
				sum += 1 + confidence
			}
		}
		return sum
	}
	if len(m.Most) == 0 || len(m.Least) == 0 {
		t.Fatal("no sample is said to change most or least")
	}
	shown := map[int]bool{}
	for _, line := range m.Most {
		shown[sheet.Samples[line].Index] = true
	}
	last := change(sheet.Samples[m.Most[len(m.Most)-1]].Index)
	least := change(sheet.Samples[m.Least[0]].Index)
	for i := range labels {
		if !shown[i] && change(i) > last+1e-9 || change(i) < least-1e-9 {
			t.Errorf("sample %d changes by %v; the list of the most changed ends at %v, that of the least begins at %v", i, change(i), last, least)
		}
	}
	img := readPNG(t, studytest.Pictures(t, out), "pictures/samples/01.png")
	tile := sheet.Tile
	if want := image.Rect(0, 0, 3*tile.Right, len(sheet.Samples)*tile.Down); img.Bounds() != want || tile.Width != 16 {
		t.Fatalf("the sheet is %v, want %v, with tiles of %+v", img.Bounds(), want, tile)
	}
	for y := range tile.Height {
		for x := range tile.Width {
			if img.At(x, y) != img.At(2*tile.Right+tile.Width-1-x, tile.Height-1-y) {
				t.Fatalf("the image at 180 degrees differs at %d, %d", x, y)
			}
		}
	}
}

// gained returns the number of samples that are classified correctly only when transformed, from
// values by statistic and sample.
func gained(byStatistic map[string]map[int]float64) int {
	n := 0
	for i, clean := range byStatistic["correct-clean"] {
		if clean == 0 && byStatistic["correct-moved"][i] == 1 {
			n++
		}
	}
	return n
}

func readSampleSheet(t *testing.T, files fs.FS, name string) scores.SampleSheet {
	t.Helper()
	var s scores.SampleSheet
	text, err := fs.ReadFile(files, name)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
