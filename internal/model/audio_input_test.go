package model_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// saveAudio writes a graph with one input "x" of the given shape (-1: a dimension of any size) and
// one output "y", which build computes from it. It returns the path.
func saveAudio(t *testing.T, build func(b *onnx.Builder, x onnx.Value) onnx.Value, shape ...int) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	y := build(b, b.Input("x", onnx.Float, shape...))
	b.Output("y", y)
	return testmodel.Save(t, filepath.Join(t.TempDir(), "m.onnx"), b)
}

// twice returns 2 x.
func twice(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Mul(x, b.Scalar(2)) }

// outputs runs a model on waveforms and returns the activations of its only layer.
func outputs(t *testing.T, m *model.Model, waveforms ...tensor.Tensor) tensor.Tensor {
	t.Helper()
	s, err := m.NewSession(m.Layers(), false) // false: without scores of classes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	buf, err := s.NewBuffers(len(waveforms))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), waveforms, buf); err != nil {
		t.Fatal(err)
	}
	return buf.Layer(0)
}

// wave returns a waveform with one channel.
func wave(values ...float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{1, len(values)}, Data: values}
}

// TestAudioModels checks that a model that doubles waveforms takes them in every shape of its input
// (b waveforms of n values), with every normalisation, in a session and as a part of another graph.
// Three values are too few for a waveform unless an option says that the input takes audio: Samples
// or the length of the frame, which also set n if the input leaves it open, or Standardise. The
// frame is what a data set must give the model: for audio, the length of waveforms and their
// samples per second. The layer "output" is the model's output.
func TestAudioModels(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	x := wave(0.5, -0.5, 0.25)
	mean, variance := 0.25/3, 0.0
	for _, v := range x.Data {
		variance += (float64(v) - mean) * (float64(v) - mean) / 3
	}
	var standardised []float32 // twice the standardised waveform
	for _, v := range x.Data {
		standardised = append(standardised, float32(2*(float64(v)-mean)/math.Sqrt(variance+1e-7))) // 1e-7 as in package model
	}
	for name, c := range map[string]struct {
		shape []int
		o     model.Options
		want  []float32 // of the waveform x
	}{
		"b x n x 1":                {[]int{-1, 3, 1}, model.Options{Samples: 3}, []float32{1, -1, 0.5}},
		"b x n":                    {[]int{-1, 3}, model.Options{Samples: 3}, []float32{1, -1, 0.5}},
		"b x 1 x n":                {[]int{-1, 1, 3}, model.Options{Samples: 3}, []float32{1, -1, 0.5}},
		"any length":               {[]int{-1, -1}, model.Options{Samples: 3}, []float32{1, -1, 0.5}},
		"any length, set by frame": {[]int{-1, 1, -1}, model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Length: 3}}}, []float32{1, -1, 0.5}},
		"batch size 1":             {[]int{1, 3}, model.Options{Samples: 3}, []float32{1, -1, 0.5}},
		// The range [-1, 1] becomes [0, 8] before 2 is subtracted and the rest divided by 2.
		"mean and range":           {[]int{-1, 3}, model.Options{Samples: 3, Preprocess: model.Preprocess{Range: [2]float32{0, 8}, Mean: []float32{2}, Std: []float32{2}}}, []float32{4, 0, 3}},
		"standardised":             {[]int{-1, 3}, model.Options{Preprocess: model.Preprocess{Standardise: true}}, standardised},
		"standardised, any length": {[]int{-1, 1, -1}, model.Options{Samples: 3, Preprocess: model.Preprocess{Standardise: true}}, standardised},
	} {
		c.o.Layers = []string{"output"}
		m, err := modeltest.Open(t, saveAudio(t, twice, c.shape...), c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !m.TakesAudio() || m.Frame() != (dataset.Frame{Length: 3}) {
			t.Errorf("%s: takes audio: %v, frame %+v, want true and waveforms of length 3", name, m.TakesAudio(), m.Frame())
		}
		got := outputs(t, m, x, x)
		for i, v := range got.At(1).Data {
			if math.Abs(float64(v-c.want[i])) > 1e-5 {
				t.Errorf("%s: %v, want %v", name, got.At(1).Data, c.want)
				break
			}
		}
		included := runIncludedAudio(t, rt, m, x)
		if !slices.EqualFunc(included, got.At(0).Data, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }) {
			t.Errorf("%s: as a part of another graph %v, want %v", name, included, got.At(0).Data)
		}
	}
}

