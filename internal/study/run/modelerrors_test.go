package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestModelSettingErrorsHaveTheirPosition checks that errors of settings that are detected only
// when the model is opened start with their position in the study file: FILE:LINE:COLUMN.
func TestModelSettingErrorsHaveTheirPosition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", testmodel.Options{})
	// data and model are added to the entries of the study, and want is a part of the error. The
	// model has 3 x 16 x 16 inputs; 64 pixels, 1 channel, and the names nope, z and NCZZ are wrong.
	for _, c := range []struct{ data, model, position, want string }{
		{"", "preprocess: {preset: none, mean: [1, 2]}", "study.yaml:4:66: ", "mean has 2 values"},
		{"", "preprocess: {std: 0}", "study.yaml:4:51: ", "std[0] is 0"},
		{"", "preprocess: {crop: 64}", "study.yaml:4:52: ", "crop: 16"},
		{"", "preprocess: {channels: 1}", "study.yaml:4:56: ", "channels: 3"},
		{"", "layers: [conv, \"nope*\"]", "study.yaml:4:48: ", `no layer matches "nope*"`},
		{"", "input: z", "study.yaml:4:40: ", `unknown input "z"`},
		{"", "output: z", "study.yaml:4:41: ", `unknown output "z"`},
		{"", "inputs: {z: 1}", "study.yaml:4:42: ", `unknown input "z"`},
		{"", "axes: {conv: NCZZ}", "study.yaml:4:40: ", "letters other than"},
		{", classes: [a, b]", "layers: [conv]", "study.yaml:2:76: ", "classes"},
	} {
		s := studytest.Parse(t, dir, `name: positions
data: [{name: shapes, shapes: {n: 20, size: 16, kinds: [square]}`+c.data+`}]
models:
  - {name: net, onnx: net.onnx, `+c.model+`}
transforms: [{name: turned, rotate: 90}]
measures: [accuracy, distance]
`)
		p, err := study.NewPlan(t.Context(), s, studytest.Options(t))
		if err == nil { // only one of the measures fails
			defer p.Close()
			if len(p.Failures.Causes) == 0 {
				t.Errorf("%s: no error", c.model+c.data)
				continue
			}
			err = p.Failures.Causes[0]
		}
		if msg := err.Error(); !strings.HasPrefix(msg, filepath.Join(dir, c.position)) || !strings.Contains(msg, c.want) || strings.Contains(msg, "\n") {
			t.Errorf("%s: the error is %q, want %q and %q in one line", c.model+c.data, msg, c.position, c.want)
		}
	}
}

// saveGraph writes an ONNX model with the graph that add adds to b.
func saveGraph(t *testing.T, path string, add func(b *onnx.Builder)) {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	add(b)
	testmodel.Save(t, path, b)
}

// TestModelOfAnySizeNeedsImagesOfOneSize checks that a model whose graph accepts images of any size
// is refused for data of two sizes, unless the study sets one size.
func TestModelOfAnySizeNeedsImagesOfOneSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveGraph(t, filepath.Join(dir, "anysize.onnx"), func(b *onnx.Builder) {
		b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, -1, -1)))
	})
	text := `name: sizes
data:
  - {name: small, shapes: {n: 20, size: 16}}
  - {name: large, shapes: {n: 20, size: 24}}
models: [{name: anysize, onnx: anysize.onnx}]
transforms: [{name: turned, rotate: 90}]
measures: [distance]
`
	_, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text), studytest.Options(t))
	if err == nil || !strings.Contains(err.Error(), "data small are 16 x 16 and those of data large are 24 x 24: set one size with preprocess: {crop: 16}") {
		t.Errorf("error %v, want one on the two sizes of images", err)
	}
	p, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, strings.Replace(text, "anysize.onnx}", "anysize.onnx, preprocess: {crop: 16}}", 1)), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
}

// TestNaNErrorNamesTheSample checks that the error of an activation that is NaN names the sample:
// the data set and an index, such as shapes#7.
func TestNaNErrorNamesTheSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveGraph(t, filepath.Join(dir, "log.onnx"), func(b *onnx.Builder) {
		b.Output("log", b.Op("Log", nil, b.Sub(b.Input("x", onnx.Float, -1, 3, 16, 16), b.Scalar(0.5)))) // NaN for pixels below 0.5
		b.Output("y", b.Relu("log"))
	})
	for _, measure := range []string{"distance", "seis"} {
		s := studytest.Parse(t, dir, `name: log
data: [{name: shapes, shapes: {n: 40, size: 16}}]
models: [{name: log, onnx: log.onnx, layers: [log, output]}]
transforms: [{name: turned, rotate: 90}]
measures: [`+measure+`]
`)
		o := studytest.Options(t)
		o.FailFast = true
		_, err := study.Run(t.Context(), s, filepath.Join(dir, measure), o)
		if err == nil || !strings.Contains(err.Error(), "NaN or infinity in the activations of sample") || !strings.Contains(err.Error(), ", shapes#") {
			t.Errorf("%s: error %v, want one that names the sample", measure, err)
		}
	}
}
