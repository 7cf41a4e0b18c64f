package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// The distributions of a statistic over the samples of two models are histograms with the same
// bins. Values that are not finite are ignored.
func TestDistribute(t *testing.T) {
	t.Parallel()
	subject := func(model string) Subject {
		return Subject{Of: "sample", Model: model, Measure: "distance", Statistic: "l2"}
	}
	found, omitted, err := Distribute(func(each func(Subject, float64)) error {
		for i := range 81 {
			// 0, 0.5, ... 40: two in each bin of width 1, three in the last
			each(subject("a"), float64(i)/2)
		}
		each(subject("b"), 10)
		each(subject("b"), nan)
		return nil
	})
	if err != nil || len(found) != 2 || len(omitted) != 0 {
		t.Fatalf("distributions %+v, omitted %+v, error %v; want two distributions", found, omitted, err)
	}
	a, b := found[0], found[1] // each has 40 bins, the constant bins
	for i, n := range a.Counts {
		want := 2
		if i == bins-1 {
			want = 3
		}
		if n != want {
			t.Errorf("bin %d has %d values, want %d", i, n, want)
		}
	}
	if a.Low != 0 || a.High != 40 || a.Mean != 20 {
		t.Errorf("the values are from %g to %g with the mean %g, want 0 to 40 with 20", a.Low, a.High, a.Mean)
	}
	if b.Low != a.Low || b.High != a.High || b.N() != 1 || b.Counts[10] != 1 || b.Mean != 10 {
		t.Errorf("b is %+v, want the bins of a with one value", b)
	}
}

// TestDistributionsAreSampledEvenly checks that, if a page cannot show all distributions, it shows
// up to maxDistributions (3000), as many of each model, spread evenly over the layers. For each
// measure an Omission says how many of how many are shown.
func TestDistributionsAreSampledEvenly(t *testing.T) {
	t.Parallel()
	const layers = 1200
	found, omitted, err := Distribute(func(each func(Subject, float64)) error {
		for _, model := range []string{"a", "b", "c", "d"} {
			for l := range layers {
				each(Subject{Of: "sample", Model: model, Layer: fmt.Sprint(l), Measure: "distance", Statistic: "cosine"}, float64(l))
			}
		}
		each(Subject{Of: "sample", Model: "d", Measure: "accuracy", Statistic: "moved"}, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > maxDistributions || len(found) < maxDistributions-4 {
		t.Errorf("%d distributions, want nearly %d", len(found), maxDistributions)
	}
	layersOf := map[string][]string{} // layers of the distributions, by model and measure
	for _, d := range found {
		key := d.Model + " " + d.Measure
		layersOf[key] = append(layersOf[key], d.Layer)
		if d.N() != 1 {
			t.Fatalf("a distribution of %d values, want 1", d.N())
		}
	}
	first := layersOf["a distance"]
	for _, model := range []string{"b", "c", "d"} {
		if got := layersOf[model+" distance"]; len(got)-len(first) > 1 || len(first)-len(got) > 1 || got[0] != "0" || got[len(got)-1] != fmt.Sprint(layers-1) {
			t.Errorf("model %s has %d layers from %s to %s, want as many as model a has, %d, or one more or less, from 0 to %d",
				model, len(got), got[0], got[len(got)-1], len(first), layers-1)
		}
	}
	if len(layersOf["d accuracy"]) != 1 || len(omitted) != 1 || omitted[0] != (Omission{"distance", len(found) - 1, 4 * layers}) {
		t.Errorf("the omitted distributions are %+v, want one entry on distance: %d of %d shown", omitted, len(found)-1, 4*layers)
	}
	row := scores.Row{Model: "a", Layer: "0", Measure: "distance", Statistic: "cosine", Null: nan}
	charts := 0
	for _, c := range ChartsOf(Describe([]scores.Row{row}, nil)[0], []scores.Row{row}, Attachments{Distributions: found, Omitted: omitted}) {
		if c.Name != DistributionChart.Name {
			continue
		}
		charts++
		if !strings.Contains(c.Reading[len(c.Reading)-1].Text, "of 4,800 distributions are shown") {
			t.Errorf("the chart does not say that it shows a sample: %v", c.Reading)
		}
	}
	if charts != 1 {
		t.Errorf("%d charts of distributions, want 1", charts)
	}
}

func TestDistributionsOfOneValue(t *testing.T) {
	t.Parallel()
	found, _, err := Distribute(func(each func(Subject, float64)) error {
		each(Subject{Statistic: "rank"}, 7)
		return nil
	})
	if err != nil || len(found) != 1 || !(found[0].Low < 7 && 7 < found[0].High) || found[0].N() != 1 {
		t.Errorf("distributions %+v, error %v; want one of one value, inside its range", found, err)
	}
}

// ReadAttachments reads what a run folder (the results of a study) has besides scores: images in
// the subfolder pictures, each with a title and a caption in a JSON file of the same name, and
// per-sample values.
func TestReadAttachments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if a := ReadAttachments(dir); len(a.Notes)+len(a.Images)+len(a.Distributions) > 0 {
		t.Errorf("an empty folder has %+v", a)
	}
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, reporttest.Checkerboard(8, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	write("pictures/a.png", reporttest.Checkerboard(8, 4))
	write("pictures/a.json", []byte(`{"title": "A <b>", "caption": "What it is."}`))
	write("pictures/inversion/grid.png", reporttest.Checkerboard(4, 4))
	write("pictures/broken.png", []byte("no image"))
	write("pictures/truncated.png", reporttest.Checkerboard(8, 4)[:20])
	write("pictures/note.txt", []byte("not an image"))
	write("pictures/untitled.png", reporttest.Checkerboard(4, 4))
	write("pictures/untitled.json", []byte(`{"title":`))
	write("samples.parquet", []byte("no Parquet"))
	if err := os.Symlink(outside, filepath.Join(dir, "pictures", "link.png")); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	if len(a.Images) != 2 || a.Images[0].Title != "A <b>" || a.Images[0].Width != 8 || a.Images[1].Title != "inversion/grid" {
		t.Errorf("images %+v, want a.png with its title and inversion/grid.png", a.Images)
	}
	// broken.png, truncated.png, untitled.json and samples.parquet are damaged. link.png is not
	// read, since it is a link to a file outside the folder.
	if len(a.Notes) != 5 {
		t.Errorf("notes %q, want one on each of the 5 files that are not read", a.Notes)
	}
	for _, note := range a.Notes {
		if strings.Contains(note, "\n") {
			t.Errorf("a note of several lines: %q", note)
		}
	}
}

func TestImagesHaveMaximumSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pictures"), 0o755); err != nil {
		t.Fatal(err)
	}
	huge := append(reporttest.Checkerboard(4, 4), make([]byte, maxImageBytes)...)
	if err := os.WriteFile(filepath.Join(dir, "pictures", "huge.png"), huge, 0o644); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	if len(a.Images) != 0 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "more than 4 MiB") {
		t.Errorf("%d images, notes %q; want none, and a note on the size", len(a.Images), a.Notes)
	}
}

