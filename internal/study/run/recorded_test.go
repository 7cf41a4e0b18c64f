package run_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// recordedText is a study of a model whose entry has the placeholder MODEL.
const recordedText = `name: test
seed: 3
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models:
  - {name: small, MODEL, layers: ["*"]}
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
  - {name: shift, translate: [-0.2, 0.2], on: activations, per: trial}
measures: [accuracy, effective-invariance, distance, seis, similarity, equivariance-error]
`

// record stores the layers of a model on the shapes of recordedText, clean and rotated, and returns
// their names. The values of the last sample pass through change.
func record(t *testing.T, dir, path string, change func(layer string, z []float32)) []string {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"op:Conv", "op:Relu", "output"}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := dataset.OpenShapes(dataset.ShapesOptions{N: 60, Size: 16, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	session, err := m.NewSession(m.Layers(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	buf, err := session.NewBuffers(src.Len())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for view, angle := range map[string]float64{"clean": 0, "quarter/90": 90, "quarter/180": 180} {
		var images []tensor.Tensor
		for i := range src.Len() {
			s, err := src.At(t.Context(), i, m.Frame())
			if err != nil {
				t.Fatal(err)
			}
			x, err := s.Apply(transform.Rotate{Angle: transform.Fixed(angle)}.Draw(nil))
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, x)
		}
		if err := session.Run(t.Context(), images, buf); err != nil {
			t.Fatal(err)
		}
		names = nil
		for i, l := range m.Layers() {
			names = append(names, l.Name)
			z := buf.Layer(i)
			change(l.Name, z.At(src.Len()-1).Data)
			file := filepath.Join(dir, view, l.Name+".npy")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := dataset.WriteNPY(f, z); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	return names
}

// TestRecordedActivations checks that a study of recorded activations gives the scores of the model
// that they were recorded from.
func TestRecordedActivations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testmodel.Write(t, dir, "small", testmodel.Options{})
	names := record(t, filepath.Join(dir, "recorded"), path, func(string, []float32) {})
	text := strings.Replace(recordedText, `["*"]`, `["`+strings.Join(names, `", "`)+`"]`, 1)
	parse := func(entry string) *study.Study {
		return studytest.Parse(t, dir, strings.Replace(text, "MODEL", entry, 1))
	}
	o := studytest.Options(t)
	want := studytest.Run(t, parse("onnx: small.onnx"), filepath.Join(dir, "computed"), o).Rows
	got := studytest.Run(t, parse("activations: recorded, output: "+names[len(names)-1]), filepath.Join(dir, "looked-up"), o).Rows
	for _, rows := range [][]scores.Row{want, got} {
		for i := range rows {
			rows[i].Depth = 0 // of nodes, or of layers in the order of their names
		}
		slices.SortStableFunc(rows, func(a, b scores.Row) int { return strings.Compare(a.Layer, b.Layer) })
	}
	studytest.SameScores(t, want, got, 1e-5)
}

// TestRecordedActivationsThatDoNotFit checks the errors of studies whose data, views or values do
// not fit the recorded activations.
func TestRecordedActivationsThatDoNotFit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testmodel.Write(t, dir, "small", testmodel.Options{})
	record(t, filepath.Join(dir, "recorded"), path, func(layer string, z []float32) {
		if layer == "conv" {
			z[0] = float32(math.NaN())
		}
	})
	run := func(change ...string) string {
		text := strings.NewReplacer(append(change, "MODEL", "activations: recorded")...).Replace(recordedText)
		result, err := study.Run(t.Context(), studytest.Parse(t, dir, text), t.TempDir(), studytest.Options(t))
		if err != nil {
			return err.Error()
		}
		var all strings.Builder
		for _, f := range result.Record.Failed {
			all.WriteString(f.Layer + ": " + f.Error + "\n")
		}
		for _, r := range result.Rows {
			all.WriteString(r.Layer + ": " + r.Warning + "\n")
		}
		return all.String()
	}
	for want, change := range map[string][]string{
		"activations of 60 samples, and data shapes have 61": {"n: 60", "n: 61"},
		"activations of 60 samples, and data shapes have 40": {"n: 60", "n: 40"},
		"there is no folder":                       {"[90, 180]", "[90, 270]"},
		"conv: NaN or infinity":                    {},
		"no layer matches":                         {`["*"]`, "[convolution]"},
		"no such file or folder: " + dir + "/else": {"MODEL", "activations: else"},
	} {
		if got := run(change...); !strings.Contains(got, want) {
			t.Errorf("%q: errors %q, want %q", change, got, want)
		}
	}
}
