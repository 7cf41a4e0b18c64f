package html

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestUnitsOfARun checks the charts of single units (a unit is one channel at one position):
// report.ReadAttachments reads the files of unit scores and tuning curves in a run folder, and the
// report draws them. The measure firing says how much more often a unit fires (reaches its
// threshold) along a trajectory, the transformed versions of an input, than at all inputs. Local
// and Global are these two rates. A tuning curve has the unit's responses along a trajectory.
func TestUnitsOfARun(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := parquetfile.NewUnitWriter(&b)
	var rows []scores.Row
	for layer := range 3 {
		for i := range 50 {
			u := scores.UnitRow{Model: "m", Layer: string(rune('a' + layer)), Depth: layer, Data: "d", Transform: "turn", Measure: "firing"}
			u.Unit, u.Score, u.Local, u.Global = i, float64(layer)+float64(i)/10, 0.5, 0.01
			// Statistics that these units lack.
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
	c := parquetfile.NewCurveWriter(&curves)
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
	a := report.ReadAttachments(dir)
	if len(a.Curves) != 1 || len(a.Curves[0].Values) != 9 || a.Curves[0].Values[4] != 1 || a.Curves[0].Amounts[0] != -4 {
		t.Fatalf("the curves read are %+v, want one with 9 steps", a.Curves)
	}
	if len(a.Notes) != 0 || len(a.Distributions) != 3*3 {
		t.Fatalf("%d distributions and the notes %q, want %d, of three statistics at three layers, and no notes", len(a.Distributions), a.Notes, 3*3)
	}
	first := a.Distributions[0]
	if first.Of != "unit" || first.Statistic != "invariance" || first.Layer != "a" || first.Low != 0 || first.High != 4.9 {
		t.Errorf("the first distribution is %+v, want that of the invariance of the units of layer a, 0 to 4.9", first)
	}
	rec := scores.Record{Study: "s", Measures: reporttest.Measures(), Models: []scores.ModelRecord{{Name: "m", Layers: []scores.LayerRecord{{Name: "a"}, {Name: "b", Depth: 1}, {Name: "c", Depth: 2}}}}}
	v := openAt(t, Run{Rows: rows, Record: rec, Attachments: a}, 1280, 900, "#firing.chart=units")
	// The heat map has a tile for each of 3 layers and 40 bins of the score.
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-rect.role-mark path").length`); n != 3*40 {
		t.Errorf("%d tiles, want %d", n, 3*40)
	}
	// The colour scale spans the values of units. Scaled to the scores of layers, which are higher,
	// the tiles would have few colours.
	if n := evaluate[int](t, v, `new Set([...document.querySelectorAll("main figure .mark-rect.role-mark path")].map(p => p.getAttribute("fill"))).size`); n < 60 {
		t.Errorf("%d colours of tiles, want 60 or more", n)
	}
	if said := v.texts(t, "main figure .sentences"); len(said) != 1 || !strings.Contains(said[0], "The middle unit is highest at c (4.4") { // the median unit of layer c has 4.45
		t.Errorf("the heat map of units has the sentences %q, want one on layer c", said)
	}
	v.do(t, script(`location.hash = "#firing.chart=distribution&firing.layer=first"`), until(`document.querySelector("input[value=distribution]").checked && `+complete))
	if said := v.texts(t, "main figure .sentences"); len(said) != 1 || !strings.Contains(said[0], "mean at 2.450") {
		t.Errorf("the histogram of the first layer has the sentences %q, want one with the mean 2.450", said)
	}
	v.do(t, script(`location.hash = "#firing.chart=tuning"`), until(`document.querySelector("input[value=tuning]").checked && `+complete))
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-symbol.role-mark path").length`); n != 9 {
		t.Errorf("%d points of the curve, want 9", n)
	}
	if said := v.texts(t, "main figure .sentences"); len(said) != 1 || !strings.Contains(said[0], "Unit 7 fires on 56 % of the steps of its trajectory.") { // 5 of 9 are at least 0.5
		t.Errorf("the tuning curve has the sentences %q, want one on unit 7", said)
	}
	v.quiet(t) // the browser has logged no error
}
