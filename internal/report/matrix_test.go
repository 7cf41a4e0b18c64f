package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// TestMatrices checks the order of the matrices (tables of one statistic, models by
// transformations), and the cells of the first one. The shade of a cell is its score as a fraction
// of the way from the null (what chance alone gives) to the best value. UsualRun generates the
// scores, one a row, of two models with 20 layers under three transformations. A row without a
// parameter is the mean over the parameter's values.
func TestMatrices(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	all := Matrices(rows, rec.Measures)
	var order []string
	for _, m := range all {
		order = append(order, m.Section+"."+m.Statistic)
	}
	want := []string{"effective-invariance.ei", "prediction-divergence.agreement", "accuracy.moved", "seis.equivariance", "distance.cosine"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	m := all[0]
	if !slices.Equal(m.Models, []string{"resnet20", "resnet56"}) || !slices.Equal(m.Columns, []string{"quarter", "gray", "jitter"}) || len(m.Cells) != 6 {
		t.Fatalf("models %q, columns %q, %d cells; want two ResNets, three transformations and 6 cells", m.Models, m.Columns, len(m.Cells))
	}
	for _, c := range m.Cells {
		r := rows[c.Row]
		if r.Parameter != "" || r.Measure != "effective-invariance" || r.Model != m.Models[c.Model] || r.Transform != m.Columns[c.Column] {
			t.Errorf("the cell of %s under %s has the row %+v", m.Models[c.Model], m.Columns[c.Column], r)
		}
		if want := (r.Value - r.Null) / (1 - r.Null); math.Abs(c.Shade-want) > 1e-12 || c.Chance {
			t.Errorf("shade %g, want %g", c.Shade, want)
		}
	}
	// A statistic of layers is shown for the deepest layer of each model.
	for _, c := range all[3].Cells {
		if r := rows[c.Row]; r.Layer != reporttest.UsualRun.Name("layer", 19) || !all[3].Layer {
			t.Errorf("the cell is of layer %q, want the deepest one", r.Layer)
		}
	}
}

// TestMatrixAtChance checks that the shade of a score that is at chance (no better than its null)
// is 0, and the shade of a better one, for a statistic whose best value is 0. The last argument of
// predictionRow is half the width of the interval.
func TestMatrixAtChance(t *testing.T) {
	t.Parallel()
	r := predictionRow("m", "turn", "prediction-divergence", "js", 0.5, 0.05)
	r.Null = 0.52
	low := predictionRow("k", "turn", "prediction-divergence", "js", 0.13, 0.01)
	low.Null = 0.52
	cells := Matrices([]scores.Row{r, low}, reporttest.Measures())[0].Cells
	if !cells[0].Chance || cells[0].Shade != 0 {
		t.Errorf("the cell of a divergence at its null is %+v, want chance and shade 0", cells[0])
	}
	if cells[1].Chance || math.Abs(cells[1].Shade-0.75) > 1e-12 { // (0.13 - 0.52) / (0 - 0.52)
		t.Errorf("the cell of a divergence of a quarter of its null is %+v, want shade 0.75", cells[1])
	}
}

// TestMatrixOfNeutral checks that no score is marked as at chance for a neutral statistic, one of
// which neither high nor low values are better, as for probes (small networks trained on a layer).
func TestMatrixOfNeutral(t *testing.T) {
	t.Parallel()
	r := predictionRow("m", "turn", "informativeness", "r2", 0.8, 0.05)
	r.Null = 0.02
	m := Matrices([]scores.Row{r}, reporttest.Measures())[0]
	if m.Toward != "" || m.Cells[0].Chance || m.Cells[0].Shade < 0.7 {
		t.Errorf("toward %q, cell %+v, want no direction, and a cell that is not at chance", m.Toward, m.Cells[0])
	}
}

// TestMatrixOfPairs checks the matrix of STIR, a measure that compares models with each other. Its
// columns (Across) are the models that are compared with a reference model.
func TestMatrixOfPairs(t *testing.T) {
	t.Parallel()
	pair := func(a, b string, value float64) scores.Row {
		return scores.Row{Model: a, OtherModel: b, Data: "d", Layer: "x", OtherLayer: "x", Depth: 1, Measure: "stir", Statistic: "stir", Value: value, Low: nan, High: nan, Null: nan}
	}
	m := Matrices([]scores.Row{pair("a", "b", 0.9), pair("b", "a", 0.4)}, reporttest.Measures())[0]
	if m.Across != "compared" || len(m.Cells) != 2 || m.Models[m.Cells[1].Model] != "b" || m.Columns[m.Cells[1].Column] != "a" {
		t.Errorf("the matrix of pairs is %+v, want two cells, the second of b against a", m)
	}
}

// TestMatrixOfAnything checks that values, shades and ends of scales are finite for runs of several
// shapes in which every third score is infinite.
func TestMatrixOfAnything(t *testing.T) {
	t.Parallel()
	for _, run := range []reporttest.FakeRun{{}, {Models: 1, Layers: 1, Transforms: 1}, {Models: 3, Layers: 2, Transforms: 2, Data: 2, Classes: 2, PairedLayers: 2}} {
		rows, rec := run.Rows()
		for i := range rows {
			if i%3 == 0 {
				rows[i].Value = math.Inf(1)
			}
		}
		for _, m := range Matrices(rows, rec.Measures) {
			if !finite(m.Low) || !finite(m.High) || m.Low >= m.High {
				t.Errorf("%s: the scale is %g to %g, want finite ends in this order", m.Section, m.Low, m.High)
			}
			for _, c := range m.Cells {
				if !(c.Shade >= 0 && c.Shade <= 1) || !finite(rows[c.Row].Value) {
					t.Errorf("%s has the cell %+v, want a finite value and a shade from 0 to 1", m.Section, c)
				}
			}
		}
	}
}

// TestPairedEvidence checks that two scores whose intervals overlap differ certainly if their
// jackknife replicates (the values without one of ten groups of samples; Left is the size of the
// group) differ by the same amount in each group.
func TestPairedEvidence(t *testing.T) {
	t.Parallel()
	cell := func(model string, offset float64) scores.Cell {
		s := measure.Score{Statistic: "ei", Value: 0.5 + offset, Low: 0.4 + offset, High: 0.6 + offset, Null: nan, N: 100}
		for i := range 10 {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: 0.5 + offset + 0.01*float64(i%3), Left: 10})
		}
		return scores.Cell{Model: model, Data: "d", Transform: "turn", Measure: "effective-invariance", Layers: []scores.Layer{{Depth: -1, Scores: []measure.Score{s}}}}
	}
	cells := []scores.Cell{cell("m", 0), cell("k", 0.02)}
	rows := scores.Table("s", cells)
	var noReplicates *Replicates
	if got := evidenceOf(noReplicates, &rows[0], &rows[1]); got != insignificant {
		t.Errorf("without replicates the evidence is %d, want %d, insignificant", got, insignificant)
	}
	paired := NewReplicates(cells)
	if got := evidenceOf(paired, &rows[0], &rows[1]); got != certain {
		t.Errorf("with replicates the evidence is %d, want %d, certain; the difference is %+v", got, certain, paired.difference(&rows[0], &rows[1]))
	}
	other := rows[1]
	other.Data = "e"
	if paired.difference(&rows[0], &other).Paired {
		t.Error("scores of different data are paired")
	}
}