// runIncludedAudio runs the model as a part of another graph, and returns its layer for x.
func runIncludedAudio(t *testing.T, rt *ort.Runtime, m *model.Model, x tensor.Tensor) []float32 {
	t.Helper()
	b := onnx.NewBuilder(m.Opset())
	y, err := m.Include(b, b.Input("waveforms", onnx.Float, 1, 1, x.Shape[1]), 1, m.Layers()[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("y", y[0])
	graph, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(graph, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.Wrap(rt, x.Data, 1, 1, x.Shape[1])
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*ort.Value, 1)
	if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(ort.Data[float32](out[0]))
}

// TestFeaturesInFrontOfAModel checks that a model that takes a log-mel spectrogram, opened so that
// the spectrogram is computed in front of it, equals a model that computes the spectrogram itself.
// It does so for all layouts of the input, and checks that layers keep their names.
func TestFeaturesInFrontOfAModel(t *testing.T) {
	t.Parallel()
	const n, mels = 800, 12 // values of a waveform, and mel bands of the spectrogram
	settings := logmel.Settings{Rate: 8000, Mels: mels}
	frames := settings.Frames(n) // of the spectrogram: its time steps
	withFeatures := saveAudio(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		y, err := settings.Graph(b, x)
		if err != nil {
			t.Fatal(err)
		}
		return b.Mul(y, b.Scalar(2))
	}, -1, n)
	x := tensor.New(1, n)
	for i := range x.Data {
		x.Data[i] = float32(math.Sin(float64(i*i) / 3000)) // a tone that rises
	}
	reference, err := modeltest.Open(t, withFeatures, model.Options{Layers: []string{"output"}, Preprocess: model.Preprocess{Frame: dataset.Frame{Rate: 8000}}})
	if err != nil {
		t.Fatal(err)
	}
	want := outputs(t, reference, x)
	at := func(band, frame int) float32 { return want.Data[band*frames+frame] }
	pre := func(mels int) model.Preprocess {
		return model.Preprocess{Frame: dataset.Frame{Rate: 8000, Length: n}, Features: &logmel.Settings{Mels: mels}}
	}
	for name, c := range map[string]struct {
		shape       []int
		mels        int // in the settings; 0: inferred from the shape
		framesFirst bool
	}{
		"b x mels x frames":     {[]int{-1, mels, frames}, mels, false},
		"b x frames x mels":     {[]int{-1, frames, mels}, mels, true},
		"b x 1 x mels x frames": {[]int{-1, 1, mels, frames}, 0, false},
		"b x 1 x frames x mels": {[]int{-1, 1, -1, mels}, 0, true},
		"any size":              {[]int{-1, -1, -1}, mels, false},
	} {
		for _, reload := range []bool{false, true} { // whether each session reads the weights again
			m, err := modeltest.Open(t, saveAudio(t, twice, c.shape...), model.Options{Layers: []string{"output"}, Preprocess: pre(c.mels)}, ort.NetworkOptions{ReloadWeights: reload})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if f := m.Frame(); f.Rate != 8000 || f.Length != n || m.Layers()[0].Name != "y" {
				t.Errorf("%s: frame %+v, layers %v", name, f, onnx.Names(m.Layers()))
			}
			got := outputs(t, m, x, x).At(1).Data
			for band := range mels {
				for frame := range frames {
					i := band*frames + frame
					if c.framesFirst {
						i = frame*mels + band
					}
					if math.Abs(float64(got[i]-at(band, frame))) > 1e-5 {
						t.Fatalf("%s: band %d, frame %d is %v, want %v", name, band, frame, got[i], at(band, frame))
					}
				}
			}
		}
	}
}

// TestAudioModelErrors opens models with settings that contradict their input. Waveforms of 800
// samples at a rate of 8,000 have spectrograms of 11 frames.
func TestAudioModelErrors(t *testing.T) {
	t.Parallel()
	features := func(s logmel.Settings, length int) model.Options {
		return model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Rate: 8000, Length: length}, Features: &s}}
	}
	for want, c := range map[string]struct {
		shape []int
		o     model.Options
	}{
		"does not fix the length of waveforms":      {[]int{-1, -1}, model.Options{}},
		"makes audio of length 5":                   {[]int{-1, 3}, model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Length: 5}}}},
		"sizes and channels are for images":         {[]int{-1, 1000}, model.Options{Preprocess: model.Preprocess{Frame: dataset.Frame{Height: 5}}}},
		"mean has 3 values":                         {[]int{-1, 1000}, model.Options{Preprocess: model.Preprocess{Mean: []float32{1, 2, 3}}}},
		"std has 3 values":                          {[]int{-1, 1000}, model.Options{Preprocess: model.Preprocess{Std: []float32{1, 2, 3}}}},
		"features are for audio, and the model":     {[]int{-1, 3, 8, 8}, model.Options{Preprocess: model.Preprocess{Standardise: true}}},
		"has the size 12, the number of bands":      {[]int{-1, 10, 11}, features(logmel.Settings{Mels: 12}, 800)},
		"800 samples have 11 frames":                {[]int{-1, 12, 10}, features(logmel.Settings{Mels: 12}, 800)},
		"takes 3 channels":                          {[]int{-1, 3, 12, 11}, features(logmel.Settings{Mels: 12}, 800)},
		"does not fix the number of bands":          {[]int{-1, -1, -1}, features(logmel.Settings{}, 800)},
		"needs exactly one input for features":      {[]int{-1, 12}, features(logmel.Settings{}, 800)},
		"that of the features, 16000 samples per s": {[]int{-1, 12, 11}, features(logmel.Settings{Rate: 16000}, 800)},
	} {
		c.o.Layers = []string{"output"}
		_, err := modeltest.Open(t, saveAudio(t, twice, c.shape...), c.o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", c.shape, err, want)
		}
	}
}

