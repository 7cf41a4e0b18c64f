package run_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// deviceStudies use every measure, on models and data as small as the measures allow. In sums, the
// device adds up what the distances need, since no other measure reads the layers. The ONNX
// model exact detects the squares of its images exactly, biased takes some for red ones
// (testmodel.WriteDetector; writeSquares is in dense_test.go).
var deviceStudies = []string{`name: layers
seed: 3
batch: 20
data: [{name: shapes, shapes: {n: 48, size: 16, seed: 2}}]
models:
  - {name: one, onnx: one.onnx, layers: [conv, "op:Relu", output]}
  - {name: two, onnx: two.onnx, layers: [conv, "op:Relu", output]}
transforms:
  - {name: quarter, rotate: {values: [90]}}
  - {name: dim, brightness: {values: [0.5]}}
  - {name: drawn, brightness: [0.2, 1.8]}
measures:
  - accuracy
  - effective-invariance
  - prediction-divergence
  - prediction-agreement: {between: [one, two]}
  - distance
  - seis
  - equivariance-error
  - latent-operator
  - geometry
  - similarity: {statistics: [linear-cka, debiased-cka, svcca]}
  - lie-derivative: {images: 16}
  - stir: {between: [one, two], images: 16, steps: 20}
  - stitching: {between: [one, two], layers: penultimate, start: random, epochs: 1}
  - firing: {rate: 0.1, steps: 2}
  - informativeness: {factors: [x, label], probe: [ridge, slp], epochs: 2, seeds: 1}
  - parameter-equivariance: {probe: [ridge]}
  - representation-equivariance: {probe: [ridge]}
  - invariance: {parts: 2}
  - retrieval
  - disentanglement: {factors: x, probe: ridge, pool: flatten}
  - confounding: {factors: x}
  - disentanglement-metrics: {factors: [x, scale]}
  - lidar: {views: 3}
  - robust-accuracy: {images: 32, steps: 3, radius: 0.5}
`, `name: sums
batch: 20
data: [{name: shapes, shapes: {n: 48, size: 16, seed: 2}}]
models: [{name: one, onnx: one.onnx, layers: [conv, "op:Relu"]}]
transforms:
  - {name: quarter, rotate: {values: [90]}}
  - {name: drawn, brightness: [0.2, 1.8]}
measures: [effective-invariance, distance]
`, `name: boxes
data: [{name: shapes, shapes: {n: 32, size: 32, kinds: [square]}}]
models:
  - {name: exact, onnx: exact.onnx, output: {boxes: suppressed, classes: 3}}
  - {name: biased, onnx: biased.onnx, output: {boxes: suppressed, classes: 3}}
transforms: [{name: turn, rotate: {values: [90]}}]
measures: [dense-equivariance, {dense-agreement: {between: [exact, biased]}}]
`, `name: labelled
data: [{name: squares, coco: {annotations: boxes.json, images: .}, classes: ["0"]}]
models: [{name: exact, onnx: exact.onnx, output: {boxes: suppressed, classes: 3}}]
transforms: [{name: half, translate: {x: 0.5}}]
measures: [dense-accuracy]
`, `name: sequences
data: [{name: clips, sequences: clips}]
models: [{name: one, onnx: one.onnx}]
measures: [flip-rate]
`}

// maxDeviceDifference bounds the relative difference between scores of two devices.
const maxDeviceDifference = 1e-4

var deviceTable = flag.String("device-table", "", "write the differences between the CPU and this adapter to a CSV file, beside those of others: papers/results/devices.csv")

// TestScoresAgreeOnWebGPU runs every measure on the CPU and on WebGPU. Each score, bound of an
// interval and null (the score that chance gives) must agree within maxDeviceDifference.
func TestScoresAgreeOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	testmodel.Write(t, dir, "two", testmodel.Options{})
	testmodel.WriteDetector(t, filepath.Join(dir, "exact.onnx"), 32, false)
	testmodel.WriteDetector(t, filepath.Join(dir, "biased.onnx"), 32, true)
	writeSquares(t, dir)
	writeSequence(t, filepath.Join(dir, "clips", "a.gif"), 16, "rrggr")
	writeSequence(t, filepath.Join(dir, "clips", "b.gif"), 16, "rgbbr")
	missing := map[string]bool{} // measures of which no score was compared
	for _, f := range catalog.Measures() {
		missing[f.Descriptor.Name] = true
	}
	for _, name := range []string{"python", "python-set"} { // of functions that a Python process computes from activations
		delete(missing, name)
	}
	differences := map[string]difference{}
	for _, text := range deviceStudies {
		rows := map[string][]scores.Row{}
		for _, device := range []string{"cpu", "webgpu"} {
			o := studytest.Options(t)
			o.Device, o.FeatureCache = device, &features.Store{Dir: filepath.Join(dir, "features-"+device)}
			s := studytest.Parse(t, dir, text)
			rows[device] = studytest.Run(t, s, filepath.Join(dir, s.Name+"-"+device), o).Rows
		}
		compareDevices(t, rows["cpu"], rows["webgpu"], differences)
	}
	differ := false
	for _, name := range slices.Sorted(maps.Keys(differences)) {
		delete(missing, name)
		d := differences[name]
		differ = differ || d.relative > 0
		if d.relative > maxDeviceDifference {
			t.Errorf("%s: scores differ by %g: %s", name, d.relative, d.of)
		}
	}
	if !differ {
		t.Error("all scores are the same to the bit, so both runs used the same device")
	}
	if *deviceTable != "" {
		if err := storeDifferences(*deviceTable, ort.DeviceOf("webgpu").Adapter.Name, differences); err != nil {
			t.Error(err)
		}
	}
	for name := range missing {
		t.Errorf("no score of %s was compared", name)
	}
}

