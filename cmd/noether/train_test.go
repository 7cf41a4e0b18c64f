package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trainingText trains a small network on 64 synthetic images of 8 x 8 pixels.
const trainingText = `name: small
data: {name: shapes, shapes: {n: 64, size: 8}}
validation: 0.25
network: {convnet: {widths: [4], depth: 1}}
optimiser: {adam: 0.01}
epochs: 2
batch: 16
`

// TestTrain trains a network, and checks the summary and the files. Run again, the command prints
// the results. output returns what the command prints; --checkpoints 1 saves the network of every
// epoch.
func TestTrain(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "t.yaml", []byte(trainingText))
	out := filepath.Join(dir, "net")
	text, err := output(t, "train", file, "-o", out, "--checkpoints", "1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Epochs, Samples int
		Model           string
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Epochs != 2 || s.Samples != 48 {
		t.Errorf("the summary is %+v, error %v; want 2 epochs of 48 samples (of 64, without the quarter for validation)", s, err)
	}
	for _, name := range []string{s.Model, "log.csv", "summary.json", "training.yaml", "epochs/001.onnx", "epochs/002.onnx"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	text, err = output(t, "train", file, "-o", out)
	if err != nil || !strings.Contains(text, "small: ") || !strings.Contains(text, "validation  loss") {
		t.Errorf("run again, train prints %q, want the results of the networks; error %v", text, err)
	}
}

// TestTrainErrors checks exit codes and messages, which call returns.
func TestTrainErrors(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "t.yaml", []byte(trainingText))
	// bad.yaml has the unknown key "epoch" in line 6.
	bad := write(t, dir, "bad.yaml", []byte(strings.Replace(trainingText, "epochs", "epoch", 1)))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"train", 2, "takes TRAINING.yaml"},
		{"train " + file + " --checkpoints 0", 2, "--checkpoints"},
		{"train " + file + " --var X", 2, "NAME=VALUE"},
		{"train " + bad, 1, "bad.yaml:6"},
		{"train " + filepath.Join(dir, "none.yaml"), 1, "none.yaml"},
	} {
		code, message := call(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(message, c.want) || strings.Count(strings.TrimSpace(message), "\n") > 0 {
			t.Errorf("%s: exit %d, %q; want %d, %q in one line", c.args, code, message, c.code, c.want)
		}
	}
}

// TestTrainVary trains a network from three seeds, measures the networks of both epochs, and
// correlates their effective invariance (ei, whether predictions stay the same) under the rotation
// "turn" with their accuracy. The networks of one training depend on each other, so they are one
// unit of resampling.
func TestTrainVary(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "t.yaml", []byte(trainingText+"vary: {seed: [1, 2, 3]}\n"))
	out := filepath.Join(dir, "nets")
	text, err := output(t, "train", file, "-o", out, "--checkpoints", "1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s []struct {
		Name string
		Tags map[string]string
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s) != 3 || s[2].Name != "small/seed-3" || s[2].Tags["seed"] != "3" {
		t.Errorf("the summaries are %+v, want 3 with the last of seed 3; error %v", s, err)
	}
	if text, err := output(t, "train", file, "-o", out); err != nil || strings.Count(text, "validation  loss") != 3 {
		t.Errorf("run again, train prints %q, want three results; error %v", text, err)
	}
	run := filepath.Join(dir, "run")
	study := write(t, dir, "s.yaml", []byte("name: s\ndata: {name: d, shapes: {n: 60, size: 8}}\nmodels: {checkpoints: nets, every: 1, layers: output}\n"+
		"transforms: {name: turn, rotate: 90}\nmeasures: [accuracy, effective-invariance]\n"))
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	text, err = output(t, "correlate", run, "--x", "effective-invariance.ei@turn", "--bootstrap", "60", "--json")
	if err != nil || strings.Count(text, `"unit": "nets/seed-2"`) != 2 || !strings.Contains(text, `"units": 3`) {
		t.Errorf("correlate prints %s, error %v; want 3 units, of which nets/seed-2 has two points", text, err)
	}
}

// TestTrainSegmenter trains a segmentation network on images of one or two figures, and measures it
// in a study. Its mean IoU on the test data of the training is the same in the summary of the
// training and in the study.
func TestTrainSegmenter(t *testing.T) {
	dir := t.TempDir()
	// Without the closing braces: a seed may follow.
	data := "{n: 40, size: 16, kinds: [disc, bar], figures: [1, 2], texture: true"
	file := write(t, dir, "t.yaml", []byte("name: scenes\ndata: {name: a, shapes: "+data+"}}\ntest: {name: b, shapes: "+data+", seed: 2}}\n"+
		"network: {segmenter: {widths: [6, 8], blocks: 1}}\noptimiser: {adam: 0.01}\nepochs: 4\nbatch: 8\n"))
	out := filepath.Join(dir, "net")
	text, err := output(t, "train", file, "-o", out, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Test struct {
			MeanIoU float64 `json:"mean_iou"`
		}
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || !(s.Test.MeanIoU > 0.1) {
		t.Fatalf("the summary is %s, want a mean IoU above 0.1; error %v", text, err)
	}
	if text, err := output(t, "train", file, "-o", out); err != nil || !strings.Contains(text, "mean IoU") {
		t.Errorf("run again, train prints %q, want a mean IoU; error %v", text, err)
	}
	run := filepath.Join(dir, "run")
	study := write(t, dir, "s.yaml", []byte("name: s\ndata: {name: b, shapes: "+data+", seed: 2}}\nmodels: {checkpoints: net, output: {class-map: logits}}\ntransforms: flip\nmeasures: [dense-accuracy, dense-equivariance]\n"))
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	rows := readScores(t, run)
	for _, r := range rows {
		if r.Statistic == "clean-miou" && r.Factor == "" { // untransformed, over all classes
			if math.Abs(r.Value-s.Test.MeanIoU) > 1e-6 {
				t.Errorf("the study's mean IoU is %g, the training's %g", r.Value, s.Test.MeanIoU)
			}
			return
		}
	}
	t.Errorf("no mean IoU among %d rows", len(rows))
}

// TestTrainDryRun checks that train --dry-run predicts trainings and writes nothing, names data that
// are missing, and that the variable SCALE chooses a scale.
func TestTrainDryRun(t *testing.T) {
	dir := t.TempDir()
	text := trainingText + "vary: {seed: [1, 2]}\nscales:\n  paper: {epochs: 50, data: {name: d, cifar10: nowhere.bin}}\n"
	file := write(t, dir, "t.yaml", []byte(text))
	out := filepath.Join(dir, "net")
	got, err := output(t, "train", file, "-o", out, "--dry-run")
	if err != nil || !strings.Contains(got, "small/seed-2: 48 samples, 2 epochs with batches of 16: 6 steps; ") || !strings.Contains(got, "2 trainings, about ") {
		t.Errorf("a dry run prints %q, %v", got, err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Errorf("a dry run has written %s", out)
	}
	got, err = output(t, "train", file, "--dry-run", "--var", "SCALE=paper")
	if err != nil || !strings.Contains(got, "small/seed-1: 50 epochs with batches of 16; the data are missing: ") || !strings.Contains(got, "nowhere.bin") ||
		!strings.Contains(got, "2 trainings, whose time cannot be predicted") {
		t.Errorf("a dry run without data prints %q, %v", got, err)
	}
	if _, err := output(t, "train", file, "--dry-run", "--var", "SCALE=papr"); err == nil || !strings.Contains(err.Error(), "has the scales small, paper") {
		t.Errorf("an unknown scale: %v", err)
	}
}
