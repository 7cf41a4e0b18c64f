package run_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// pairsText is a study of three models. Measures that compare layers in pairs are added to it.
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

// pairsStudy returns the study of pairsText and extra. Its measures include c, which compares two
// layers by the correlation of their mean activations over samples (correlation_test.go), once for
// each entry, the settings in YAML, such as "between: [a, b]".
func pairsStudy(t *testing.T, dir, extra string, c correlation, entries ...string) *study.Study {
	t.Helper()
	s := studytest.Parse(t, dir, pairsText+extra)
	for _, entry := range entries {
		s.Measures = append(s.Measures, correlationEntry(t, c, entry))
	}
	return s
}

// correlationEntry returns c with the settings of an entry.
func correlationEntry(t *testing.T, c correlation, entry string) spec.MeasureSpec {
	t.Helper()
	m, err := decodeEntry(c, entry)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// decodeEntry is correlationEntry for entries that may be invalid. The name similarity, that of a
// measure with the same settings, is replaced by c.
func decodeEntry(c correlation, entry string) (spec.MeasureSpec, error) {
	n, err := config.Parse("study.yaml", []byte("similarity: {"+entry+"}"), nil)
	if err != nil {
		return spec.MeasureSpec{}, err
	}
	var m spec.MeasureSpec
	if err := m.DecodeNode(n); err != nil {
		return m, err
	}
	err = m.Decode(catalog.Measures())
	m.Method, m.Pairs = c, catalog.PairsOf(c)
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

// allPairs are two entries of the comparison. The first compares two models, models with images of
// different sizes, and a model with itself. The second, without settings, compares the layers of
// each model on clean (not transformed) and on transformed samples.
var allPairs = []string{"between: [[one, two], [two, big], [one, one]]", ""}

// rowsOf returns the rows of the comparison correlation for a pair of models.
func rowsOf(r *study.Result, model, other, transform string) []scores.Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row scores.Row) bool {
		return row.Measure != "correlation" || row.Model != model || row.OtherModel != other || row.Transform != transform
	})
}

// TestRequestedPairs checks for which pairs of layers the entries allPairs give scores.
func TestRequestedPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	r := studytest.Run(t, pairsStudy(t, dir, "", correlation{}, allPairs...), filepath.Join(dir, "run"), o)

	layers := func(rows []scores.Row) string {
		var names []string
		for _, row := range rows {
			if row.Parameter == "" || row.Transform == "shift" { // of quarter only the mean over its values
				names = append(names, row.Layer+">"+row.OtherLayer)
			}
		}
		return strings.Join(names, " ")
	}
	relu := r.Record.Models[0].Layers[1].Name
	everyPair := fmt.Sprintf("conv>conv conv>logits %[1]s>conv %[1]s>logits logits>conv logits>logits", relu)
	if got := layers(rowsOf(r, "one", "two", "")); got != everyPair {
		t.Errorf("pairs of one and two: %s, want %s", got, everyPair)
	}
	if got := layers(rowsOf(r, "one", "two", "quarter")); got != everyPair {
		t.Errorf("pairs of one and two under a rotation, mean over its values: %s, want %s", got, everyPair)
	}
	if got := rowsOf(r, "one", "two", "shift"); len(got) > 0 {
		t.Errorf("pairs of one and two under a transformation of activations have the scores %v, want none", got)
	}
	selfPairs := fmt.Sprintf("conv>conv conv>%[1]s conv>logits %[1]s>conv %[1]s>%[1]s %[1]s>logits logits>conv logits>%[1]s logits>logits", relu)
	selfRows := rowsOf(r, "one", "one", "")
	if got := layers(selfRows); got != selfPairs {
		t.Errorf("pairs of one with itself: %s, want %s", got, selfPairs)
	}
	value := map[string]float64{}
	for _, row := range selfRows {
		value[row.Layer+">"+row.OtherLayer] = row.Value
	}
	for _, row := range selfRows {
		if row.Layer == row.OtherLayer && math.Abs(row.Value-1) > 1e-6 {
			t.Errorf("the correlation of %s with itself is %v, want 1", row.Layer, row.Value)
		}
		if swapped := value[row.OtherLayer+">"+row.Layer]; swapped != row.Value {
			t.Errorf("the correlation of %s with %s is %v, and of the swapped pair %v, want the same", row.Layer, row.OtherLayer, row.Value, swapped)
		}
	}
	if got, want := layers(rowsOf(r, "one", "", "quarter")), "conv> "+relu+"> logits>"; got != want {
		t.Errorf("layers on clean and on transformed images: %s, want %s", got, want)
	}
	if got, want := layers(rowsOf(r, "one", "", "shift")), "conv> "+relu+">"; got != want {
		t.Errorf("clean activations and transformed activations: %s, want %s", got, want)
	}
}

// TestPenultimatePairs checks that "layers: penultimate" compares the inputs of the last matrix
// products of two models, and that these layers have no scores of other measures.
func TestPenultimatePairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	r := studytest.Run(t, pairsStudy(t, dir, "", correlation{}, "between: [one, big], layers: penultimate"), filepath.Join(dir, "run"), studytest.Options(t))
	rows := rowsOf(r, "one", "big", "")
	if len(rows) != 1 || rows[0].Layer == "" || rows[0].Layer == "logits" {
		t.Fatalf("the penultimate layers have the scores %+v, want one, not of logits", rows)
	}
	for _, row := range r.Rows {
		if row.Measure != "correlation" && row.Layer == rows[0].Layer {
			t.Errorf("the penultimate layer, which the study does not list in its models, has scores of %s", row.Measure)
		}
	}
}

