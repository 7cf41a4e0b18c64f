package run_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// meanPixel is a procedure (a measure that reads samples itself) that needs a transformation. It
// scores each value of the transformation with the mean over all pixels of the transformed images.
type meanPixel struct{}

func (*meanPixel) Name() string                   { return "mean-pixel" }
func (*meanPixel) Descriptor() measure.Descriptor { return measure.Descriptor{Name: "mean-pixel"} }
func (*meanPixel) Version() int                   { return 1 }
func (*meanPixel) Settings() any                  { return nil }
func (*meanPixel) Needs() procedure.Needs         { return procedure.Needs{Transform: true, Samples: 20} }
func (*meanPixel) Skip(*procedure.Job) string     { return "" }

func (*meanPixel) Work(j *procedure.Job) int64 {
	return int64(j.Data.Len() * len(j.Transform.Values))
}

func (*meanPixel) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	samples, err := j.Read(ctx, dataset.Indices(j.Data.Len()), j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	var out []measure.PairScore
	for v, value := range j.Transform.Values {
		var sum, n float64
		for _, s := range samples {
			transformed := tensor.New(s.Input.Shape...)
			j.Transform.Draw(j.Key, v, s.Index).Apply(transformed, s.Input)
			for _, x := range transformed.Data {
				sum += float64(x)
				n++
			}
		}
		score := measure.Plain("mean", sum/n, len(samples))
		score.Parameter = value.Parameter
		out = append(out, measure.PairScore{A: measure.WholeModel, B: measure.WholeModel, Score: score})
	}
	return out, nil
}

// sweepText is a study for a sweep, which is a procedure over all values of a transformation. The
// transformations have listed values, a range, a range of a parameter among several, and a range
// for feature maps.
const sweepText = `name: sweep
data: [{name: shapes, shapes: {n: 30, size: 16, seed: 2}}]
models: [{name: one, onnx: one.onnx, layers: [output]}]
transforms:
  - {name: listed, brightness: {values: [0.25, 0.5]}}
  - {name: drawn, brightness: [0.2, 0.8]}
  - {name: turned, affine: {rotate: [-10, 10]}}
  - {name: maps, translate: 0.1, on: activations}
trials: 2
measures: [distance]
`

// sweepStudy parses a study and adds m to its measures.
func sweepStudy(t *testing.T, dir, text string, m *meanPixel) *study.Study {
	t.Helper()
	s := studytest.Parse(t, dir, text)
	s.Measures = append(s.Measures, spec.MeasureSpec{Method: m, Pairs: catalog.PairsOf(m)})
	return s
}

func TestProceduresWithTransformations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	o := studytest.Options(t)
	result := studytest.Run(t, sweepStudy(t, dir, sweepText, &meanPixel{}), filepath.Join(dir, "run"), o)
	// By transformation, parameter ("" if drawn) and trial, a repetition of all random draws (-1: the
	// mean over trials).
	found := map[string]float64{}
	for _, r := range result.Rows {
		if r.Measure == "mean-pixel" {
			found[fmt.Sprint(r.Transform, " ", r.Parameter, " ", r.Trial)] = r.Value
		}
	}
	for _, want := range []string{"listed 0.25 0", "listed 0.5 1", "drawn  0", "drawn  1", "turned  0", "listed 0.25 -1", "drawn  -1"} {
		if _, ok := found[want]; !ok {
			t.Errorf("there is no score of %q among %v", want, found)
		}
	}
	if len(found) != 3*(2+1+1) { // two trials and their mean, of two listed values and two ranges
		t.Errorf("the scores are %v", found)
	}
	if a, b := found["listed 0.25 0"], found["listed 0.5 0"]; math.Abs(b-2*a) > 1e-7 || a == 0 {
		t.Errorf("at half the brightness the mean is %v, at a quarter %v", b, a)
	}
	if found["drawn  0"] == found["drawn  1"] {
		t.Error("both trials have the same random draws")
	}
	skipped := slices.ContainsFunc(result.Record.Skipped, func(s scores.Skip) bool {
		return s.Measure == "mean-pixel" && s.Why == "it transforms inputs, and maps transforms activations"
	})
	if !skipped {
		t.Errorf("skipped are %v", result.Record.Skipped)
	}
}

// TestProceduresDrawAsPassesDo checks that a procedure transforms a sample with the same random
// draws as the passes of the study. A pass reads the data once for all measures that need no
// procedure; its views are the values of transformations in each trial.
func TestProceduresDrawAsPassesDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	p, err := study.NewPlan(t.Context(), sweepStudy(t, dir, strings.Replace(sweepText, "[0.2, 0.8]}", "[0.2, 0.8], per: trial}", 1), &meanPixel{}), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const sample = 7 // any one
	compared := 0
	for _, pass := range plan.Passes(p.Cells, plan.Limits{Memory: 1 << 30, Cores: 2}, study.Shard{}) {
		pass.Seed = p.Study.Seed
		for _, v := range pass.Views {
			for _, c := range p.Cells {
				if c.Procedure == nil || c.View.Name != v.Name || c.View.Trial != v.Trial || v.Parameter != "" {
					continue
				}
				job := c.Procedure.Job
				a, _ := transform.Parameter(pass.Draw(v, sample))
				b, _ := transform.Parameter(job.Transform.Draw(job.Key, 0, sample))
				if compared++; a != b {
					t.Errorf("%s: a pass draws %v, and a procedure %v", v.Name, a, b)
				}
			}
		}
	}
	if compared != 4 { // the transformations drawn and turned, in two trials
		t.Errorf("%d draws were compared, want 4", compared)
	}
}

// TestSweepsDependOnTheirValues checks that the key of a sweep's cell (unit of work), by which its
// scores are stored, depends on the values of the transformation. A study without transformations
// skips the sweep.
func TestSweepsDependOnTheirValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	key := func(text string) string {
		p, err := study.NewPlan(t.Context(), sweepStudy(t, dir, text, &meanPixel{}), studytest.Options(t))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		i := slices.IndexFunc(p.Cells, func(c *plan.Cell) bool { return c.Procedure != nil && c.View.Name == "listed" })
		return p.Cells[i].Key
	}
	if key(sweepText) == key(strings.Replace(sweepText, "[0.25, 0.5]", "[0.25, 0.75]", 1)) {
		t.Error("sweeps over different values have the same key")
	}
	without := sweepStudy(t, dir, strings.Replace(sweepText[:strings.Index(sweepText, "transforms")], "\ntrials", "", 1)+"measures: [accuracy]\n", &meanPixel{})
	p, err := study.NewPlan(t.Context(), without, studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Skips) != 1 || p.Skips[0].Why != "the study has no transformation" {
		t.Errorf("skipped are %v", p.Skips)
	}
}
