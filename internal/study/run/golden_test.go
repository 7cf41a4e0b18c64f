package run_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/scores"
)

var everyLayer = flag.Bool("every-layer", false, "compare SEIS with golden.json at every layer, which takes minutes")

// golden is testdata/cifar/golden.json: values for two ResNets on CIFAR-10, computed by golden.py
// with PyTorch and numpy in float64 from the definitions, independently of this program.
type golden struct {
	Images       int                     `json:"images"`
	SEISImages   int                     `json:"seis_images"`
	LayerColumns []string                `json:"layer_columns"`
	Models       map[string][]goldenView `json:"models"`
}

// A goldenView holds the values of one model under one transformation.
type goldenView struct {
	Transform  string               `json:"transform"`
	Parameter  string               `json:"parameter"`
	Prediction map[string]float64   `json:"prediction"` // by statistic, see goldenMeasures
	Layers     map[string][]float64 `json:"layers"`     // by tensor; the columns of LayerColumns, only the first three where SEIS is not computed
}

// hasSEIS reports whether the view has all columns. Those after the first three are of SEIS, the
// Subspace-based Equivariance and Invariance Scores: see package measure/seis.
func (v goldenView) hasSEIS(g *golden) bool {
	for _, values := range v.Layers {
		if len(values) != len(g.LayerColumns) {
			return false
		}
	}
	return true
}

func readGolden(t *testing.T) *golden {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "cifar", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for model, layers := range map[string]int{"resnet20": 19 + 19, "resnet32": 31 + 31} { // convolutions and ReLUs
		if len(g.Models[model]) != 8 { // three quarter turns, and the five other transformations
			t.Fatalf("golden.json has %d views of %s", len(g.Models[model]), model)
		}
		for _, v := range g.Models[model] {
			if len(v.Layers) != layers || len(v.Prediction) != len(goldenMeasures) {
				t.Fatalf("golden.json has %d layers and %d scores of predictions of %s under %s", len(v.Layers), len(v.Prediction), model, v.Transform)
			}
		}
	}
	return &g
}

// goldenTransforms are the transformations of golden.py as a study file has them.
var goldenTransforms = map[string]string{
	"quarter":     "rotate: {values: [90, 180, 270]}",
	"gray":        "grayscale: {}",
	"tilt":        "rotate: 15",
	"tilt-filled": "rotate: {angle: 15, fill: 0}",
	"affine":      "affine: {rotate: 10, translate-x: 0.05, translate-y: -0.05, scale: 1.1}",
	"blur":        "gaussian-blur: 1",
}

// goldenRun runs a study of the given layers of one of the models on the first images of the test
// set, under the transformations of views.
func goldenRun(t *testing.T, model string, layers []string, views []goldenView, limit int, measures string) goldenRows {
	t.Helper()
	text := fmt.Sprintf(`name: golden
data: [{name: cifar10, cifar10: %q, limit: %d}]
models:
  - name: %s
    onnx: %q
    preprocess: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
    layers: [%s]
`, testdata.Path(t, "cifar10", "test_batch.bin"), limit, model, testdata.Path(t, "models", model+"-cifar10.onnx"), strings.Join(layers, ", "))
	text += "measures: [" + measures + "]\ntransforms:\n"
	for i, v := range views {
		if i == 0 || v.Transform != views[i-1].Transform {
			text += fmt.Sprintf("  - {name: %s, %s}\n", v.Transform, goldenTransforms[v.Transform])
		}
	}
	dir := t.TempDir()
	r := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	rows := goldenRows{}
	for _, row := range r.Rows {
		rows[goldenKey{row.Transform, row.Parameter, row.Layer, row.Measure, row.Statistic}] = row
	}
	return rows
}

// goldenLayers are all layers of golden.json, as in a study file.
var goldenLayers = []string{"op:Conv", "op:Relu"}

type goldenKey struct{ transform, parameter, layer, measure, statistic string }

type goldenRows map[goldenKey]scores.Row

// want compares a score of n samples with the golden value and returns the absolute difference.
func (rows goldenRows) want(t *testing.T, key goldenKey, n int, want, tolerance float64) float64 {
	t.Helper()
	row, ok := rows[key]
	if !ok {
		t.Errorf("no score for %+v", key)
		return 0
	}
	difference := math.Abs(row.Value - want)
	if !(difference <= tolerance) || row.N != n {
		t.Errorf("%+v: %v of n = %d, want %v of n = %d (difference %.2g)", key, row.Value, row.N, want, n, difference)
	}
	return difference
}

// worst is the largest difference of each statistic; note adds one.
type worst map[string]float64

func (w worst) note(statistic string, difference float64) {
	w[statistic] = max(w[statistic], difference)
}

