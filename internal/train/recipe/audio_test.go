package recipe

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// audioText is a training file (the settings of a training) with audio, whose numeric target is
// loudness. The helpers parse, must (which trains and returns the summary), read and options are in
// run_test.go; plainText, a training file with images, is in file_test.go.
const audioText = `name: sounds
data: {name: tones, tones: {n: 60, rate: 8000, length: 0.25, pitch: [200, 800]}}
validation: {name: held-out, tones: {n: 20, rate: 8000, length: 0.25, pitch: [200, 800], seed: 2}}
target: loudness
network: {convnet: {widths: [8, 8], depth: 1}}
preprocess: {rate: 8000, features: {log-mel: {mels: 20, mean: -6, std: 4}}}
augment: [{gain: [-6, 6]}, {time-stretch: [0.8, 1.25]}, {white-noise: [10, 30]}]
optimiser: {adam: 1e-3}
epochs: 2
batch: 20
keep: last
`

// augmentations is the line of audioText that augments training waveforms.
const augmentations = "augment: [{gain: [-6, 6]}, {time-stretch: [0.8, 1.25]}, {white-noise: [10, 30]}]\n"

// Training waveforms are augmented, depending on the seed only; validation waveforms are not.
func TestAudioAugmentation(t *testing.T) {
	t.Parallel()
	first, again, plain := t.TempDir(), t.TempDir(), t.TempDir() // output folders of three trainings
	augmented := must(t, parse(t, audioText), first)
	must(t, parse(t, audioText), again)
	if !bytes.Equal(read(t, first, modelFile), read(t, again, modelFile)) {
		t.Error("a second training gives another network")
	}
	unaugmented := must(t, parse(t, audioText, augmentations+" -> "), plain) // removes the line
	// Identity is a hash of settings, data and initial weights; Validation.Data one of the samples.
	if augmented.Identity == unaugmented.Identity || bytes.Equal(read(t, first, modelFile), read(t, plain, modelFile)) {
		t.Error("augmentation has no effect")
	}
	if augmented.Validation.Data != unaugmented.Validation.Data {
		t.Error("the validation data differ")
	}
}

// A transformation of images cannot augment audio, and the reverse.
func TestAugmentationKind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Replace(audioText, "{gain: [-6, 6]}", "{flip: {}}", 1):                            "t.yaml:7:12: this transforms images",
		strings.Replace(plainText, "{flip: {}}", "{gain: 3}", 1):                                  "t.yaml:7:12: this transforms audio",
		strings.Replace(plainText, "{flip: {}}", "{sequence: [{flip: {}}, {low-pass: 1000}]}", 1): "this transforms audio",
	} {
		f, err := Parse(filepath.Join(t.TempDir(), "t.yaml"), []byte(text), nil)
		if err == nil {
			_, err = Run(t.Context(), f, t.TempDir(), options(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Training a convnet on waveforms adds the spectrogram to its graph. Training an ONNX model of
// spectrograms on waveforms gives the same weights, but the saved model still takes spectrograms.
func TestModelOfSpectrograms(t *testing.T) {
	t.Parallel()
	within, outside := t.TempDir(), t.TempDir() // where the spectrogram is computed: in the saved graph or not
	must(t, parse(t, audioText), within)
	const frames = 2000/80 + 1 // of the spectrogram: 0.25 s, or 2000 samples, with a hop of 10 ms, or 80 samples
	net, err := train.ConvNet{Shape: []int{20, frames}, Classes: 1, Widths: []int{8, 8}, Depth: 1, Seed: 1}.Build()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "net.onnx")
	raw, err := net.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(audioText, "{convnet: {widths: [8, 8], depth: 1}}", "{onnx: {file: "+file+", training-mode: true}}", 1)
	must(t, parse(t, text), outside)
	a, b := readModel(t, within), readModel(t, outside)
	if in := b.Inputs(); len(in) != 1 || len(in[0].Shape) != 3 || in[0].Shape[1].Size != 20 {
		t.Errorf("the inputs of the saved network are %v, want one with 20 mel bands", in)
	}
	for _, w := range net.Weights() {
		x, errA := a.Tensor(w.Name)
		y, errB := b.Tensor(w.Name)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i := range x.Data {
			if math.Abs(float64(x.Data[i]-y.Data[i])) > 1e-5 {
				t.Fatalf("%s[%d] is %g with the spectrogram in the saved graph, and %g without", w.Name, i, x.Data[i], y.Data[i])
			}
		}
	}
	if _, err := Run(t.Context(), parse(t, text, "mels: 20 -> mels: 21"), t.TempDir(), options(t)); err == nil || !strings.Contains(err.Error(), "has the size 21, the number of bands") {
		t.Errorf("a spectrogram of 21 mel bands, where the network takes 20: error %v", err)
	}
}

// readModel reads the network in the output folder of a training.
func readModel(t *testing.T, dir string) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
