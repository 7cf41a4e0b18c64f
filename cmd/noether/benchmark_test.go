package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/testdata"
)

// bytesNPY returns an array of unsigned bytes in the format of NumPy.
func bytesNPY(shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8)), append([]byte(header), data...)...)
}

// A benchmarkNumber is an element of what benchmark --json prints.
type benchmarkNumber struct {
	Statistic, Kind, Missing string
	Value                    float64
	N                        int
	Own                      bool
}

// runBenchmark runs a study file with DATA=dir and returns the means that the command benchmark
// prints.
func runBenchmark(t *testing.T, study, dir, model string) map[string]benchmarkNumber {
	t.Helper()
	file := write(t, t.TempDir(), "study.yaml", []byte(study))
	out := filepath.Join(t.TempDir(), "run")
	if code, message := call(t, "run", file, "--var", "DATA="+dir, "--var", "MODEL="+model, "-o", out); code != 0 {
		t.Fatalf("run: %s\n%s", message, study)
	}
	text, err := output(t, "benchmark", out, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []benchmarkNumber
	if err := json.Unmarshal([]byte(text), &numbers); err != nil {
		t.Fatal(err)
	}
	found := map[string]benchmarkNumber{}
	for _, n := range numbers {
		if n.Kind == "" {
			found[n.Statistic] = n
		}
	}
	if table, err := output(t, "benchmark", out, "--all"); err != nil || !strings.Contains(table, "95 % interval") {
		t.Errorf("the table is %q, %v", table, err)
	}
	return found
}

// TestBenchmarkOfImageNet makes small folders laid out as ImageNet-C, -3DCC, -A, -R, -Sketch and V2
// are published, each with the same photos, and runs the study files that the command prints. The
// photos are as right as clean ones.
func TestBenchmarkOfImageNet(t *testing.T) {
	model := filepath.Join(testdata.Path(t, "nets/squeezenet1_1"), "model.onnx")
	photos, err := filepath.Glob(filepath.Join(testdata.Path(t, "imagenet-samples"), "*.JPEG"))
	if err != nil || len(photos) < 3 {
		t.Fatal(len(photos), err)
	}
	dir, synsets := t.TempDir(), dataset.ImageNetSynsets()
	lay := func(folder string, numbered bool) {
		for _, photo := range photos[:3] {
			data, err := os.ReadFile(photo)
			if err != nil {
				t.Fatal(err)
			}
			class, _, _ := strings.Cut(filepath.Base(photo), "_")
			if numbered {
				class = fmt.Sprint(slices.Index(synsets, class))
			}
			path := filepath.Join(dir, folder, class)
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, path, filepath.Base(photo), data)
		}
	}
	lay("val", false)
	const small = "preprocess: {preset: imagenet, resize: 72, crop: 64}"
	for _, b := range benchmark.All() {
		if b.Layout != benchmark.Folders && b.Layout != benchmark.Single {
			continue
		}
		if b.Layout == benchmark.Single {
			lay(b.Published, b.Numbered)
		}
		for class := range synsets { // all folders of ImageNetV2, most of them empty
			if !b.Numbered {
				break
			}
			if err := os.MkdirAll(filepath.Join(dir, b.Published, fmt.Sprint(class)), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		for i, folder := range b.Folders {
			if i > 0 {
				break
			}
			for _, k := range b.Kinds {
				for _, severity := range b.Severities {
					if !k.Extra {
						lay(filepath.Join(b.Published, b.Path(folder, k, severity)), false)
					}
				}
			}
		}
		study, err := output(t, "benchmark", "--template", b.Name)
		if err != nil {
			t.Fatal(err)
		}
		study = strings.Replace(study, "preprocess: imagenet", small, 1)
		if b.Layout == benchmark.Folders { // a part of the 75 sets, which take minutes
			study = strings.Replace(study, "path:", "kinds: ["+b.Kinds[0].Name+", "+b.Kinds[9].Name+"], severities: 5, path:", 1)
		}
		found := runBenchmark(t, study, dir, model)
		want, accuracy := "mean-error", 0.
		switch {
		case b.Layout == benchmark.Single:
			want, accuracy = "accuracy", found["accuracy"].Value
		default:
			accuracy = 1 - found["mean-error"].Value
		}
		if b.Reference != "" {
			want = "mce"
		}
		if v, ok := found[want]; !ok || v.N != 3 || v.Own || (v.Missing == "") != (b.Layout == benchmark.Single) {
			t.Errorf("%s: %s is %+v", b.Name, want, v)
		}
		// Of images that are not published in the model's size, all is as for clean ones.
		if clean, ok := found["clean-accuracy"]; ok && b.Layout == benchmark.Single && accuracy != clean.Value {
			t.Errorf("%s: the accuracy of the clean photos is %v, not %v", b.Name, accuracy, clean.Value)
		}
		if _, ok := found["relative-robustness"]; ok == b.Present {
			t.Errorf("%s: relative robustness is given: %v", b.Name, ok)
		}
	}
	// Without the published images, the clean ones are corrupted.
	found := runBenchmark(t, "name: own\ndata: {name: c, benchmark: {name: imagenet-c, clean: \"${DATA}/val\", kinds: [fog], severities: 5}}\nmodels: {name: m, onnx: \"${MODEL}\", "+small+"}\nmeasures: accuracy\n", dir, model)
	if v := found["mce"]; !v.Own || v.Missing == "" {
		t.Errorf("own corruptions: mce is %+v", v)
	}
}

// TestBenchmarkOfCIFAR makes arrays as CIFAR-10-C and CIFAR-100-C have them: five severities one
// after the other, here of images that get darker, so that severity 5 is black.
func TestBenchmarkOfCIFAR(t *testing.T) {
	const images, size = 20, 32 * 32
	batch, err := os.ReadFile(filepath.Join(testdata.Path(t, "cifar10"), "test_batch.bin"))
	if err != nil {
		t.Fatal(err)
	}
	model := testdata.Path(t, "models/resnet20-cifar10.onnx")
	dir := t.TempDir()
	write(t, dir, "test_batch.bin", batch[:images*(1+3*size)])
	root := filepath.Join(dir, "CIFAR-10-C")
	if err := os.Mkdir(root, 0o777); err != nil {
		t.Fatal(err)
	}
	var pixels, labels []byte
	for severity := range 5 {
		for i := range images {
			record := batch[i*(1+3*size) : (i+1)*(1+3*size)]
			labels = append(labels, record[0])
			for at := range size { // rows of pixels of three channels
				for c := range 3 {
					v := record[1+c*size+at]
					if severity == 4 {
						v = 0
					}
					pixels = append(pixels, v)
				}
			}
		}
	}
	b, err := benchmark.Find("cifar-10-c")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range b.Kinds { // all are published, and two are measured here
		write(t, root, k.Folder()+".npy", bytesNPY(fmt.Sprintf("%d, 32, 32, 3", 5*images), pixels))
	}
	write(t, root, "labels.npy", bytesNPY(fmt.Sprintf("%d,", 5*images), labels))
	study, err := output(t, "benchmark", "--template", "cifar-10-c")
	if err != nil {
		t.Fatal(err)
	}
	found := runBenchmark(t, strings.Replace(study, "path:", "kinds: [fog, speckle-noise], path:", 1), dir, model)
	clean, black := found["clean-accuracy"].Value, 0.
	if v := found["mean-error"]; !strings.HasPrefix(v.Missing, "gaussian-noise, ") || v.Own || v.N != images {
		t.Errorf("mean-error is %+v", v)
	}
	black = 5*(1-found["mean-error"].Value) - 4*clean // the accuracy of severity 5 alone
	if clean < 0.7 || black < -0.01 || black > 0.4 {
		t.Errorf("the clean accuracy is %v, that of black images %v: severities are taken wrongly", clean, black)
	}
	// CIFAR-100-C has the same layout.
	if _, err := output(t, "benchmark", "--template", "cifar-100-c"); err != nil {
		t.Error(err)
	}
}

// TestBenchmarkMistakes checks the messages on entries that are not a benchmark as published.
func TestBenchmarkMistakes(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for entry, want := range map[string]string{
		"{name: imagenet-d, path: x}":                                 `unknown benchmark "imagenet-d"`,
		"imagenet-c":                                                  "needs path",
		"{name: imagenet-3dcc, clean: x}":                             "needs path",
		"{name: imagenet-c, path: empty}":                             "there is no empty/noise/gaussian_noise/1 and no empty/gaussian_noise/1",
		"{name: imagenet-c, path: x, kinds: [rain]}":                  `has no kind "rain"`,
		"{name: imagenet-c, clean: x, kinds: [spatter]}":              "cannot be computed here",
		"{name: imagenet-c, path: x, severities: [6]}":                "must be one of [1 2 3 4 5]",
		"{name: imagenet-r, path: x, clean: y}":                       "200 of ImageNet's classes",
		"{name: coco-c, path: x}":                                     "not published as images",
		"{name: coco-c, clean: x}":                                    "needs annotations",
		"{name: imagenet-c, path: x, annotations: y}":                 "no annotations",
		"{name: imagenet-v2, path: empty}":                            "the copy is incomplete",
		"{name: imagenet-v2, path: nowhere, clean: \"also nowhere\"}": "nowhere",
	} {
		file := write(t, dir, "study.yaml", []byte("name: n\ndata: {name: d, benchmark: "+entry+"}\nmodels: {name: m, onnx: m.onnx}\nmeasures: accuracy\n"))
		if code, message := call(t, "run", file, "-o", filepath.Join(dir, "run")); code == 0 || !strings.Contains(message, want) {
			t.Errorf("%s: %q, want %q", entry, message, want)
		}
	}
	if _, code := errorOutput(t, "benchmark", "--template", "none"); code == 0 {
		t.Error("a template of an unknown benchmark is printed")
	}
}