// TestFindingsByEvidence checks that in the findings (sentences about the scores) a difference that
// the intervals support comes before larger ones that lie within their intervals, or whose scores
// are no better than the null. depthRows returns scores of the layers a, b, ... of a model.
func TestFindingsByEvidence(t *testing.T) {
	t.Parallel()
	rows := []scores.Row{
		predictionRow("m", "turn", "effective-invariance", "ei", 0.6, 0.3), predictionRow("k", "turn", "effective-invariance", "ei", 0.9, 0.3),
		predictionRow("m", "turn", "robust-accuracy", "robust", 0.30, 0.001), predictionRow("k", "turn", "robust-accuracy", "robust", 0.31, 0.001),
	}
	distance := depthRows("cosine", 1.226, 0.2)
	for i := range distance {
		r := &distance[i]
		r.Measure, r.Null, r.Low, r.High = "distance", r.Value+0.015, r.Value-0.02, r.Value+0.02
	}
	want := []string{
		"Robust accuracy under turn is highest for k (0.310) and lowest for m (0.300).",
		"Effective invariance under turn is 0.600 to 0.900 for each of 2 models, a difference that may be chance.",
		"Cosine distance under turn is highest at a (1.226) and lowest at b (0.200); none of them does better than chance.",
	}
	if got := Findings(append(rows, distance...), reporttest.Measures(), nil); !slices.Equal(got, want) {
		t.Errorf("the findings are %q, want %q", got, want)
	}
}

