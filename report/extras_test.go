package report

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// everything is a run that has something for each kind of chart.
func everything(t testing.TB) Run {
	rows, rec := fake{models: 6, layers: 8, transforms: 3, classes: 3, grid: 4}.build()
	for i := range rec.Models {
		rec.Models[i].Tags = map[string]string{"family": []string{"resnet", "vit"}[i%2], "depth": []string{"20", "56", "12"}[i%3]}
	}
	found, _, err := Distribute(samples(rec))
	if err != nil {
		t.Fatal(err)
	}
	return Run{rows, rec, Attachments{Distributions: found, Images: []Image{{
		ImageText: ImageText{Title: "Inversions", Caption: "Each image beside one that the model maps to the same representation.", Measure: "stir", Model: rec.Models[0].Name},
		Width:     64, Height: 32, PNG: checkers(64, 32),
	}}}}
}

// samples are effective invariances of 500 samples for each model and transformation.
func samples(rec scores.Record) Values {
	return func(each func(Subject, float64)) error {
		r := rand.New(rand.NewPCG(3, 4))
		for m, model := range rec.Models {
			for _, transform := range []string{"quarter", "gray"} {
				for range 500 {
					v := 0.0
					if r.Float64() < 0.5+0.07*float64(m) {
						v = 1 - 0.4*r.Float64()*r.Float64()
					}
					each(Subject{Of: "sample", Model: model.Name, Data: "cifar10", Transform: transform, Measure: "effective-invariance", Statistic: "ei"}, v)
				}
			}
		}
		return nil
	}
}

func checkers(w, h int) []byte {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetGray(x, y, color.Gray{Y: uint8(255 * ((x/4 + y/4) % 2))})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestDistribute(t *testing.T) {
	t.Parallel()
	subject := func(model string) Subject {
		return Subject{Of: "sample", Model: model, Measure: "distance", Statistic: "l2"}
	}
	found, notes, err := Distribute(func(each func(Subject, float64)) error {
		for i := range 81 {
			each(subject("a"), float64(i)/2) // 0, 0.5, ... 40: two in each bin of width 1, three in the last
		}
		each(subject("b"), 10)
		each(subject("b"), nan)
		return nil
	})
	if err != nil || len(found) != 2 || len(notes) != 0 {
		t.Fatal(found, notes, err)
	}
	a, b := found[0], found[1]
	for i, n := range a.Counts {
		want := 2
		if i == bins-1 {
			want = 3
		}
		if n != want {
			t.Errorf("bin %d holds %d values, not %d", i, n, want)
		}
	}
	if a.Low != 0 || a.High != 40 || a.Mean != 20 {
		t.Errorf("from %g to %g, mean %g", a.Low, a.High, a.Mean)
	}
	if b.Low != a.Low || b.High != a.High || b.n() != 1 || b.Counts[10] != 1 || b.Mean != 10 {
		t.Errorf("b shares the bins of a, and holds one value: %+v", b)
	}
}

func TestDistributionsOfOneValue(t *testing.T) {
	t.Parallel()
	found, _, err := Distribute(func(each func(Subject, float64)) error {
		each(Subject{Statistic: "rank"}, 7)
		return nil
	})
	if err != nil || len(found) != 1 || !(found[0].Low < 7 && 7 < found[0].High) || found[0].n() != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

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
	if err := os.WriteFile(outside, checkers(8, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	write("pictures/a.png", checkers(8, 4))
	write("pictures/a.json", []byte(`{"title": "A <b>", "caption": "What it is."}`))
	write("pictures/inversion/contact.png", checkers(4, 4))
	write("pictures/broken.png", []byte("no image"))
	write("pictures/cut.png", checkers(8, 4)[:20])
	write("pictures/note.txt", []byte("none of ours"))
	write("pictures/badly.png", checkers(4, 4))
	write("pictures/badly.json", []byte(`{"title":`))
	write("samples.parquet", []byte("no Parquet"))
	if err := os.Symlink(outside, filepath.Join(dir, "pictures", "link.png")); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	if len(a.Images) != 2 || a.Images[0].Title != "A <b>" || a.Images[0].Width != 8 || a.Images[1].Title != "inversion/contact" {
		t.Errorf("pictures: %+v", a.Images)
	}
	if len(a.Notes) != 5 {
		t.Errorf("notes: %q", a.Notes)
	}
	for _, note := range a.Notes {
		if strings.Contains(note, "\n") {
			t.Errorf("a note of several lines: %q", note)
		}
	}
}

func TestImagesWithinBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pictures"), 0o755); err != nil {
		t.Fatal(err)
	}
	huge := append(checkers(4, 4), make([]byte, mostImageBytes)...)
	if err := os.WriteFile(filepath.Join(dir, "pictures", "huge.png"), huge, 0o644); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	if len(a.Images) != 0 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "more than 4 MiB") {
		t.Errorf("%d images, %q", len(a.Images), a.Notes)
	}
}

// TestSamplesOfARun reads what a study writes.
func TestSamplesOfARun(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := scores.NewSampleWriter(&b)
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
	if len(a.Notes) != 0 || len(found) != 1 || found[0].n() != 10 || found[0].Parameter != "90" || found[0].Low != 0 || found[0].High != 1 {
		t.Errorf("%+v, %q", found, a.Notes)
	}
}

