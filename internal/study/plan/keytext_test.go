package plan

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestKeyText checks the text whose hash is the key of a cell (a measure for one model or pair of
// models, data set, value of a transformation and trial, a repetition of the random draws). keyText
// joins parts that are encoded once for many cells; the result must equal one encoding of
// everything.
func TestKeyText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), []byte(`name: key
seed: 7
data: [{name: shapes, shapes: {n: 20, size: 16, seed: 2}}, {name: "<more>", shapes: {n: 30, size: 16, seed: 3}}]
models: [{name: small, onnx: small.onnx}, {name: again, onnx: small.onnx, layers: [output]}]
transforms: [{name: turn, rotate: {values: [90, 180]}}, {name: both, sequence: [{rotate: [-5, 5]}, {grayscale: {}}], per: trial}]
trials: 2
measures: [accuracy, distance, invariance, prediction-agreement: {between: [small, again]}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pairs, procedures := 0, 0
	for _, c := range p.Cells {
		var layers []string
		for _, t := range c.Tasks {
			layers = append(layers, t.depends()...) // a task is the cell's part for one layer, or for pairs of layers
		}
		if c.Procedure != nil {
			layers = c.Procedure.depends() // a procedure, here of invariance, reads samples several times
			procedures++
		}
		// The view is the transformation, with one value, and its trial. The layout is the division
		// of the samples into blocks and groups for intervals. samples asks for per-sample values.
		inputs := map[string]any{
			"seed":    s.Seed,
			"model":   []any{c.Model.Entry.Name, c.Model.canonical()},
			"data":    []any{c.Data.Entry.Name, c.Data.Source.Fingerprint(), c.Data.Layout},
			"view":    []any{c.View.Name, c.View.Parameter, c.View.Trial, c.View.On, c.View.Per, c.View.canonical},
			"measure": []any{c.Method.Name(), c.Method.Version(), c.Method.Settings()},
			"layers":  layers,
			"samples": s.Samples,
			"budget":  s.Memory,
		}
		if c.other != nil {
			inputs["other"] = []any{c.other.Entry.Name, c.other.canonical()}
			pairs++
		}
		if got, want := p.keyText(c), spec.CanonicalJSON(inputs); got != want {
			t.Fatalf("%s:\n%s\nwant\n%s", c, got, want)
		}
	}
	if pairs == 0 || procedures == 0 || pairs+procedures == len(p.Cells) {
		t.Errorf("%d cells, %d of pairs of models, %d of procedures; want some of each kind", len(p.Cells), pairs, procedures)
	}
}
