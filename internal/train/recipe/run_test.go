package recipe

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// parse parses a training file (the settings of a training) after changes to its text. Each change
// is the text to replace, " -> ", and its replacement. The text of most tests here is plainText, of
// file_test.go: 120 images, of which a fraction of 0.2 is for validation, and 3 epochs.
func parse(t *testing.T, text string, changes ...string) *File {
	t.Helper()
	for _, change := range changes {
		from, to, _ := strings.Cut(change, " -> ")
		if !strings.Contains(text, from) {
			t.Fatalf("%s: the text to replace does not occur", change)
		}
		text = strings.Replace(text, from, to, 1)
	}
	f, err := Parse(filepath.Join(t.TempDir(), "t.yaml"), []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// options returns options with the ONNX Runtime of the tests.
func options(t *testing.T) Options { return Options{Runtime: orttest.Load(t)} }

// must runs the training of a file, which has to succeed, and returns its summary.
func must(t *testing.T, f *File, dir string) *Summary {
	t.Helper()
	s, err := Run(t.Context(), f, dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the content of the file whose path the elements form.
func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Run writes the summary, a log with a row for each epoch, the network, and those of the first and
// every second epoch (save-every: 2 in plainText). The graph of the network normalises its images.
// A second run in the same folder does not train again.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := must(t, parse(t, plainText), dir)
	if s.Epochs != 3 || s.Samples != 96 || s.Validation.Samples != 24 || s.Test.Samples != 40 || s.Test.Accuracy == nil || s.Kept < 1 {
		t.Errorf("the summary is %+v, want 3 epochs, 96, 24 and 40 samples, and the epoch whose weights were kept", s)
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll()
	if err != nil || len(rows) != 4 || rows[3][0] != "3" || rows[1][3] == "" { // columns: 0 epoch, 3 validation_loss
		t.Errorf("the log is %v, %v", rows, err)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, epochsFolder, "*.onnx"))
	if len(kept) != 2 {
		t.Errorf("networks of single epochs: %v, want 2", kept)
	}
	if _, err := os.Stat(filepath.Join(dir, checkpointFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the checkpoint remains: %v", err)
	}
	m, err := modeltest.Open(t, filepath.Join(dir, modelFile), model.Options{Layers: []string{"output"}, Preprocess: model.Preprocess{}})
	if err != nil {
		t.Fatal(err)
	}
	if f := m.Frame(); f.Height != 12 || f.Width != 12 {
		t.Errorf("the network takes %+v, want images of 12 x 12", f)
	}
	// Identity is a hash of settings, data and initial weights; Seconds the duration of all epochs.
	again := must(t, parse(t, plainText), dir)
	if again.Identity != s.Identity || again.Seconds != s.Seconds {
		t.Errorf("the second run trained again: %+v", again)
	}
	if _, err := Run(t.Context(), parse(t, plainText, "rate: 0.05 -> rate: 0.06"), dir, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
		t.Errorf("other settings in the same folder: %v", err)
	}
}

// An interrupted training resumes and writes an identical network.
func TestResume(t *testing.T) {
	t.Parallel()
	whole, dir := t.TempDir(), t.TempDir()
	must(t, parse(t, plainText), whole)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t)
	o.Progress = func(p Progress) {
		if p.Epoch == 2 && p.Done > 130 { // within the second epoch of 96 samples
			cancel()
		}
	}
	if _, err := Run(ctx, parse(t, plainText), dir, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the training did not stop: %v", err)
	}
	good := read(t, dir, checkpointFile)
	for name, bad := range map[string][]byte{"truncated": good[:len(good)/2], "empty": {}, "changed in one bit": append([]byte{good[0] ^ 1}, good[1:]...)} {
		if err := os.WriteFile(filepath.Join(dir, checkpointFile), bad, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), parse(t, plainText), dir, options(t)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("a checkpoint that is %s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, checkpointFile), good, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), parse(t, plainText, "widths: [8, 12] -> widths: [8, 10]"), dir, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
		t.Errorf("a checkpoint of another network: %v", err)
	}
	must(t, parse(t, plainText), dir)
	if !bytes.Equal(read(t, whole, modelFile), read(t, dir, modelFile)) {
		t.Error("the networks differ")
	}
}

// Fine-tuning changes the weights that match parameters, here those of the last layer, and no
// others. The running statistics of batch normalisation stay.
func TestFineTuning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, parse(t, plainText), dir)
	text := strings.Replace(plainText, "{convnet: {widths: [8, 12], depth: 1, dropout: 0.2}}", "{onnx: {file: "+filepath.Join(dir, modelFile)+", parameters: linear.*}}", 1)
	text = strings.Replace(text, "preprocess: {mean: 0.5, std: 0.25}\n", "", 1)
	tuned := t.TempDir()
	must(t, parse(t, text), tuned)
	before, err := onnx.Read(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	after, err := onnx.Read(filepath.Join(tuned, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range before.Weights() {
		a, _ := before.Tensor(w.Name)
		b, err := after.Tensor(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		same := true
		for i := range a.Data {
			same = same && a.Data[i] == b.Data[i]
		}
		if trained := strings.HasPrefix(w.Name, "linear."); same == trained {
			t.Errorf("weight %s: changed: %v, want %v", w.Name, !same, trained)
		}
	}
	if _, err := Run(t.Context(), parse(t, text, "linear.* -> conv9.*"), t.TempDir(), options(t)); err == nil || !strings.Contains(err.Error(), "no weights match") {
		t.Errorf("unknown weights: error %v", err)
	}
}

// Training on adversarial examples logs the accuracy on them, and resumes.
func TestAdversarial(t *testing.T) {
	t.Parallel()
	const change = "batch: 20 -> batch: 20\nadversarial: {defence: trades, radius: 0.05, steps: 2}"
	dir, interrupted := t.TempDir(), t.TempDir()
	s := must(t, parse(t, plainText, change), dir)
	if s.Validation.Robust == nil || s.Test.Robust == nil || *s.Test.Robust > *s.Test.Accuracy {
		t.Errorf("validation %+v, test %+v", s.Validation, s.Test)
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll()
	if err != nil || rows[0][9] != "validation_robust_accuracy" || rows[3][9] == "" {
		t.Errorf("the log is %v, %v", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t)
	o.Epoch = func(e train.Epoch) {
		if e.Number == 2 {
			cancel()
		}
	}
	if _, err := Run(ctx, parse(t, plainText, change), interrupted, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the training did not stop: %v", err)
	}
	if _, err := Run(t.Context(), parse(t, plainText, change, "radius: 0.05 -> radius: 0.06"), interrupted, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
		t.Errorf("a checkpoint of another radius: %v", err)
	}
	must(t, parse(t, plainText, change), interrupted)
	if !bytes.Equal(read(t, dir, modelFile), read(t, interrupted, modelFile)) {
		t.Error("the networks differ")
	}
}

// Fine-tuning on adversarial examples adds the preprocessing of the file to the graph of a model
// that has none, during training only. The network that is written has as many nodes as before, and
// the preprocessing as metadata.
func TestAdversarialFineTuning(t *testing.T) {
	t.Parallel()
	dir, tuned := t.TempDir(), t.TempDir()
	must(t, parse(t, plainText, "preprocess: {mean: 0.5, std: 0.25}\n -> "), dir)
	text := strings.Replace(plainText, "{convnet: {widths: [8, 12], depth: 1, dropout: 0.2}}", "{onnx: "+filepath.Join(dir, modelFile)+"}", 1)
	must(t, parse(t, text, "batch: 20 -> batch: 20\nadversarial: {norm: l2, radius: 0.5, steps: 1}"), tuned)
	before, err := onnx.Read(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	after, err := onnx.Read(filepath.Join(tuned, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	if b, a := len(onnx.Extend(before).Nodes()), len(onnx.Extend(after).Nodes()); a != b {
		t.Errorf("%d nodes, and %d before", a, b)
	}
	if got := after.Metadata(spec.PreprocessKey); !strings.Contains(got, "0.25") {
		t.Errorf("the metadata have the preprocessing %q", got)
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"batch: 20 -> batch: 500":               "larger than the 96 training samples",
		"widths: [8, 12] -> widths: [0]":        "at least one stage",
		"dropout: 0.2 -> dropout: 1":            "dropout",
		"mean: 0.5 -> mean: [1, 2]":             "mean has 2 values",
		"momentum: 0.9 -> momentum: 1.5":        "momentum",
		"rate: 0.05 -> rate: 1e20":              "learning rate",
		"{convnet: -> {onnx: gone.onnx} #":      "gone.onnx",
		"validation: 0.2 -> validation: 0.0001": "for validation",
		"mean: 0.5 -> standardise: true":        "standardise",
	} {
		dir := t.TempDir()
		_, err := Run(t.Context(), parse(t, plainText, change), dir, options(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", change, err)
		}
		if _, err := os.Stat(filepath.Join(dir, modelFile)); err == nil {
			t.Errorf("%s: a network was written", change)
		}
	}
}

// The target may be a numeric factor (a known property of a sample), here x, the position of a
// shape.
func TestRegression(t *testing.T) {
	t.Parallel()
	s := must(t, parse(t, plainText, "augment: [{flip: {}}, {affine: {rotate: [-20, 20]}}]\n -> target: x\n"), t.TempDir())
	if s.Test.Accuracy != nil || !(s.Test.Loss > 0) {
		t.Errorf("the test gives %+v, want a loss and no accuracy", s.Test)
	}
}

// TestPredict checks what a training is predicted to cost: the steps of all epochs, and the time of
// one of them times their number.
func TestPredict(t *testing.T) {
	t.Parallel()
	f := parse(t, plainText+"vary: {seed: [1, 2], epochs: [2, 4]}\n")
	found, err := Predict(t.Context(), f.Trainings(), options(t))
	if err != nil || len(found) != 4 {
		t.Fatalf("%d predictions, %v", len(found), err)
	}
	short, long := found[0], found[1]
	if short.Samples == 0 || short.Steps != 2*((short.Samples+short.Batch-1)/short.Batch) || long.Steps != 2*short.Steps || long.Parameters == 0 {
		t.Errorf("the predictions are %+v and %+v", short, long)
	}
	if !(short.Seconds > 0 && math.Abs(long.Seconds-2*short.Seconds) < 1e-9*long.Seconds && short.Memory > 1<<20) {
		t.Errorf("the predictions are %+v and %+v, want twice the time", short, long)
	}
	missing := parse(t, "name: m\ndata: {name: d, cifar10: nowhere/data.bin}\nnetwork: {resnet: {depth: 50}}\noptimiser: {sgd: 0.1}\nepochs: 3\n")
	found, err = Predict(t.Context(), missing.Trainings(), Options{})
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Missing, "nowhere") || found[0].Epochs != 3 {
		t.Errorf("missing data: %+v, %v", found, err)
	}
}