func (w worst) String() string {
	var parts []string
	for _, statistic := range slices.Sorted(maps.Keys(w)) {
		parts = append(parts, fmt.Sprintf("%s %.2g", statistic, w[statistic]))
	}
	return strings.Join(parts, ", ")
}

// goldenMeasures maps each statistic of a prediction to its measure. clean and moved are on
// original and on transformed images, and ei is the effective invariance.
var goldenMeasures = map[string]string{
	"clean": "accuracy", "moved": "accuracy", "drop": "accuracy", "ei": "effective-invariance",
	"js": "prediction-divergence", "kl": "prediction-divergence", "l2": "prediction-divergence", "agreement": "prediction-divergence",
}

// TestPredictionsAndDistancesAgreeWithPyTorch compares scores of predictions and distances of
// activations on real networks and images with an independent implementation. The tolerances are
// those of float32 forward passes. No two class scores are so close that rounding changes which
// class is predicted.
func TestPredictionsAndDistancesAgreeWithPyTorch(t *testing.T) {
	g := readGolden(t)
	for model, views := range g.Models {
		t.Run(model, func(t *testing.T) {
			rows := goldenRun(t, model, goldenLayers, views, g.Images, "accuracy, effective-invariance, prediction-divergence, distance")
			worst := worst{}
			var rotation []float64
			for _, v := range views {
				for statistic, want := range v.Prediction {
					difference := rows.want(t, goldenKey{v.Transform, v.Parameter, "", goldenMeasures[statistic], statistic}, g.Images, want, 1e-5)
					worst.note(statistic, difference)
				}
				if v.Transform == "quarter" {
					rotation = append(rotation, v.Prediction["ei"])
				}
				for layer, values := range v.Layers {
					for i, statistic := range g.LayerColumns[:3] {
						difference := rows.want(t, goldenKey{v.Transform, v.Parameter, layer, "distance", statistic}, g.Images, values[i], 1e-5*values[i])
						worst.note("distance "+statistic, difference/values[i])
					}
				}
			}
			mean := (rotation[0] + rotation[1] + rotation[2]) / 3
			rows.want(t, goldenKey{"quarter", "", "", "effective-invariance", "ei"}, g.Images, mean, 1e-5)
			t.Logf("worst differences (of distances: relative): %s", worst)
		})
	}
}

// TestSEISAgreesWithSingularValueDecompositions compares SEIS from streamed second moments with
// singular value decompositions of the matrices: under every transformation, at the first
// convolution and at layers of at most 16 x 16 positions, or at all layers with -every-layer. The
// rank is the smallest number of components with 99 % of the variance. Rounding does not change it:
// no share of the variance that golden.py computed is closer to 99 % than 4e-8.
func TestSEISAgreesWithSingularValueDecompositions(t *testing.T) {
	// Not parallel: the library is set while no other test computes.
	b := blas.Load()
	if b.Path == "" {
		t.Skipf("no fast BLAS, without which this takes an hour: %s", b.Hint)
	}
	b.SetThreads(1) // runs have two workers, here and in the tests that follow
	g := readGolden(t)
	index := func(column string) int { return slices.Index(g.LayerColumns, column) }
	for model, views := range g.Models {
		t.Run(model, func(t *testing.T) {
			views = slices.DeleteFunc(views, func(v goldenView) bool { return !v.hasSEIS(g) })
			if len(views) == 0 {
				t.Fatal("golden.json has no SEIS")
			}
			layers := slices.Sorted(maps.Keys(views[0].Layers))
			selected := goldenLayers
			if !*everyLayer {
				layers = slices.DeleteFunc(layers, func(l string) bool { return strings.HasPrefix(l, "/layer1/") || l == "/Relu_output_0" })
				selected = layers
			}
			rows := goldenRun(t, model, selected, views, g.SEISImages, "seis: {null: false, interval: false}")
			worst := worst{}
			for _, v := range views {
				for _, layer := range layers {
					values := v.Layers[layer]
					check := func(statistic string, want, tolerance float64) {
						difference := rows.want(t, goldenKey{v.Transform, v.Parameter, layer, "seis", statistic}, int(values[index("observations")]), want, tolerance)
						worst.note(statistic, difference)
					}
					check("equivariance", values[index("equivariance")], 1e-5)
					// SEIS takes the smaller of the ranks of clean and of moved (transformed)
					// images.
					check("rank", min(values[index("rank")], values[index("rank_moved")]), 0)
					if v.Transform != "quarter" { // an exact symmetry may give equal correlations, whose vectors are not unique
						check("invariance", values[index("invariance")], 3e-4)
					}
				}
			}
			t.Logf("worst differences: %s", worst)
		})
	}
}
