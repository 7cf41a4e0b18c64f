package logmel_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model/logmel"
)

// TestAgreesWithKaldi checks filter banks and coefficients against those of
// torchaudio.compliance.kaldi and of kaldi-native-fbank (testdata/kaldi.py).
func TestAgreesWithKaldi(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/kaldi.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Settings struct {
			Rate, Mels, Cepstra                          int
			Window                                       string
			Ms                                           float64
			Hop                                          float64 `json:"hop_ms"`
			Low, High, Preemphasis, Floor, Power, Lifter float64
			Scale                                        float32 // of the waveform
			Snip, DC, Energy, Raw, Subtract              bool
		}
		X                  []float32
		Torchaudio, Native [][]float64 // values of a frame x frames
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 10 {
		t.Errorf("%d cases, want 10", len(cases))
	}
	for i, c := range cases {
		g := c.Settings
		s := logmel.Settings{Rate: g.Rate, Window: int(float64(g.Rate) * g.Ms / 1000), Hop: int(float64(g.Rate) * g.Hop / 1000), Mels: g.Mels, Low: g.Low, High: g.High, Power: g.Power,
			Kaldi: &logmel.Kaldi{Cepstra: g.Cepstra, WindowType: g.Window, Preemphasis: g.Preemphasis, KeepMean: !g.DC, Mirror: !g.Snip, Energy: g.Energy,
				WindowedEnergy: !g.Raw, EnergyFloor: g.Floor, Lifter: g.Lifter, SubtractMean: g.Subtract}}
		x := slices.Clone(c.X)
		for j := range x {
			x[j] *= g.Scale
		}
		out := run(t, spectrogram(t, s, len(x)), x)[0]
		rows, frames := len(c.Torchaudio), len(c.Torchaudio[0])
		if want := []int{1, rows, frames}; !slices.Equal(out.Shape(), want) || s.Frames(len(x)) != frames || s.Rows() != rows {
			t.Fatalf("case %d: shape %v, %d rows and %d frames, want %v", i, out.Shape(), s.Rows(), s.Frames(len(x)), want)
		}
		got := ort.Data[float32](out)
		for name, golden := range map[string][][]float64{"torchaudio": c.Torchaudio, "kaldi-native-fbank": c.Native} {
			var worst float64
			for m, row := range golden {
				for k, want := range row {
					worst = math.Max(worst, math.Abs(float64(got[m*frames+k])-want)/max(1, math.Abs(want)))
				}
			}
			if !(worst <= 1e-4) {
				t.Errorf("case %d: the largest difference from %s is %.1e, want at most 1e-4", i, name, worst)
			}
		}
	}
}

// Frames are filled up with zeros or cut before the normalisation.
func TestKaldiFrames(t *testing.T) {
	t.Parallel()
	x := make([]float32, 800)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	base := logmel.Settings{Rate: 8000, Mels: 5, Mean: -4, Std: 2, Kaldi: &logmel.Kaldi{WindowType: "povey"}}
	all := ort.Data[float32](run(t, spectrogram(t, base, len(x)), x)[0]) // 5 x 8
	for _, frames := range []int{6, 11} {
		k := *base.Kaldi
		k.Frames = frames
		s := base
		s.Kaldi = &k
		got := ort.Data[float32](run(t, spectrogram(t, s, len(x)), x)[0])
		if len(got) != 5*frames || s.Frames(len(x)) != frames {
			t.Fatalf("%d values for %d frames, of which Frames has %d", len(got), frames, s.Frames(len(x)))
		}
		for m := range 5 {
			for i := range frames {
				want := float32(2) // (0 + 4) / 2
				if i < 8 {
					want = all[m*8+i]
				}
				if got[m*frames+i] != want {
					t.Fatalf("%d frames: band %d of frame %d is %g, want %g", frames, m, i, got[m*frames+i], want)
				}
			}
		}
	}
}

func TestBadKaldiSettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*logmel.Settings){
		"frames of 1 samples":   func(s *logmel.Settings) { s.Window = 1 },
		"frames are -2 samples": func(s *logmel.Settings) { s.Hop = -2 },
		"2 bands":               func(s *logmel.Settings) { s.Mels = 2 },
		"24 coefficients of 23": func(s *logmel.Settings) { s.Kaldi.Cepstra = 24 },
		`window "gauss"`:        func(s *logmel.Settings) { s.Kaldi.WindowType = "gauss" },
		"from 20 to 5000 Hz":    func(s *logmel.Settings) { s.High = 5000 },
		"preemphasis 2":         func(s *logmel.Settings) { s.Kaldi.Preemphasis = 2 },
		"must not be negative":  func(s *logmel.Settings) { s.Kaldi.Lifter = math.Inf(1) },
	} {
		s := logmel.Settings{Rate: 8000, Low: 20, Kaldi: &logmel.Kaldi{WindowType: "povey"}}
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}
