package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/study/studytest"
)

// stirStudy is a study of one model, with the placeholders NAME, MODEL and DATA. The runs of two
// such studies are compared by STIR.
const stirStudy = `name: NAME
seed: 5
data:
  - {name: grey, shapes: {n: 60, size: 16, channels: 1}}
  - {name: DATA, shapes: {n: 30, size: 16}}
models: [{name: net, onnx: MODEL.onnx, tags: {family: x}, layers: [output]}]
transforms: [{name: quarter, rotate: {values: [90]}}]
measures: [distance]
`

// TestSTIRBetweenRuns checks STIR (shared invariances of two models) between two runs of models
// with the same name: one reads the red channel only, the other the green channel, by the weights
// that writeWeightedRGB takes. Each is sensitive to what the other ignores, so they share few
// invariances. A model shares all of its invariances with itself. STIRStudy returns the study that
// compares them, on data of which both runs have the name, in both directions. It finds images with
// equal representations by Steps steps of gradient descent.
func TestSTIRBetweenRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeWeightedRGB(t, dir, "red", 1, 0, 0)
	writeWeightedRGB(t, dir, "green", 0, 1, 0)
	load := func(name, model, data string) *study.Study {
		run := filepath.Join(dir, name)
		text := strings.NewReplacer("NAME", name, "MODEL", model, "DATA", data).Replace(stirStudy)
		studytest.Run(t, studytest.Parse(t, dir, text), run, studytest.Options(t))
		s, err := study.Load(filepath.Join(run, "study.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := load("a", "red", "one"), load("b", "green", "two")
	stirOptions := spec.STIROptions{Models: [][2]string{{"net", "net"}}, Images: 60, Steps: 150}
	for _, c := range []struct {
		b         *study.Study
		low, high float64
	}{{b, 0, 0.4}, {a, 0.99, 1}} {
		s, err := spec.STIRStudy(a, c.b, stirOptions)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Data) != 1 || s.Data[0].Name != "grey" || s.Seed != 5 {
			t.Fatalf("data %+v, seed %d", s.Data, s.Seed)
		}
		r := studytest.Run(t, s, filepath.Join(t.TempDir(), "run"), studytest.Options(t))
		var directions []string
		for _, row := range r.Rows {
			if row.Statistic != "stir" {
				continue
			}
			directions = append(directions, row.Model+" "+row.OtherModel)
			if !(row.Value >= c.low && row.Value <= c.high+1e-9) || row.N != 60 {
				t.Errorf("%s given %s: %v over %d images", row.OtherModel, row.Model, row.Value, row.N)
			}
		}
		if got := strings.Join(directions, ", "); got != "net (A) net (B), net (B) net (A)" {
			t.Errorf("directions %q, want %q", got, "net (A) net (B), net (B) net (A)")
		}
	}
}

func TestSTIRStudyErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeWeightedRGB(t, dir, "red", 1, 0, 0)
	newStudy := func(model, data string) *study.Study {
		return studytest.Parse(t, dir, strings.NewReplacer("NAME", "s", "MODEL", filepath.Join(dir, model), "DATA", "more", "grey", data).Replace(stirStudy))
	}
	// The model gone has no file, and the only data of otherData are named white.
	a, otherData, noFile := newStudy("red", "grey"), newStudy("red", "white"), newStudy("gone", "grey")
	otherData.Data = otherData.Data[:1]
	// The arguments are patterns of names of data; without any, the first data of both studies serve.
	stirOptions := func(data ...string) spec.STIROptions {
		return spec.STIROptions{Models: [][2]string{{"net", "net"}}, Data: data, Images: 10, Steps: 1}
	}
	for _, c := range []struct {
		a, b *study.Study
		s    spec.STIROptions
		want string
	}{
		{a, noFile, stirOptions(), "gone.onnx"},
		{a, otherData, stirOptions(), "no data of the same name"},
		{a, a, stirOptions("snow*"), "snow"},
		{a, a, spec.STIROptions{Models: [][2]string{{"net", "nett"}}}, "no model nett"},
	} {
		if _, err := spec.STIRStudy(c.a, c.b, c.s); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if s, err := spec.STIRStudy(a, a, stirOptions("*")); err != nil || len(s.Data) != 2 {
		t.Errorf("a pattern for all data: %v", err)
	}
}
