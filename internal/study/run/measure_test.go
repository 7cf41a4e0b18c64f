package run_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/transform"
)

// openTest writes a test model and opens it with the layers conv and logits.
func openTest(t *testing.T, o study.Options, dir, name string, m testmodel.Options) *model.Model {
	t.Helper()
	out, err := modeltest.Open(t, testmodel.Write(t, dir, name, m), model.Options{Layers: []string{"op:Conv", "output"}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testShapes returns 60 images, each of a coloured shape.
func testShapes(t *testing.T) dataset.Source {
	t.Helper()
	src, err := dataset.OpenShapes(dataset.ShapesOptions{N: 60, Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestMeasureReportsNaN(t *testing.T) {
	t.Parallel()
	o := studytest.Options(t)
	m := openTest(t, o, t.TempDir(), "broken", testmodel.Options{Poison: float32(math.NaN())})
	_, err := study.Measure(t.Context(), m, testShapes(t), transform.Rotate{Angle: transform.Fixed(90)}, distance.New(distance.Settings{}))
	if err == nil || !strings.Contains(err.Error(), "layer conv") || !strings.Contains(err.Error(), "NaN or infinity") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob("failures*"); len(left) > 0 {
		t.Errorf("Measure has no run folder, yet it writes %v", left)
	}
}

// Compare compares each of the two layers of one model, conv and logits, with each of another's.
// The measure correlation (correlation_test.go) is that of mean activations over samples.
func TestCompare(t *testing.T) {
	t.Parallel()
	o := studytest.Options(t)
	dir := t.TempDir()
	a := openTest(t, o, dir, "one", testmodel.Options{})
	b := openTest(t, o, dir, "big", testmodel.Options{Size: 24})
	pairs, err := study.Compare(t.Context(), a, b, testShapes(t), correlation{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := study.Compare(t.Context(), a, a, testShapes(t), correlation{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pairs) != 4 || len(self) != 4 || pairs[1].Layer.Name != "conv" || pairs[1].Other.Name != "logits" || len(pairs[1].Scores) != 1 {
		t.Fatalf("pairs of layers of two models: %+v; of one: %+v", pairs, self)
	}
	for _, p := range self {
		if same := p.Layer.Name == p.Other.Name; same != (math.Abs(p.Scores[0].Value-1) < 1e-6) {
			t.Errorf("%s with %s: correlation %v", p.Layer.Name, p.Other.Name, p.Scores[0].Value)
		}
	}
	broken := openTest(t, o, dir, "broken", testmodel.Options{Poison: float32(math.NaN())}) // a NaN weight
	if _, err := study.Compare(t.Context(), a, broken, testShapes(t), correlation{}); err == nil || !strings.Contains(err.Error(), "NaN or infinity") {
		t.Errorf("with a broken model: %v", err)
	}
}