// TestSkippedPairsAreSummarised checks that the pairs that a measure skips for the same reason are
// one entry of the record. Here correlation skips pairs whose first layer is conv.
func TestSkippedPairsAreSummarised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	r := studytest.Run(t, pairsStudy(t, dir, "", correlation{skip: "conv"}, "between: [one, big]"), filepath.Join(dir, "run"), studytest.Options(t))
	var found []string
	for _, s := range r.Record.Skipped {
		if s.Measure == "correlation" && s.Why == "its name is conv" {
			found = append(found, s.Model+": "+s.Layer)
		}
	}
	if relu := r.Record.Models[2].Layers[1].Name; len(found) != 1 || found[0] != "one, big: conv and conv, conv and "+relu+", conv and logits" {
		t.Errorf("skipped: %q, want one entry with the three pairs of conv", found)
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
	testmodel.Write(t, dir, "two", testmodel.Options{Poison: float32(math.NaN())}) // a NaN weight
	s := pairsStudy(t, dir, "", correlation{}, "between: [one, two]")
	s.Measures = s.Measures[1:] // without accuracy
	_, err := study.Run(t.Context(), s, filepath.Join(dir, "run"), studytest.Options(t))
	if err == nil || !strings.Contains(err.Error(), "layer conv of model two on shapes: NaN or infinity in the activations of sample ") {
		t.Errorf("error %v, want one that names layer conv of model two", err)
	}
}

// TestSameLayersOfModelsThatDiffer checks that "layers: same" is an error for models with different
// numbers of layers. The error's position, 1:1, is where the entry starts in the text that
// decodeEntry parses.
func TestSameLayersOfModelsThatDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	_, err := study.NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: [one, two], layers: same"), studytest.Options(t))
	if err == nil || !strings.Contains(err.Error(), "study.yaml:1:1") || !strings.Contains(err.Error(), "one has 3 and two has 2") {
		t.Errorf("error %v, want one with the numbers of layers", err)
	}
}

// TestPairKeysDependOnBothModels checks that the cache keys of scores that compare two models
// change if one of the two changes, and that no other keys do.
func TestPairKeysDependOnBothModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	keys := func() map[string]string {
		p, err := study.NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: [[one, two], [two, big]]"), o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		out := map[string]string{}
		for _, c := range p.Cells { // a cell is one measure of a pair, under one transformation value
			out[c.String()] = c.Key
		}
		return out
	}
	before := keys()
	testmodel.Write(t, dir, "big", testmodel.Options{Size: 24, Poison: 1}) // other weights
	for name, key := range keys() {
		if changed, want := key != before[name], strings.Contains(name, "big"); changed != want {
			t.Errorf("after a change of big, the key of %q has changed: %v, want %v", name, changed, want)
		}
	}
}

// TestDistanceBetweenModels checks distances between layers of two models on the same inputs, clean
// and rotated, against those of the activations that the models compute. A copy has none. The
// distance of x from T(x) is a cell of its own.
func TestDistanceBetweenModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	text := strings.Replace(pairsText, "transforms:", "  - {name: copy, onnx: one.onnx, layers: [\"op:Conv\", output]}\ntransforms:", 1)
	s := studytest.Parse(t, dir, strings.Replace(text, "[accuracy]", "[distance: {between: [[one, two], [one, copy]]}, distance]", 1))
	r := studytest.Run(t, s, filepath.Join(dir, "run"), studytest.Options(t))
	found := map[string]scores.Row{}
	for _, row := range r.Rows {
		if row.Measure == "distance" && row.Statistic == "relative-l2" {
			found[strings.Join([]string{row.Model, row.OtherModel, row.Layer, row.OtherLayer, row.Transform, row.Parameter}, " ")] = row
		}
	}
	for _, layer := range []string{"conv", "logits"} {
		for _, view := range []string{" ", "quarter 90", "quarter 180"} {
			row, ok := found["one two "+layer+" "+layer+" "+view]
			if !ok || !(row.Low < row.Value && row.Value < row.High) || math.IsNaN(row.Null) || row.N != 150 {
				t.Errorf("no distance of %s between one and two under %q: %+v", layer, view, row)
			}
			if same := found["one copy "+layer+" "+layer+" "+view]; same.N != 150 || same.Value != 0 {
				t.Errorf("the distance of %s from a copy under %q is %+v", layer, view, same)
			}
		}
		if _, ok := found["one  "+layer+"  quarter 90"]; !ok {
			t.Errorf("no distance of %s on x from that on T(x)", layer)
		}
	}
	source, err := dataset.OpenShapes(dataset.ShapesOptions{N: 150, Size: 16, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	var z [2][][]float32
	for k, name := range []string{"one", "two"} {
		m, err := modeltest.Open(t, filepath.Join(dir, name+".onnx"), model.Options{Layers: []string{"op:Conv"}})
		if err != nil {
			t.Fatal(err)
		}
		z[k] = activations(t, m, source)
	}
	want := 0.
	for i := range z[0] {
		want += distance.Between(z[0][i], z[1][i]).RelativeL2 / float64(len(z[0]))
	}
	if got := found["one two conv conv  "].Value; math.Abs(got-want) > 1e-5 {
		t.Errorf("the distance of conv is %v, want %v", got, want)
	}
}

// activations returns the first layer of a model for each sample.
func activations(t *testing.T, m *model.Model, source dataset.Source) (out [][]float32) {
	t.Helper()
	session, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	b, err := session.NewBuffers(1)
	for i := 0; i < source.Len() && err == nil; i++ {
		var sample dataset.Sample
		if sample, err = source.At(t.Context(), i, m.Frame()); err == nil {
			err = session.Run(t.Context(), []tensor.Tensor{sample.Input}, b)
		}
		out = append(out, slices.Clone(b.Layer(0).Data))
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