// TestShortVectorsAreNotAudio checks that a vector of few values is a waveform only if the
// preprocessing says so.
func TestShortVectorsAreNotAudio(t *testing.T) {
	t.Parallel()
	path := saveAudio(t, twice, -1, 12)
	if _, err := modeltest.Open(t, path, model.Options{Layers: []string{"output"}}); err == nil || !strings.Contains(err.Error(), "no input takes an image") {
		t.Errorf("twelve numbers without a rate: %v, want an error that no input takes an image", err)
	}
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"output"}, Preprocess: model.Preprocess{Frame: dataset.Frame{Rate: 8000}}})
	if err != nil || !m.TakesAudio() {
		t.Errorf("twelve samples at a rate: %v, want a model of audio", err)
	}
}

// TestStereo checks that models of two channels take both, in either order of the axes, in a session
// and as a part of another graph.
func TestStereo(t *testing.T) {
	t.Parallel()
	const n = 300
	in := tensor.New(2, n)
	for i := range in.Data {
		in.Data[i] = float32(i%7) - 3
	}
	for name, shape := range map[string][]int{"channels first": {-1, 2, n}, "channels last": {-1, n, 2}, "any length": {-1, 2, -1}} {
		time := 2
		if shape[2] == 2 {
			time = 1
		}
		path := saveAudio(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { // the sum of each channel
			return b.Mul(b.ReduceSum(x, false, time), b.Scalar(2))
		}, shape...)
		m, err := modeltest.Open(t, path, model.Options{Layers: []string{"output"}, Samples: n})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !m.TakesAudio() || !m.Frame().Stereo || !slices.Equal(m.ImageShape(), []int{2, n}) {
			t.Errorf("%s: the model takes %v in the frame %+v", name, m.ImageShape(), m.Frame())
		}
		want := make([]float32, 2)
		for i, v := range in.Data {
			want[i/n] += 2 * v
		}
		if got := outputs(t, m, in, in).At(1).Data; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestWaveformWithoutBatch checks that a model of one waveform without a batch axis is run on one
// waveform after the other, and that its outputs, and its metadata, are read.
func TestWaveformWithoutBatch(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1)
	parts := b.Reshape(x, 3, -1)
	b.Output("probabilities", b.Op("Softmax", onnx.Attrs{"axis": 0}, b.ReduceSum(parts, false, 1)))
	graph, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := graph.WithMetadata("names", "{0: 'a', 1: 'b', 2: 'c'}").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"output"}, Samples: 300})
	if err != nil {
		t.Fatal(err)
	}
	names, err := m.ClassNames()
	if err != nil || m.Batch() != 1 || m.Classes() != 3 || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("batches of %d, %d classes %v: %v", m.Batch(), m.Classes(), names, err)
	}
	in := tensor.New(1, 300)
	in.Data[250] = float32(math.Log(2))
	if got, want := outputs(t, m, in).At(0).Data, []float32{.25, .25, .5}; len(got) != 3 || math.Abs(float64(got[2]-want[2])) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSpectrogramBesideText checks that a model of a spectrogram and a text, as CLAP is, takes the
// features where they fit, and that what is missing is one line with the setting.
func TestSpectrogramBesideText(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	text := b.Input("input_ids", onnx.Int64, -1, -1)
	x := b.Input("input_features", onnx.Float, -1, 1, -1, 16)
	ids := b.Cast(b.ReduceMax(text, false, 1), onnx.Float)
	b.Input("attention_mask", onnx.Int64, -1, -1)
	b.Output("audio_embeds", b.Add(b.ReduceMean(x, false, 1, 2), b.Unsqueeze(ids, 1)))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "m.onnx"), b)
	o := model.Options{Layers: []string{"output"}, Samples: 8000, Preprocess: model.Preprocess{Features: &logmel.Settings{Rate: 8000, Mels: 16}}}
	if _, err := modeltest.Open(t, path, o); err == nil || !strings.Contains(err.Error(), "set inputs: {input_ids: 0, attention_mask: 1}") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	o.Inputs = map[string][]float64{"input_ids": {0}, "attention_mask": {1}}
	m, err := modeltest.Open(t, path, o)
	if err != nil || !m.TakesAudio() {
		t.Errorf("with values: %v", err)
	}
}