// TestSections checks that a measure with scores of single models and of pairs of models has a
// section of the report for each, and a measure with scores of pairs only has one section. The
// arguments of pairRow are a model, the other model, a layer of each, a depth and the similarity.
func TestSections(t *testing.T) {
	t.Parallel()
	single := pairRow("a", "", "x", "", 1, 0.5)
	single.Transform = "turn"
	between := pairRow("a", "b", "x", "y", 1, 0.7)
	got := Sections([]scores.Row{single, between}, reporttest.Measures())
	if len(got) != 2 || got[0].Key != "similarity" || got[1].Key != "similarity-between" {
		t.Fatalf("%d sections, want similarity and similarity-between", len(got))
	}
	if !got[0].Has(&single) || got[0].Has(&between) || got[1].Has(&single) || !got[1].Has(&between) {
		t.Error("rows are in the wrong section")
	}
	if got := Sections([]scores.Row{between}, reporttest.Measures()); len(got) != 1 || got[0].Key != "similarity" || !got[0].Has(&between) {
		t.Error("want one section, similarity, for scores of pairs only")
	}
}

// TestSectionsBetweenModels checks that the texts of a distance between two models do not say that it
// is one between x and T(x).
func TestSectionsBetweenModels(t *testing.T) {
	t.Parallel()
	row := func(other, layer string, value float64) scores.Row {
		return scores.Row{Model: "float", OtherModel: other, Layer: layer, OtherLayer: layer, Data: "d", Transform: "tilt", Measure: "distance", Statistic: "cosine",
			Value: value, Low: math.NaN(), High: math.NaN(), Null: math.NaN(), N: 9}
	}
	known := slices.DeleteFunc(reporttest.Measures(), func(d measure.Descriptor) bool { return d.Name != "distance" })
	rows := []scores.Row{row("int8", "a", 0.1), row("int8", "b", 0.9)}
	s := Sections(rows, known)[0]
	about, _ := s.Statistic("cosine")
	if s.Title != "Distance between representations: between models" || s.Question != known[0].Between || about.Title != "cosine distance between float and int8" ||
		DirectionNote(s.Descriptor, about) != "Lower: more similar." {
		t.Errorf("%q asks %q of %q", s.Title, s.Question, about.Title)
	}
	if got := Findings(rows, known, nil); len(got) != 1 || !strings.HasPrefix(got[0], "Cosine distance between float and int8 under tilt") {
		t.Errorf("findings %q", got)
	}
	if got := CurvePanels(rows, known); len(got) == 0 || got[0].Title != "cosine distance between float and int8" {
		t.Errorf("panels %+v", got)
	}
	both := append([]scores.Row{row("", "a", 0.3), row("pruned", "a", 0.2)}, rows...)
	for i, want := range []string{"cosine distance", "cosine distance between models"} {
		if about, _ := Sections(both, known)[i].Statistic("cosine"); about.Title != want {
			t.Errorf("section %d is of %q, want %q", i, about.Title, want)
		}
	}
}

// TestPlaces checks the text that gives the rank of a layer among those of its model by depth, with
// the short name of the layer if it has one.
func TestPlaces(t *testing.T) {
	t.Parallel()
	row := func(layer string, depth int) scores.Row { return scores.Row{Model: "m", Layer: layer, Depth: depth} }
	p := NewPlaces([]scores.Row{row("/layer2/layer2.1/relu_1/Relu_output_0", 9), row("/conv1/Conv_output_0", 1), row("234", 12), row("/features/features.3/conv/Conv_output_0", 5)})
	for layer, want := range map[string]string{
		"/conv1/Conv_output_0": "layer 1 of 4 (conv1)", "/features/features.3/conv/Conv_output_0": "layer 2 of 4 (features.3)",
		"/layer2/layer2.1/relu_1/Relu_output_0": "layer 3 of 4 (layer2.1)", "234": "layer 4 of 4", "other": "",
	} {
		if got := p.Of("m", layer); got != want {
			t.Errorf("%s: %q, want %q", layer, got, want)
		}
	}
}

// TestDepthsDiffer checks DepthsDiffer, which reports whether the deepest layers of models have
// different depths, for one model of three layers and one of two.
func TestDepthsDiffer(t *testing.T) {
	t.Parallel()
	rows := slices.Concat(depthRows("equivariance", 1, 2, 3), depthRows("equivariance", 1, 2))
	for i := 3; i < 5; i++ {
		rows[i].Model = "k"
	}
	if !DepthsDiffer(rows) || DepthsDiffer(rows[:3]) || DepthsDiffer(nil) {
		t.Error("DepthsDiffer is wrong for two models of different depths, for one model, or for no rows")
	}
}