// TestSumsThatOverflowOnWebGPU checks distances of activations whose squares a float32 cannot hold:
// the activations are then copied to the CPU, which a warning says, and the scores are those of the
// CPU.
func TestSumsThatOverflowOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	dir := t.TempDir()
	testmodel.Write(t, dir, "huge", testmodel.Options{Poison: 1e25})
	s := studytest.Parse(t, dir, `name: huge
data: [{name: shapes, shapes: {n: 8, size: 16}}]
models: [{name: huge, onnx: huge.onnx, layers: [conv]}]
transforms: [{name: quarter, rotate: {values: [90]}}]
measures: [distance]
`)
	rows := map[string][]scores.Row{}
	for _, device := range []string{"cpu", "webgpu"} {
		o := studytest.Options(t)
		var warnings []string
		o.Device, o.Warn = device, func(text string) { warnings = append(warnings, text) }
		rows[device] = studytest.Run(t, s, filepath.Join(dir, device), o).Rows
		if want := device == "webgpu"; strings.Contains(strings.Join(warnings, "\n"), "huge: activations are copied to the CPU") != want {
			t.Errorf("%s: warnings %q", device, warnings)
		}
	}
	studytest.SameScores(t, rows["cpu"], rows["webgpu"], maxDeviceDifference)
}

// TestEstimateOnWebGPU checks that times are estimated for studies whose distances the device adds
// up, and for one whose activations it cannot add up.
func TestEstimateOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	for name, poison := range map[string]float32{"sums": 0, "sums that overflow": 1e25} {
		dir := t.TempDir()
		testmodel.Write(t, dir, "one", testmodel.Options{Poison: poison})
		o := studytest.Options(t)
		o.Device = "webgpu"
		text := strings.Replace(deviceStudies[1], "effective-invariance, ", "", 1)
		p, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text), o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		costs, err := study.Estimate(t.Context(), p, filepath.Join(dir, "run"), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(costs) != 1 || costs[0].Engine <= 0 || costs[0].Measure <= 0 {
			t.Errorf("%s: estimates %+v, want one with times of the engine and of measuring", name, costs)
		}
	}
}

// storeDifferences writes the number of scores of each measure and their largest difference on an
// adapter to a CSV file, which keeps what it has of other adapters.
func storeDifferences(path, adapter string, differences map[string]difference) error {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stored, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	rows := [][]string{{"measure", "statistic", "value"}}
	for _, name := range slices.Sorted(maps.Keys(differences)) {
		d := differences[name]
		rows = append(rows, []string{name, "scores", strconv.Itoa(d.scores)})
		for _, r := range stored {
			if r[0] == name && r[1] != "scores" && r[1] != adapter {
				rows = append(rows, r)
			}
		}
		rows = append(rows, []string{name, adapter, fmt.Sprintf("%.1g", d.relative)})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// A difference is the largest one between the scores of a measure on two devices.
type difference struct {
	scores   int
	relative float64
	of       string // statistic and layer with the largest difference, and the two values
}

// compareDevices updates the largest differences, by measure, with the rows of two runs: a on the
// CPU, b on WebGPU.
func compareDevices(t *testing.T, a, b []scores.Row, largest map[string]difference) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d and %d rows", len(a), len(b))
	}
	for i, x := range a {
		y := b[i]
		if x.Measure != y.Measure || x.Statistic != y.Statistic || x.Layer != y.Layer || x.N != y.N || x.Warning != y.Warning {
			t.Fatalf("row %d is %+v on the CPU and %+v on WebGPU", i, x, y)
		}
		d := largest[x.Measure]
		d.scores++
		numbers := [][2]float64{{x.Value, y.Value}, {x.Null, y.Null}}
		if x.Variant == "ridge" {
			// The jackknife over ten parts of few training samples magnifies the rounding of each.
			if r := max(relativeDifference(x.Low, y.Low), relativeDifference(x.High, y.High)); !(r < 0.02) {
				t.Errorf("%s of %s: the intervals are [%g, %g] on the CPU and [%g, %g] on WebGPU", x.Statistic, x.Layer, x.Low, x.High, y.Low, y.High)
			}
		} else {
			numbers = append(numbers, [2]float64{x.Low, y.Low}, [2]float64{x.High, y.High})
		}
		for _, v := range numbers {
			if r := relativeDifference(v[0], v[1]); d.of == "" || cmp.Compare(r, d.relative) > 0 {
				d.relative, d.of = r, fmt.Sprintf("%s of %s: %.9g and %.9g", x.Statistic, cmp.Or(x.Layer, "the predictions"), v[0], v[1])
			}
		}
		largest[x.Measure] = d
	}
}

// relativeDifference returns |a - b| / max(|a|, 0.1), and +Inf if only one of them is NaN. The bound
// 0.1 is for scores near 0, which are differences of larger numbers, as the ends of intervals are.
func relativeDifference(a, b float64) float64 {
	switch {
	case a == b, math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) || math.IsNaN(b):
		return math.Inf(1)
	}
	return math.Abs(a-b) / max(math.Abs(a), 0.1)
}
