package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
)

// TestInitUsesTheRecordedPreprocessing trains a network on CIFAR-10 for a few steps and runs the
// study that the command init writes for it. The preprocessing (resize, crop, mean and standard
// deviation) comes from the model's metadata, so the accuracy is that of the test after training.
func TestInitUsesTheRecordedPreprocessing(t *testing.T) {
	t.Parallel()
	const record = 1 + 3*32*32 // bytes of an image in a CIFAR-10 file: the label, then the pixels
	const samples = 60         // of the test
	dir := t.TempDir()
	batch, err := os.ReadFile(testdata.Path(t, "cifar10", "test_batch.bin"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "test.bin", batch[:samples*record])
	write(t, dir, "train.bin", batch[samples*record:(samples+500)*record])
	for i, preprocess := range []string{"{preset: cifar10, resize: 40, crop: 32}", "{mean: 0.5, std: 2.5, channels: 3}"} {
		t.Run(preprocess, func(t *testing.T) {
			file := write(t, dir, fmt.Sprintf("train%d.yaml", i), fmt.Appendf(nil, `name: small
data: {name: learn, cifar10: train.bin}
test: {name: test, cifar10: test.bin}
preprocess: %s
network: {convnet: {widths: [8], depth: 1}}
optimiser: {adam: 0.01}
epochs: 4
batch: 50
`, preprocess))
			out := filepath.Join(dir, fmt.Sprint("net", i))
			text, err := output(t, "train", file, "-o", out, "--json")
			if err != nil {
				t.Fatal(err)
			}
			var trained struct{ Test struct{ Accuracy float64 } }
			// Chance gives an accuracy of 0.1: there are ten classes.
			if err := json.Unmarshal([]byte(text), &trained); err != nil || trained.Test.Accuracy <= 0.12 {
				t.Fatalf("%s: accuracy %v, want more than 0.12; error %v", text, trained.Test.Accuracy, err)
			}
			study, run := filepath.Join(out, "study.yaml"), filepath.Join(out, "run")
			if code, message := call(t, "init", filepath.Join(out, "model.onnx"), filepath.Join(dir, "test.bin"), "-o", study); code != 0 {
				t.Fatal(message)
			}
			if code, message := call(t, "run", study, "-o", run); code != 0 {
				t.Fatal(message)
			}
			found := false
			for _, r := range readScores(t, run) {
				if r.Measure == "accuracy" && r.Statistic == "clean" { // on untransformed images
					found = true
					if math.Abs(r.Value-trained.Test.Accuracy) > 1e-9 {
						t.Errorf("accuracy %v, want that of the test after training, %v", r.Value, trained.Test.Accuracy)
					}
				}
			}
			written, err := os.ReadFile(study)
			if err != nil || !found || !strings.Contains(string(written), "As recorded in the model") {
				t.Errorf("accuracy in the scores: %t; error %v; want a study with preprocessing as recorded:\n%s", found, err, written)
			}
		})
	}
}