// TestBranches checks that layers of the residual stream (those that no shortcut bypasses) are told
// from those in a residual branch. A model with fewer than three layers in the stream is taken for
// one without shortcuts.
func TestBranches(t *testing.T) {
	t.Parallel()
	model := func(name string, stream int) scores.ModelRecord {
		m := scores.ModelRecord{Name: name, Layers: []scores.LayerRecord{{Name: "inside", Branch: true}}}
		for i := range stream {
			m.Layers = append(m.Layers, scores.LayerRecord{Name: fmt.Sprint("stream", i)})
		}
		return m
	}
	branch := Branches([]scores.ModelRecord{model("residual", 3), model("dense", 2)})
	for row, want := range map[[2]string]bool{{"residual", "inside"}: true, {"residual", "stream1"}: false, {"dense", "inside"}: false, {"other", "inside"}: false} {
		if got := branch(&scores.Row{Model: row[0], Layer: row[1]}); got != want {
			t.Errorf("layer %s of model %s is in a branch: %v, want %v", row[1], row[0], got, want)
		}
	}
}

// TestHeadlineOfEquivarianceError checks the headline, the statistic that summarises a measure. For
// equivariance-error it is the relative error, though it has no upper bound; for distance it is not
// l2, which is in the scale of the activations. The panels of curves over depth lack l2 too, and
// floor, the error that interpolation alone causes.
func TestHeadlineOfEquivarianceError(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for _, name := range [][2]string{ // measure, statistic
		{"equivariance-error", "cosine"}, {"equivariance-error", "relative-error"}, {"equivariance-error", "floor"}, {"distance", "l2"}, {"distance", "cosine"}} {
		for depth := range 3 {
			rows = append(rows, scores.Row{Model: "m", Layer: fmt.Sprint(depth), Depth: depth, Data: "d", Transform: "t", Measure: name[0], Statistic: name[1], Value: 0.1 * float64(depth), Low: nan, High: nan, Null: 1.2})
		}
	}
	got := map[string]string{}
	for _, m := range Matrices(rows, reporttest.Measures()) {
		got[m.Section] = m.Statistic
	}
	if got["equivariance-error"] != "relative-error" || got["distance"] != "cosine" {
		t.Errorf("the headlines are %v, want relative-error and cosine", got)
	}
	var panels []string
	for _, p := range CurvePanels(rows, reporttest.Measures()) {
		panels = append(panels, p.Section+"."+p.Statistic)
	}
	if want := []string{"distance.cosine", "equivariance-error.relative-error", "equivariance-error.cosine"}; !slices.Equal(panels, want) {
		t.Errorf("the panels of curves are %q, want %q", panels, want)
	}
}

// evidenceOf returns the evidence for a difference that is the only claim.
func evidenceOf(r *Replicates, a, b *scores.Row) evidence {
	return withClaims(r, func(c *claims) evidence { return c.evidence(a, b, 1) })
}

// TestCurvesOfMatrix checks that a cell that shows the mean over values that are numbers has their
// scores in order, and that others have none.
func TestCurvesOfMatrix(t *testing.T) {
	t.Parallel()
	row := func(transform, parameter string, value float64) scores.Row {
		r := predictionRow("m", transform, "effective-invariance", "ei", value, 0.01)
		r.Parameter = parameter
		return r
	}
	rows := []scores.Row{row("turn", "90", 0.5), row("turn", "-10", 0.9), row("turn", "10", 0.8), row("turn", "", 0.733),
		row("kind", "a", 0.1), row("kind", "b", 0.3), row("kind", "", 0.2), row("gray", "", 0.6)}
	want := map[string][]int{"turn": {1, 2, 0}, "kind": nil, "gray": nil}
	for _, c := range Matrices(rows, reporttest.Measures())[0].Cells {
		if transform := rows[c.Row].Transform; !slices.Equal(c.Curve, want[transform]) {
			t.Errorf("%s has the curve %v, want %v", transform, c.Curve, want[transform])
		}
	}
	if got := conclude(rows); len(got) != 1 || got[0] != "Effective invariance is lowest under kind (0.200) and highest under turn (0.733, on average over 3 values)." {
		t.Errorf("%q", got)
	}
}
