package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/scores"
)

// TestCoverage checks that of intervals of width 2 around 0, 1, 2, 3 and 4, the scores of five sets
// of images, those around 1, 2 and 3 contain the mean.
func TestCoverage(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i := range 5 {
		v := float64(i)
		rows = append(rows, scores.Row{Measure: "m", Statistic: "s", Value: v, Low: v - 1, High: v + 1})
	}
	c := coverageOf(rows)
	// The half width is 1, and 2.5 is the variance of 0 to 4.
	if c.sets != 5 || c.mean != 2 || math.Abs(c.covered-0.6) > 1e-12 || math.Abs(c.width-1/(1.96*math.Sqrt(2.5))) > 1e-12 || c.widthVariation != 0 {
		t.Errorf("coverage %+v, want 3 of 5 intervals with the mean 2, all of one width", c)
	}
	var out bytes.Buffer
	rows = append(rows, scores.Row{Measure: "m", Statistic: "none", Low: math.NaN(), High: math.NaN()})
	if err := write(&out, rows); err != nil || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "| 5 | 2.0000 |") || !strings.Contains(out.String(), "| 60 % |") {
		t.Errorf("error %v, want a table with one line, 5 sets and 60 %%; it is\n%s", err, out.String())
	}
}

// TestStudyOfProbes checks that the study that -probes asks for has each measure that uses probes
// (small networks trained on representations), and no other.
func TestStudyOfProbes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run([]string{"procedures", "-n", "40", "-sets", "2", "-probes", "-o", dir}, nil); err != nil {
		t.Fatal(err)
	}
	study, err := os.ReadFile(filepath.Join(dir, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"informativeness": true, "parameter-equivariance": true, "representation-equivariance": true,
		"invariance": true, "disentanglement": true, "retrieval": true, "firing": false, "stir": false} {
		if strings.Contains(string(study), "  - "+name) != want {
			t.Errorf("the study has %s: %v, want %v", name, !want, want)
		}
	}
}

// TestKinds checks that scores of different models and parameters are of different kinds. The
// scores of a kind differ only in the set of images.
func TestKinds(t *testing.T) {
	t.Parallel()
	r := scores.Row{Model: "a", Layer: "l", Measure: "m", Statistic: "s", Variant: "mlp", Factor: "x", Parameter: "10"}
	if k := kindOf(r); k != (kind{"m", "s mlp x 10", "a l"}) {
		t.Errorf("the kind is %+v, want model m, s mlp x 10 and layer a l", k)
	}
	other, changed := r, r
	other.Model, changed.Parameter = "b", "20"
	if kindOf(r) == kindOf(other) || kindOf(r) == kindOf(changed) {
		t.Error("scores of two models, or of two parameters, are of one kind")
	}
}

// TestSetsShareNoImage divides 12 images, whose labels tell them apart, into sets of 4. The study
// of one model has the measure seis; that of two models has measures of pairs, such as stitching.
func TestSetsShareNoImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := make([]byte, 12*record) // record: the bytes of a label and an image of CIFAR-10
	for i := range 12 {
		data[i*record] = byte(i)
	}
	file := filepath.Join(dir, "batch.bin")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "sets")
	if err := run([]string{"sets", "-n", "4", "-sets", "3", "-model", "m.onnx", "-o", out, file}, nil); err != nil {
		t.Fatal(err)
	}
	seen := map[byte]bool{}
	for _, name := range []string{"000.bin", "001.bin", "002.bin"} {
		set, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || len(set) != 4*record {
			t.Fatalf("%s has %d bytes (error %v), want %d", name, len(set), err, 4*record)
		}
		for i := range 4 {
			seen[set[i*record]] = true
		}
	}
	if len(seen) != 12 {
		t.Errorf("the sets have %d different images, want 12", len(seen))
	}
	two := filepath.Join(dir, "two")
	if err := run([]string{"sets", "-n", "4", "-sets", "3", "-model", "m.onnx", "-second", "s.onnx", "-o", two, file}, nil); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{out: "  - seis\n", two: "  - stitching: {between: [first, second], layers: penultimate}\n"} {
		if study, err := os.ReadFile(filepath.Join(folder, "study.yaml")); err != nil || !strings.Contains(string(study), want) {
			t.Errorf("%v, want %q in the study:\n%s", err, want, study)
		}
	}
	if err := run([]string{"sets", "-n", "5", "-sets", "3", "-o", out, file}, nil); err == nil {
		t.Error("no error where there are too few images")
	}
}

