package scores_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/scores"
)

// benchmarkRun returns rows and a record of a run: accuracy gives that of each kind and severity.
func benchmarkRun(t *testing.T, name string, own bool, accuracy func(kind string, severity int) float64, clean float64) ([]scores.Row, scores.Record) {
	t.Helper()
	b, err := benchmark.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []scores.Row
	var rec scores.Record
	add := func(data, kind string, severity int, value float64) {
		rows = append(rows, scores.Row{Model: "m", Data: data, Measure: b.Measure, Statistic: b.Statistic, Value: value, Low: value - 0.01, High: value + 0.02, Null: math.NaN(), N: b.Images})
		rec.Data = append(rec.Data, scores.DataRecord{Name: data, Benchmark: &scores.BenchmarkRecord{Name: name, Kind: kind, Severity: severity, Own: own && kind != benchmark.Clean}})
	}
	add("c/clean", benchmark.Clean, 0, clean)
	for _, kind := range b.Standard() {
		for _, s := range b.Severities {
			if v := accuracy(kind, s); !math.IsNaN(v) {
				add(fmt.Sprintf("c/%s-%d", kind, s), kind, s, v)
			}
		}
	}
	return rows, rec
}

func benchmarkScores(t *testing.T, rows []scores.Row, rec scores.Record) map[string]scores.BenchmarkScore {
	t.Helper()
	all, err := scores.Benchmarks(rows, rec)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]scores.BenchmarkScore{}
	for _, s := range all {
		out[strings.TrimSuffix(s.Statistic+" "+s.Kind, " ")] = s
	}
	return out
}

// TestResNet50OnImageNetC reproduces the published numbers of torchvision's ResNet-50: mean
// accuracies of corruptions with the CE that an independent program prints for them, and in the
// table of Hendrycks and Dietterich 2019 the CE of each corruption, rounded to percents, an mCE of
// 76.7 % and a relative mCE of 105.0 %.
func TestResNet50OnImageNetC(t *testing.T) {
	t.Parallel()
	exact := map[string][2]float64{ // accuracy and CE, in percent
		"brightness": {68.02, 56.64}, "contrast": {39.06, 71.43}, "defocus-blur": {38.75, 74.71}, "elastic-transform": {45.25, 84.75}, "fog": {45.83, 66.11},
		"frost": {38.14, 74.84}, "gaussian-noise": {29.29, 79.77}, "glass-blur": {26.79, 88.61}, "impulse-noise": {23.81, 82.58},
	}
	published := map[string]float64{
		"gaussian-noise": 80, "shot-noise": 82, "impulse-noise": 83, "defocus-blur": 75, "glass-blur": 89, "motion-blur": 78, "zoom-blur": 80, "snow": 78, "frost": 75,
		"fog": 66, "brightness": 57, "contrast": 71, "elastic-transform": 85, "pixelate": 77, "jpeg-compression": 77,
	}
	known, _ := benchmark.Find("imagenet-c")
	accuracy := func(kind string, severity int) float64 {
		mean := exact[kind][0] / 100
		if mean == 0 {
			k, _ := known.Kind(kind)
			mean = 1 - published[kind]/100*k.Reference
		}
		return mean + float64(3-severity)*0.05 // the mean over severities counts
	}
	rows, rec := benchmarkRun(t, "imagenet-c", false, accuracy, 0.7613)
	got := benchmarkScores(t, rows, rec)
	for kind, v := range exact {
		if ce := got["ce "+kind].Value * 100; math.Abs(ce-v[1]) > 0.011 {
			t.Errorf("the CE of %s is %.3f, want %.2f", kind, ce, v[1])
		}
	}
	for name, want := range map[string]float64{"mce": 76.7, "relative-mce": 105.0} {
		if v := got[name]; math.Abs(v.Value*100-want) > 0.5 || v.Missing != "" || v.Own || v.N != known.Images || !(v.Low < v.Value && v.Value < v.High) {
			t.Errorf("%s is %.2f %% in [%v, %v], own %v, without %q; want %.1f", name, v.Value*100, v.Low, v.High, v.Own, v.Missing, want)
		}
	}
	// The half-widths 0.01 and 0.02 of accuracies are divided by AlexNet's mean errors of 0.79.
	if v := got["mce"]; math.Abs(v.Value-v.Low-0.02/0.79) > 0.002 || math.Abs(v.High-v.Value-0.01/0.79) > 0.002 {
		t.Errorf("mce is %v in [%v, %v], want half-widths of 0.025 and 0.013", v.Value, v.Low, v.High)
	}
	// A guess of one of 1,000 classes is as wrong with a corruption as without.
	if v := got["mce"].Null; math.Abs(v-meanOver(known, 0.999)) > 1e-12 || math.Abs(got["relative-mce"].Null) > 1e-12 || math.Abs(got["relative-robustness"].Null-1) > 1e-12 {
		t.Errorf("the nulls of mce, relative-mce and relative-robustness are %v, %v and %v", v, got["relative-mce"].Null, got["relative-robustness"].Null)
	}
	if v := got["gap"].Value; math.Abs(v-(0.7613-(1-got["mean-error"].Value))) > 1e-12 {
		t.Errorf("the gap is %v", v)
	}
}

