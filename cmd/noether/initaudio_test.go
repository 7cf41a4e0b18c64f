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