// TestCorrelationsCover checks that intervals of correlations contain the population's value in
// about 95 of 100 samples, also where each independent unit has several dependent points. These lie
// around the mean of their unit with the standard deviation spread.
func TestCorrelationsCover(t *testing.T) {
	t.Parallel()
	const samples = 400 // standard error 1.1 %
	for _, p := range []population{{units: 8, points: 1, correlation: 0.5, spread: 0.3}, {units: 10, points: 3, correlation: 0, spread: 0.3}} {
		pearson, spearman, err := p.covered(samples)
		if err != nil || pearson < 0.91 || pearson > 0.99 || spearman < 0.91 || spearman > 0.995 {
			t.Errorf("%+v: %.3f of the intervals of r and %.3f of those of rho contain it, want about 0.95; error %v", p, pearson, spearman, err)
		}
	}
	r, rho := population{units: 8, points: 1, correlation: 1, spread: 0}.values()
	if math.Abs(r-1) > 1e-12 || math.Abs(rho-1) > 1e-12 {
		t.Errorf("a perfect relation has r = %g and rho = %g, want 1 and 1", r, rho)
	}
	var out bytes.Buffer
	if err := run([]string{"correlation", "-samples", "2"}, &out); err != nil || strings.Count(out.String(), "\n") != 14 {
		t.Errorf("correlation prints %s, error %v; want 14 lines: 2 of the header and 12 of populations", out.String(), err)
	}
}

// TestProcedureStudy checks the study of measures that work in steps, such as inversion (gradient
// descent on an input). Set i, from 0, has the seed 1000 + i.
func TestProcedureStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run([]string{"procedures", "-n", "40", "-sets", "3", "-networks", "nets", "-o", dir}, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "study.yaml"))
	if err != nil || strings.Count(string(text), "shapes: {n: 40") != 3 || !strings.Contains(string(text), "seed: 1002") {
		t.Errorf("the study is %s, error %v; want three data sets of 40 shapes and the seed 1002", text, err)
	}
	if err := run([]string{"procedures", "-n", "4", "-o", dir}, nil); err == nil {
		t.Error("sets of 4 images, fewer than 20, are accepted")
	}
}

// TestResampledSets checks that a set of images drawn from all depends on its seed alone, and that
// its scores have intervals. A layerPopulation is a layer of each of two models on all images.
func TestResampledSets(t *testing.T) {
	t.Parallel()
	const images, dim = 60, 3
	var tables [2]*features.Table
	for i := range tables {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		data := make([]float32, images*dim)
		for j := range data {
			data[j] = float32(r.NormFloat64())
		}
		tables[i] = features.NewTable(nil, dim, data)
	}
	settings := similarity.Defaults()
	settings.Statistics = []string{similarity.LinearCKA, similarity.ProcrustesDistance}
	set := func(n int, seed uint64) ([]scores.Row, error) {
		p := layerPopulation{n: n, measure: "similarity"}
		m, err := p.measureOf(tables, settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.set(t.Context(), m, images, seed)
	}
	first, err := set(40, 3)
	if err != nil {
		t.Fatal(err)
	}
	again, err := set(40, 3)
	other, err2 := set(40, 4)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if len(first) != 2 {
		t.Fatalf("%d scores, want 2", len(first))
	}
	for i, r := range first {
		if !(r.Low < r.Value && r.Value < r.High) || r.N != 40 || r.Value != again[i].Value || r.High != again[i].High || r.Value == other[i].Value {
			t.Errorf("%s is %v in [%v, %v] of %d; again %v; of a set with another seed %v", r.Statistic, r.Value, r.Low, r.High, r.N, again[i].Value, other[i].Value)
		}
	}
	if _, err := set(61, 1); err == nil || !strings.Contains(err.Error(), "there must be 20 to 60") {
		t.Errorf("error %v for more images than there are", err)
	}
	if err := run([]string{"resampled", "-models", "one.onnx", "images.bin"}, nil); err == nil || !strings.Contains(err.Error(), "two names each") {
		t.Errorf("error %v for one model", err)
	}
}

// TestMeasuresOfSets measures sets by geometry and by prediction-agreement, which reads the labels
// in the files. A positive flip is an image that model 1 classifies wrongly and model 2 correctly.
func TestMeasuresOfSets(t *testing.T) {
	t.Parallel()
	const images, classes = 60, 3
	data := make([]byte, images*record)
	logits := make([]float32, images*classes)
	for i := range images {
		data[i*record] = byte(i % classes)
		logits[i*classes+i%classes] = 2
		logits[i*classes] += float32(i%2) * 3 // every second image is class 0 for the model
	}
	file := filepath.Join(t.TempDir(), "batch.bin")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	right := make([]float32, images*classes)
	for i := range images {
		right[i*classes+i%classes] = 1
	}
	tables := [2]*features.Table{features.NewTable(nil, classes, logits), features.NewTable(nil, classes, right)}
	for name, want := range map[string]string{"geometry": similarity.EffectiveRank, "prediction-agreement": "positive-flips"} {
		p := layerPopulation{n: images, measure: name}
		m, err := p.measureOf(tables, similarity.Defaults(), []string{file})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := p.set(t.Context(), m, images, 1)
		i := slices.IndexFunc(rows, func(r scores.Row) bool { return r.Statistic == want })
		if err != nil || i < 0 || math.IsNaN(rows[i].Low) {
			t.Fatalf("%s: %v, want an interval of %s: %+v", name, err, want, rows)
		}
		if v := rows[i].Value; name == "prediction-agreement" && math.Abs(v-1./3) > 1e-9 { // odd images of the classes 1 and 2
			t.Errorf("positive flips %v, want 1/3", v)
		}
	}
	if _, err := (layerPopulation{measure: "seis"}).measureOf(tables, similarity.Defaults(), nil); err == nil {
		t.Error("another measure is accepted")
	}
}