// meanOver returns the mean CE of a model with the same error on all data sets.
func meanOver(known benchmark.Benchmark, fault float64) float64 {
	var sum float64
	for _, kind := range known.Standard() {
		k, _ := known.Kind(kind)
		sum += fault / k.Reference
	}
	return sum / float64(len(known.Standard()))
}

// TestImageNetP compares with testdata/mfr.py: flip rates of made-up predictions by the authors'
// function, divided by those of AlexNet as another program has them.
func TestImageNetP(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/mfr.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		FlipRates map[string]float64 `json:"flip_rates"`
		FR        map[string]float64 `json:"fr"`
		MFR       float64            `json:"mfr"`
	}
	if err := json.Unmarshal(data, &golden); err != nil || len(golden.FR) != 10 {
		t.Fatal(len(golden.FR), err)
	}
	known, err := benchmark.Find("imagenet-p")
	if err != nil {
		t.Fatal(err)
	}
	var rows []scores.Row
	var rec scores.Record
	var mean float64
	for folder, rate := range golden.FlipRates {
		kind := strings.ReplaceAll(folder, "_", "-")
		mean += rate / 10
		for _, suffix := range []string{"", "-first"} { // the other one, which does not count, is 0.9
			for statistic, value := range map[string]float64{"flip-rate": rate, "top-5-distance": 10 * rate} {
				if strings.HasSuffix(kind, "noise") != (suffix != "") {
					value = 0.9
				}
				for _, model := range []string{"m", "twice"} {
					rows = append(rows, scores.Row{Model: model, Data: "p/" + kind, Measure: "flip-rate", Statistic: statistic + suffix, Value: value, Low: value - 0.001, High: value + 0.001, Null: 0.99, N: known.Images})
					value *= 2
				}
			}
		}
		rec.Data = append(rec.Data, scores.DataRecord{Name: "p/" + kind, Benchmark: &scores.BenchmarkRecord{Name: "imagenet-p", Kind: kind}})
	}
	got := benchmarkScores(t, slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Model != "m" }), rec)
	for folder, want := range golden.FR {
		if fr := got["fr "+strings.ReplaceAll(folder, "_", "-")].Value; math.Abs(fr-want) > 1e-9 {
			t.Errorf("the FR of %s is %v, want %v", folder, fr, want)
		}
	}
	if v := got["mfr"]; math.Abs(v.Value-golden.MFR) > 1e-9 || v.Missing != "" || !(v.Low < v.Value && v.Value < v.High) || v.Null < 5 {
		t.Errorf("mfr is %+v, want %v", v, golden.MFR)
	}
	for statistic, want := range map[string]float64{"mean-flip-rate": mean, "mean-top-5-distance": 10 * mean} {
		if v := got[statistic].Value; math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", statistic, v, want)
		}
	}
	if _, ok := got["mt5d"]; ok {
		t.Error("there is an mT5D without a reference")
	}
	relative, err := scores.BenchmarksRelativeTo("twice", rows, rec)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range relative {
		want := map[string]float64{"mfr": 0.5, "mt5d": 0.5}[s.Statistic]
		if s.Model == "twice" {
			want *= 2
		}
		if want > 0 {
			if seen++; math.Abs(s.Value-want) > 1e-9 {
				t.Errorf("relative to twice the %s of %s is %v, want %v", s.Statistic, s.Model, s.Value, want)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d of 4 numbers relative to a model are given", seen)
	}
	if _, err := scores.BenchmarksRelativeTo("none", rows, rec); err == nil || !strings.Contains(err.Error(), `no scores of a model "none"`) {
		t.Errorf("relative to a model that was not measured: %v", err)
	}
}

// TestOtherBenchmarks checks what is defined for a benchmark without a reference, with our own
// corruptions, of one data set, and of detectors, and what is missing.
func TestOtherBenchmarks(t *testing.T) {
	t.Parallel()
	cifar := func(kind string, severity int) float64 {
		if kind == "fog" || kind == "snow" && severity == 5 {
			return math.NaN()
		}
		return 0.7
	}
	rows, rec := benchmarkRun(t, "cifar-10-c", true, cifar, 0.9)
	got := benchmarkScores(t, rows, rec)
	v := got["mean-error"]
	if _, ok := got["mce"]; ok || math.Abs(v.Value-0.3) > 1e-12 || !v.Own || v.Missing != "1 severities of snow, fog" || math.Abs(got["relative-robustness"].Value-7./9) > 1e-12 {
		t.Errorf("cifar-10-c: %+v, relative robustness %v", v, got["relative-robustness"].Value)
	}
	rows, rec = benchmarkRun(t, "coco-c", true, func(string, int) float64 { return 0.2 }, 0.4)
	if got = benchmarkScores(t, rows, rec); math.Abs(got["mpc"].Value-0.2) > 1e-12 || math.Abs(got["rpc"].Value-0.5) > 1e-12 {
		t.Errorf("coco-c: mPC %v, rPC %v; want 0.2 and 0.5", got["mpc"].Value, got["rpc"].Value)
	}
	rows, rec = benchmarkRun(t, "imagenet-r", false, func(string, int) float64 { return 0.36 }, 0.8)
	if got = benchmarkScores(t, rows, rec); got["accuracy"].Value != 0.36 || math.Abs(got["gap"].Value-0.44) > 1e-12 || got["accuracy"].Null != 1./200 {
		t.Errorf("imagenet-r: %v", got)
	}
	for i := range rows {
		rows[i].N = 12
	}
	if v := benchmarkScores(t, rows, rec)["accuracy"]; v.Missing != "29988 of 30000 images" {
		t.Errorf("12 images of imagenet-r lack %q", v.Missing)
	}
	rows, rec = benchmarkRun(t, "laion-c", false, func(_ string, severity int) float64 { return 0.7 - 0.1*float64(severity) }, math.NaN())
	rows, rec.Data = rows[1:], rec.Data[1:] // without clean
	if got = benchmarkScores(t, rows, rec); math.Abs(got["mean-accuracy"].Value-0.4) > 1e-12 || math.Abs(got["mean-accuracy"].Null-1./16) > 1e-12 || len(got) != 2+6 {
		t.Errorf("laion-c: %v", got)
	}
	rows, rec = benchmarkRun(t, "imagenet-r", false, func(string, int) float64 { return 0.36 }, 0.8)
	rows = slices.DeleteFunc(rows, func(r scores.Row) bool { return r.Measure == "accuracy" })
	if _, err := scores.Benchmarks(rows, rec); err == nil || !strings.Contains(err.Error(), "add accuracy") {
		t.Errorf("without accuracy: %v", err)
	}
}
