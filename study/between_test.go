package study

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
)

const pairsText = `name: pairs
seed: 3
data: [{name: shapes, shapes: {n: 150, size: 16, seed: 2}}]
models:
  - {name: one, onnx: one.onnx, layers: ["op:Conv", "op:Relu", output]}
  - {name: two, onnx: two.onnx, layers: ["op:Conv", output]}
  - {name: big, onnx: big.onnx, layers: ["op:Conv", "op:Relu", output]}
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
  - {name: shift, translate: [-0.2, 0.2], on: activations, per: trial}
measures: [accuracy]
`

// pairsStudy returns a study of three models, one with larger images, with the comparison c once for
// each entry, which has its settings.
func pairsStudy(t *testing.T, dir, extra string, c correlation, entries ...string) *Study {
	t.Helper()
	s := parseIn(t, dir, pairsText+extra)
	for _, entry := range entries {
		s.Measures = append(s.Measures, correlationEntry(t, c, entry))
	}
	return s
}

// correlationEntry decodes settings such as "between: [a, b]".
func correlationEntry(t *testing.T, c correlation, entry string) spec.MeasureSpec {
	t.Helper()
	m, err := decodeEntry(c, entry)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func decodeEntry(c correlation, entry string) (spec.MeasureSpec, error) {
	n, err := config.Parse("study.yaml", []byte("similarity: {"+entry+"}"), nil)
	if err != nil {
		return spec.MeasureSpec{}, err
	}
	var m spec.MeasureSpec
	err = m.DecodeNode(n)
	m.Method = c
	return m, err
}

// writePairs writes the three models of pairsText: one and two for images of 16 x 16, big for 24 x
// 24.
func writePairs(t *testing.T, dir string) {
	t.Helper()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	testmodel.Write(t, dir, "two", testmodel.Options{})
	testmodel.Write(t, dir, "big", testmodel.Options{Size: 24})
}

// allPairs are two entries of the comparison. The first compares two models, models of different
// sizes and a model with itself. The second, without settings, compares clean with transformed
// samples of each model.
var allPairs = []string{"between: [[one, two], [two, big], [one, one]]", ""}

// rowsOf returns the rows of the comparison correlation for a pair of models.
func rowsOf(r *Result, model, other, transform string) []scores.Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row scores.Row) bool {
		return row.Measure != "correlation" || row.Model != model || row.OtherModel != other || row.Transform != transform
	})
}

func TestRequestedPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	r := mustRun(t, pairsStudy(t, dir, "", correlation{}, allPairs...), filepath.Join(dir, "run"), o)

	layers := func(rows []scores.Row) string {
		var names []string
		for _, row := range rows {
			if row.Parameter == "" || row.Transform == "shift" { // shift has the value that was drawn
				names = append(names, row.Layer+">"+row.OtherLayer)
			}
		}
		return strings.Join(names, " ")
	}
	relu := r.Record.Models[0].Layers[1].Name
	grid := fmt.Sprintf("conv>conv conv>logits %[1]s>conv %[1]s>logits logits>conv logits>logits", relu)
	if got := layers(rowsOf(r, "one", "two", "")); got != grid {
		t.Errorf("pairs of one and two: %s, want %s", got, grid)
	}
	if got := layers(rowsOf(r, "one", "two", "quarter")); got != grid {
		t.Errorf("pairs of one and two under a rotation, mean over its values: %s, want %s", got, grid)
	}
	if got := rowsOf(r, "one", "two", "shift"); len(got) > 0 {
		t.Errorf("a transformation of activations between models has the scores %v", got)
	}
	self := fmt.Sprintf("conv>conv conv>%[1]s conv>logits %[1]s>conv %[1]s>%[1]s %[1]s>logits logits>conv logits>%[1]s logits>logits", relu)
	own := rowsOf(r, "one", "one", "")
	if got := layers(own); got != self {
		t.Errorf("pairs of one with itself: %s, want %s", got, self)
	}
	value := map[string]float64{}
	for _, row := range own {
		value[row.Layer+">"+row.OtherLayer] = row.Value
	}
	for _, row := range own {
		if row.Layer == row.OtherLayer && math.Abs(row.Value-1) > 1e-6 {
			t.Errorf("%s with itself correlates by %v", row.Layer, row.Value)
		}
		if back := value[row.OtherLayer+">"+row.Layer]; back != row.Value {
			t.Errorf("%s with %s gives %v, and %v the other way round", row.Layer, row.OtherLayer, row.Value, back)
		}
	}
	if got, want := layers(rowsOf(r, "one", "", "quarter")), "conv> "+relu+"> logits>"; got != want {
		t.Errorf("clean with transformed layers: %s, want %s", got, want)
	}
	if got, want := layers(rowsOf(r, "one", "", "shift")), "conv> "+relu+">"; got != want {
		t.Errorf("clean layers with transformed activations: %s, want %s", got, want)
	}
}

func TestPenultimatePairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	r := mustRun(t, pairsStudy(t, dir, "", correlation{}, "between: [one, big], layers: penultimate"), filepath.Join(dir, "run"), options(t))
	rows := rowsOf(r, "one", "big", "")
	if len(rows) != 1 || rows[0].Layer == "" || rows[0].Layer == "logits" {
		t.Fatalf("the penultimate layers give %+v", rows)
	}
	for _, row := range r.Rows {
		if row.Measure != "correlation" && row.Layer == rows[0].Layer {
			t.Errorf("the penultimate layer, which models do not list, has scores of %s", row.Measure)
		}
	}
}

func TestSkippedPairsAreSummarised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	r := mustRun(t, pairsStudy(t, dir, "", correlation{skip: "conv"}, "between: [one, big]"), filepath.Join(dir, "run"), options(t))
	var found []string
	for _, s := range r.Record.Skipped {
		if s.Measure == "correlation" && s.Why == "its name is conv" {
			found = append(found, s.Model+": "+s.Layer)
		}
	}
	if relu := r.Record.Models[2].Layers[1].Name; len(found) != 1 || found[0] != "one, big: conv and conv, conv and "+relu+", conv and logits" {
		t.Errorf("skipped: %q", found)
	}
	for _, row := range rowsOf(r, "one", "big", "") {
		if row.Layer == "conv" {
			t.Errorf("a skipped pair has the scores %+v", row)
		}
	}
}

func TestNonFiniteActivationsOfAPairNameTheirModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	testmodel.Write(t, dir, "two", testmodel.Options{Poison: float32(math.NaN())})
	s := pairsStudy(t, dir, "", correlation{}, "between: [one, two]")
	s.Measures = s.Measures[1:] // without accuracy
	_, err := Run(t.Context(), s, filepath.Join(dir, "run"), options(t))
	if err == nil || !strings.Contains(err.Error(), "layer conv of model two on shapes: NaN or infinity in the activations of sample ") {
		t.Errorf("error %v", err)
	}
}

func TestSameLayersOfModelsThatDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	_, err := NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: [one, two], layers: same"), options(t))
	if err == nil || !strings.Contains(err.Error(), "study.yaml:1:1") || !strings.Contains(err.Error(), "one has 3 and two has 2") {
		t.Errorf("error %v", err)
	}
}

func TestPairKeysDependOnBothModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	keys := func() map[string]string {
		p, err := NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: [[one, two], [two, big]]"), o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		out := map[string]string{}
		for _, c := range p.Cells {
			out[c.String()] = c.Key
		}
		return out
	}
	before := keys()
	testmodel.Write(t, dir, "big", testmodel.Options{Size: 24, Poison: 1})
	for name, key := range keys() {
		if changed, concerns := key != before[name], strings.Contains(name, "big"); changed != concerns {
			t.Errorf("after a change of big, the key of %q has changed: %v", name, changed)
		}
	}
}
