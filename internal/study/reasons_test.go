package study_test

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestRowsWithoutValueHaveAReason measures four equal black images, on which most statistics are
// not defined, and checks that each row without a value has a warning that says why.
func TestRowsWithoutValueHaveAReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "a", testmodel.Options{})
	testmodel.Write(t, dir, "b", testmodel.Options{})
	var black bytes.Buffer
	if err := png.Encode(&black, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "photos"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		write(t, photo(dir, i), black.Bytes())
	}
	s := studytest.Parse(t, dir, `name: reasons
data: [{name: photos, images: photos}]
models: [{name: a, onnx: a.onnx, layers: [all]}, {name: b, onnx: b.onnx, layers: [conv]}]
transforms: [{name: flip, flip: {}}, {name: turn, rotate: {values: [90]}}]
measures: [distance, effective-invariance, equivariance-error, firing, geometry, invariance, latent-operator, lie-derivative, prediction-divergence, retrieval, seis, similarity: {between: all}]
`)
	result, _ := study.Run(t.Context(), s, filepath.Join(dir, "out"), studytest.Options(t)) // a cell may fail, with its reason
	if result == nil {
		t.Fatal("the run has no result")
	}
	blank := 0
	for _, r := range result.Rows {
		if !math.IsNaN(r.Value) {
			continue
		}
		if blank++; r.Warning == "" {
			t.Errorf("%s %s %s of %s %s has no value and no reason", r.Measure, r.Variant, r.Statistic, r.Model, r.Layer)
		}
	}
	if blank < 10 {
		t.Errorf("%d rows have no value: too few to test reasons", blank)
	}
}