// TestUnitsOfARun reads what a study writes of units, and draws them.
func TestUnitsOfARun(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := scores.NewUnitWriter(&b)
	var rows []scores.Row
	for layer := range 3 {
		for i := range 50 {
			u := scores.UnitRow{Model: "m", Layer: string(rune('a' + layer)), Depth: layer, Data: "d", Transform: "turn", Measure: "firing"}
			u.Unit, u.Score, u.Local, u.Global = i, float64(layer)+float64(i)/10, 0.5, 0.01
			u.NormalisedVariance, u.SameEquivariance, u.GoodfellowNormal, u.MutualInformation = nan, nan, nan, nan
			u.TransformationalVariance, u.SampleVariance = nan, nan
			if err := w.Write(u); err != nil {
				t.Fatal(err)
			}
		}
		for _, statistic := range []string{"invariance", "local-rate"} {
			rows = append(rows, scores.Row{Model: "m", Layer: string(rune('a' + layer)), Depth: layer, Data: "d", Transform: "turn", Measure: "firing", Statistic: statistic,
				Value: float64(layer) + 4, Low: nan, High: nan, Null: 1, N: 50})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "units.parquet"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var curves bytes.Buffer
	c := scores.NewCurveWriter(&curves)
	for step := range 9 {
		r := scores.CurveRow{Model: "m", Layer: "c", Depth: 2, Data: "d", Transform: "turn", Measure: "firing"}
		r.Unit, r.Sign, r.Threshold, r.Step, r.Amount, r.Value = 7, 1, 0.5, step, float64(step-4), 1-float64((step-4)*(step-4))/8
		if err := c.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "curves.parquet"), curves.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	a := ReadAttachments(dir)
	if len(a.Curves) != 1 || len(a.Curves[0].Values) != 9 || a.Curves[0].Values[4] != 1 || a.Curves[0].Amounts[0] != -4 {
		t.Fatalf("%+v", a.Curves)
	}
	if len(a.Notes) != 0 || len(a.Distributions) != 3*3 {
		t.Fatalf("%d distributions, notes %q", len(a.Distributions), a.Notes)
	}
	first := a.Distributions[0]
	if first.Of != "unit" || first.Statistic != "invariance" || first.Layer != "a" || first.n() != 50 || first.Low != 0 || first.High != 4.9 {
		t.Errorf("%+v", first)
	}
	rec := scores.Record{Study: "s", Models: []scores.ModelRecord{{Name: "m", Layers: []scores.LayerRecord{{Name: "a"}, {Name: "b", Depth: 1}, {Name: "c", Depth: 2}}}}}
	v := openAt(t, Run{rows, rec, a}, 1280, 900, "#firing.chart=units")
	if n := evaluate[int](t, v, `document.querySelectorAll("figure .mark-rect.role-mark path").length`); n != 3*40 {
		t.Errorf("%d tiles", n)
	}
	if said := v.texts(t, "figure .says"); len(said) != 1 || !strings.Contains(said[0], "The middle unit is highest at c (4.4") {
		t.Errorf("%q", said)
	}
	v.do(t, script(`location.hash = "#firing.chart=distribution&firing.layer=first"`), until(`document.querySelector("input[value=distribution]").checked && `+complete))
	if said := v.texts(t, "figure .says"); len(said) != 1 || !strings.Contains(said[0], "mean at 2.450") {
		t.Errorf("%q", said)
	}
	v.do(t, script(`location.hash = "#firing.chart=tuning"`), until(`document.querySelector("input[value=tuning]").checked && `+complete))
	if n := evaluate[int](t, v, `document.querySelectorAll("figure .mark-symbol.role-mark path").length`); n != 9 {
		t.Errorf("%d points of the curve", n)
	}
	if said := v.texts(t, "figure .says"); len(said) != 1 || !strings.Contains(said[0], "Unit 7 fires along the longest part of its trajectory, 56 % of the steps.") {
		t.Errorf("%q", said)
	}
	v.quiet(t)
}

// TestRelations checks that the page's relations are those of package correlation, over models that accuracy orders exactly.
func TestRelations(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for m := range 8 {
		ei := 0.2 + 0.09*float64(m)
		at := scores.Row{Model: string(rune('a' + m)), Data: "d", Transform: "turn", Depth: -1, N: 1000, Low: nan, High: nan, Null: nan}
		x, y := at, at
		x.Measure, x.Statistic, x.Value = "effective-invariance", "ei", ei
		y.Measure, y.Statistic, y.Value = "accuracy", "clean", 0.3+0.6*ei
		rows = append(rows, x, y)
	}
	found := relations(rows)
	if len(found) != 1 || found[0].By != "model" || found[0].Of != "d" || len(found[0].Points) != 8 {
		t.Fatalf("%+v", found)
	}
	fit := found[0].Fit
	if fit == nil || fit.Spearman[0] != 1 || fit.Pearson[0] < 0.99 || len(fit.Line) != linePoints {
		t.Fatalf("%+v", fit)
	}
	first, last := fit.Line[0], fit.Line[linePoints-1]
	if first[0] != 0.2 || first[1] >= last[1] || first[2] > first[1] || first[1] > first[3] {
		t.Errorf("line from %v to %v", first, last)
	}
	if few := relations(rows[:6]); len(few) != 1 || few[0].Fit != nil {
		t.Errorf("three points: %+v", few)
	}
	if two := relations(rows[:4]); two != nil {
		t.Errorf("two points: %+v", two)
	}
}
