package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestInitAudio checks that the study that init writes runs as it is, for networks of audio with
// further inputs, with the channel last, and with a window of a few lengths only.
func TestInitAudio(t *testing.T) {
	dir := t.TempDir()
	const rate = 8000
	for i, name := range []string{"a.wav", "b.wav", "c.wav"} {
		wave := make([]float32, rate)
		for k := range wave {
			wave[k] = float32(k%(20+i)) / 40
		}
		var file bytes.Buffer
		if err := audio.WriteWAV(&file, audio.Clip{Rate: rate, Wave: wave}); err != nil {
			t.Fatal(err)
		}
		write(t, dir, filepath.Join("wav", name), file.Bytes())
	}
	for name, c := range map[string]struct {
		make func(b *onnx.Builder)
		want string // in the study
	}{
		"a length": {func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, -1, -1)
			n := b.Cast(b.Input("lengths", onnx.Int64, -1), onnx.Float)
			b.Output("y", b.Sigmoid(b.Div(b.ReduceSum(x, true, 1), b.Unsqueeze(n, 1))))
		}, "inputs: {lengths: 8000}"},
		"a state and a rate": {func(b *onnx.Builder) {
			x := b.Input("input", onnx.Float, -1, -1)
			state := b.InputInfo(onnx.ValueInfo{Name: "state", Type: onnx.Float, Shape: []onnx.Dim{{Size: 2}, {Size: -1, Symbol: "batch"}, {Size: 3}}})
			sr := b.Cast(b.Input("sr", onnx.Int64), onnx.Float)
			level := b.ReduceMean(b.Mul(x, x), true, 1)
			b.Output("y", b.Sigmoid(b.Mul(b.Add(level, b.ReduceSum(state, false, 0)), b.Div(sr, b.Scalar(rate)))))
		}, "inputs: {state: 0, sr: 8000}"},
		"the channel last": {func(b *onnx.Builder) {
			b.Output("y", b.Relu(b.ReduceMean(b.Input("x", onnx.Float, -1, 4000, 1), false, 2)))
		}, "length: 0.5"},
		"a window": {func(b *onnx.Builder) {
			x := b.Input("x", onnx.Float, -1, -1)
			b.Output("y", b.MatMul(x, b.Full(0.1, 512, 3)))
		}, "guessed: the model does not take a whole second"},
	} {
		file := strings.ReplaceAll(name, " ", "-")
		b := onnx.NewBuilder(17)
		c.make(b)
		path := testmodel.Save(t, filepath.Join(dir, file+".onnx"), b)
		study := filepath.Join(dir, file+".yaml")
		if code, message := call(t, "init", path, filepath.Join(dir, "wav"), "-o", study); code != 0 {
			t.Errorf("%s: %s", name, message)
			continue
		}
		if text, err := os.ReadFile(study); err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: the study lacks %q (%v):\n%s", name, c.want, err, text)
		}
		run := filepath.Join(dir, file)
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Errorf("%s: %s", name, message)
			continue
		}
		for _, r := range readScores(t, run) {
			if r.Value != r.Value && r.Warning == "" {
				t.Errorf("%s: %s of %s has neither a value nor a reason", name, r.Statistic, r.Layer)
			}
		}
	}
}

// TestInitWhisper checks that the study that init writes for a folder with the config of a processor
// that computes spectrograms runs, and resamples audio of another rate.
func TestInitWhisper(t *testing.T) {
	dir := t.TempDir()
	wave := make([]float32, 8000)
	for k := range wave {
		wave[k] = float32(k%20) / 40
	}
	var file bytes.Buffer
	if err := audio.WriteWAV(&file, audio.Clip{Rate: 8000, Wave: wave}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.wav", "b.wav"} {
		write(t, dir, filepath.Join("wav", name), file.Bytes())
	}
	write(t, dir, "whisper/preprocessor_config.json", []byte(`{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "hop_length": 160,
"n_fft": 400, "n_samples": 16000, "nb_max_frames": 100, "chunk_length": 1, "sampling_rate": 16000, "padding_value": 0.0}`))
	b := onnx.NewBuilder(17)
	b.Output("last_hidden_state", b.Transpose(b.Relu(b.Input("input_features", onnx.Float, -1, 80, 100)), 0, 2, 1))
	testmodel.Save(t, filepath.Join(dir, "whisper", "model.onnx"), b)
	study := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", filepath.Join(dir, "whisper"), filepath.Join(dir, "wav"), "-o", study); code != 0 {
		t.Fatal(message)
	}
	text, err := os.ReadFile(study)
	if err != nil || !strings.Contains(string(text), "\n      length: 1 ") || !strings.Contains(string(text), "\n      rate: model") {
		t.Errorf("the study (%v):\n%s", err, text)
	}
	if code, message := call(t, "run", study, "-o", filepath.Join(dir, "run")); code != 0 {
		t.Error(message)
	}
}