// TestReadPerSampleValues reads the file of per-sample values that the run of a study writes into
// its folder, here those of effective invariance (ei: does a prediction stay the same?).
func TestReadPerSampleValues(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := parquetfile.NewSampleWriter(&b)
	for i := range 10 {
		row := scores.SampleRow{Model: "m", Data: "d", Transform: "turn", Parameter: "90", Measure: "effective-invariance", Statistic: "ei", Index: i, Value: float64(i) / 9}
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "samples.parquet"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	found := a.Distributions
	if len(a.Notes) != 0 || len(found) != 1 || found[0].N() != 10 || found[0].Parameter != "90" || found[0].Low != 0 || found[0].High != 1 {
		t.Errorf("distributions %+v, notes %q; want one distribution of 10 values from 0 to 1", found, a.Notes)
	}
}

// TestRelations checks the relation of effective invariance (do predictions stay the same?) to
// accuracy on untransformed data (clean), which package correlation fits, over models that both
// scores rank in the same order. Each model has two rows.
func TestRelations(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for m := range 8 {
		ei := 0.2 + 0.09*float64(m) // effective invariance
		row := scores.Row{Model: string(rune('a' + m)), Data: "d", Transform: "turn", Depth: -1, N: 1000, Low: nan, High: nan, Null: nan}
		x, y := row, row
		x.Measure, x.Statistic, x.Value = "effective-invariance", "ei", ei
		y.Measure, y.Statistic, y.Value = "accuracy", "clean", 0.3+0.6*ei
		rows = append(rows, x, y)
	}
	// The record of a run says what was measured, here by which measures.
	record := &scores.Record{Measures: reporttest.Measures()}
	found := Relations(rows, record)
	if len(found) != 1 || found[0].By != "model" || found[0].Of != "d" || len(found[0].Points) != 8 {
		t.Fatalf("relations %+v, want one of 8 models on d", found)
	}
	fit := found[0].Fit
	if fit == nil || fit.Spearman.Value != 1 || fit.Pearson.Value < 0.99 {
		t.Fatalf("the fit is %+v, want a Spearman correlation of 1", fit)
	}
	if few := Relations(rows[:6], record); len(few) != 1 || few[0].Fit != nil {
		t.Errorf("the relation of three points is %+v, want one without a fit", few)
	}
	if two := Relations(rows[:4], record); two != nil {
		t.Errorf("the relation of two points is %+v, want none", two)
	}
}
