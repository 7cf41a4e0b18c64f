package logmel_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// run feeds inputs to a graph, in the order of its inputs, and returns its outputs.
func run(t *testing.T, m *onnx.Model, inputs ...[]float32) []*ort.Value {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var values []*ort.Value
	for i, p := range m.Inputs() {
		shape := p.Sizes()
		if shape[0] < 0 {
			shape[0] = 1
		}
		v, err := ort.Wrap(rt, inputs[i], shape...)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	out := make([]*ort.Value, len(m.Outputs()))
	if err := s.Run(context.Background(), values, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// spectrogram returns the graph that computes the log-mel spectrogram of one waveform of n samples,
// its input "sound".
func spectrogram(t *testing.T, s logmel.Settings, n int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(17)
	y, err := s.Graph(b, b.Input("sound", onnx.Float, 1, n))
	if err != nil {
		t.Fatal(err)
	}
	b.Output("features", y)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAgreesWithNumPy checks spectrograms against those that testdata/golden.py computed with
// NumPy.
func TestAgreesWithNumPy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		// The arguments of logmel in golden.py. Span is Settings.Range, and Drop is DropLast.
		Settings struct {
			Rate, Window, Hop, Mels, Low, High int
			FFT                                int `json:"n_fft"`
			Scale, Pad, Log                    string
			Area, Clamp, Drop                  bool
			Power, Offset, Span, Mean, Std     float64
		}
		X []float32   // waveform
		Y [][]float64 // bands x frames
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 5 {
		t.Errorf("%d cases, want 5", len(cases))
	}
	for i, c := range cases {
		g := c.Settings
		s := logmel.Settings{Rate: g.Rate, FFT: g.FFT, Window: g.Window, Hop: g.Hop, Mels: g.Mels, Low: float64(g.Low), High: float64(g.High), Scale: g.Scale,
			Area: g.Area, Power: g.Power, Pad: g.Pad, Log: g.Log, Offset: g.Offset, Clamp: g.Clamp, Range: g.Span, Mean: g.Mean, Std: g.Std, DropLast: g.Drop}
		out := run(t, spectrogram(t, s, len(c.X)), c.X)[0]
		frames := len(c.Y[0])
		if want := []int{1, g.Mels, frames}; !slices.Equal(out.Shape(), want) || s.Frames(len(c.X)) != frames {
			t.Fatalf("case %d: shape %v and %d frames, want %v", i, out.Shape(), s.Frames(len(c.X)), want)
		}
		got := ort.Data[float32](out)
		var worst float64
		for m, row := range c.Y {
			for k, want := range row {
				worst = math.Max(worst, math.Abs(float64(got[m*frames+k])-want))
			}
		}
		t.Logf("case %d: largest error %.1e", i, worst)
		if !(worst <= 1e-4) {
			t.Errorf("case %d: largest error %v, want at most 1e-4", i, worst)
		}
	}
}

// TestAgreesWithSpeechLibraries checks the features of SpeechBrain's x-vectors, and those of Masked
// Modeling Duo by nnAudio (testdata/speech.py).
func TestAgreesWithSpeechLibraries(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/speech.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name        string
		Rate, Bands int
		X           []float32   // waveform
		Y           [][]float64 // bands x frames
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	settings := map[string]logmel.Settings{
		"speechbrain": {Hamming: true, Symmetric: true, SubtractMean: true, Pad: "zeros", Log: "db", Offset: 1e-10, Clamp: true, Range: 80},
		"duo":         {Low: 50, High: 8000, Scale: "slaney", Area: true, Offset: 1.1920929e-7, Mean: -7.1, Std: 4.2},
	}
	for _, c := range cases {
		s, ok := settings[c.Name]
		if !ok {
			t.Fatalf("no settings for %s", c.Name)
		}
		s.Rate, s.Mels = c.Rate, c.Bands
		out := run(t, spectrogram(t, s, len(c.X)), c.X)[0]
		frames := len(c.Y[0])
		if want := []int{1, c.Bands, frames}; !slices.Equal(out.Shape(), want) {
			t.Fatalf("%s at %d Hz: shape %v, want %v", c.Name, c.Rate, out.Shape(), want)
		}
		got := ort.Data[float32](out)
		var worst float64
		for m, row := range c.Y {
			for k, want := range row {
				worst = math.Max(worst, math.Abs(float64(got[m*frames+k])-want)/max(1, math.Abs(want)))
			}
		}
		t.Logf("%s at %d Hz: largest difference %.1e", c.Name, c.Rate, worst)
		if !(worst <= 1e-4) {
			t.Errorf("%s at %d Hz: the largest difference is %.1e, want at most 1e-4", c.Name, c.Rate, worst)
		}
	}
}

// TestGradient checks that the derivative of a weighted sum of the features along a random
// direction agrees with the central difference quotient, up to rounding in float32.
func TestGradient(t *testing.T) {
	t.Parallel()
	for _, s := range []logmel.Settings{{Rate: 8000, Mels: 12}, {Rate: 8000, Mels: 12, FFT: 256, Power: 1, Log: "db", Clamp: true, Range: 60, Scale: "slaney", Area: true}} {
		const n = 900
		m := spectrogram(t, s, n)
		// g has m's input and another one, r: the weights of the features. Its second output is the
		// gradient of the weighted sum by the waveform.
		g, err := grad.Add(m, grad.Options{Of: "features", Cotangent: "r", By: []string{"sound"}})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		random := func(n int, scale float64) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(scale * r.NormFloat64())
			}
			return v
		}
		x, weights, direction := random(n, 0.1), random(12*s.Frames(n), 1), random(n, 1)
		dx := ort.Data[float32](run(t, g, x, weights)[1])
		const h = 2e-4 // step of the difference quotient
		var derivative float64
		for i := range dx {
			derivative += float64(dx[i]) * float64(direction[i])
		}
		value := func(step float64) (sum float64) {
			moved := slices.Clone(x)
			for i := range moved {
				moved[i] += float32(step) * direction[i]
			}
			for i, v := range ort.Data[float32](run(t, m, moved)[0]) {
				sum += float64(v) * float64(weights[i])
			}
			return sum
		}
		quotient := (value(h) - value(-h)) / (2 * h)
		if math.Abs(quotient-derivative) > 0.01*math.Abs(derivative)+0.5 {
			t.Errorf("%+v: the derivative is %v and the difference quotient %v", s, derivative, quotient)
		}
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]logmel.Settings{
		"rate is missing":       {},
		"frames of 100000":      {Rate: 8000, FFT: 100000},
		"a window of 300":       {Rate: 8000, FFT: 256, Window: 300},
		"frames are -1 samples": {Rate: 8000, Hop: -1},
		"300 bands":             {Rate: 8000, Mels: 300},
		`scale "bark"`:          {Rate: 8000, Scale: "bark"},
		`pad "edge"`:            {Rate: 8000, Pad: "edge"},
		`log "ln"`:              {Rate: 8000, Log: "ln"},
		"power is 3":            {Rate: 8000, Power: 3},
		"offset -1":             {Rate: 8000, Offset: -1},
		"mean NaN":              {Rate: 8000, Mean: math.NaN()},
		"from 5000 to 4000 Hz":  {Rate: 8000, Low: 5000},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}
