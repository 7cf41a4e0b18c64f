// Package logmel builds logarithmic mel spectrograms as ONNX graphs, so that a network that takes
// features can be fed waveforms: the spectrogram is computed by the engine that runs the network, and
// gradients flow through it.
//
// A waveform x of n samples becomes frames of FFT samples, Hop apart, each under a Hann window w. With
// X the discrete Fourier transform of a frame and M the mel filter bank of package audio,
//
//	X[k, t] = sum over i of w[i] x[t Hop + i] exp(-2 pi j k i / FFT)
//	S[m, t] = sum over k of M[m, k] |X[k, t]|^Power
//	y[m, t] = (log(S[m, t] + Offset) - Mean) / Std
//
// The transform is one convolution by the cosines and sines of all frequencies. With the waveform
// padded by FFT / 2 on both sides ("reflect", "zeros"), frame t is centred at sample t Hop and there
// are floor(n / Hop) + 1 frames. These are the conventions of torch.stft and of librosa; Scale and
// Area choose between torchaudio's default bank and librosa's.
//
//	s := logmel.Settings{Rate: 8000, Mels: 40}
//	features, err := s.Graph(b, wave) // wave: b x n or b x 1 x n; features: b x mels x frames
package logmel

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/audio"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Settings are those of a spectrogram. What is left zero has the default that stands behind it.
type Settings struct {
	Rate   int     // samples a second; required
	FFT    int     // samples of a frame; the window's length
	Window int     // samples of the Hann window, in the middle of the frame; 25 ms
	Hop    int     // samples between frames; 10 ms
	Mels   int     // bands; 64
	Low    float64 // Hz
	High   float64 // Hz; half the rate
	Scale  string  // "htk" or "slaney"; htk
	Area   bool    // bands of equal area (librosa) in place of equal height (torchaudio)
	Power  float64 // 1: magnitudes, 2: powers; 2
	Pad    string  // "reflect", "zeros" or "none"; reflect
	Log    string  // "natural", "log10" or "db" (10 log10); natural
	Offset float64 // what is added before the logarithm; 1e-6
	Clamp  bool    // the larger of S and Offset is taken, in place of their sum
	Range  float64 // what lies further than this below a sound's loudest value is raised to it, in the unit of the logarithm; 0: nothing is
	Mean   float64 // what is subtracted from the logarithm
	Std    float64 // what it is then divided by; 1

	DropLast bool `json:",omitzero"` // the last frame is left out, as Whisper has it
}

// Defaults fills in what is left zero.
func (s Settings) Defaults() Settings {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&s.Window, int(math.Round(0.025*float64(s.Rate))))
	or(&s.FFT, s.Window)
	or(&s.Hop, int(math.Round(0.010*float64(s.Rate))))
	or(&s.Mels, 64)
	text := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	text(&s.Scale, "htk")
	text(&s.Pad, "reflect")
	text(&s.Log, "natural")
	number := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	number(&s.High, float64(s.Rate)/2)
	number(&s.Power, 2)
	number(&s.Offset, 1e-6)
	number(&s.Std, 1)
	return s
}

const maxFFT = 1 << 14 // the matrix of the transform has FFT^2 entries

// Check reports settings that make no sense.
func (s Settings) Check() error {
	if s.Rate < 1 {
		return errors.New("log-mel: the rate is missing: how many samples make a second")
	}
	s = s.Defaults()
	switch {
	case s.FFT < 2 || s.FFT > maxFFT:
		return fmt.Errorf("log-mel: frames of %d samples: they have 2 to %d", s.FFT, maxFFT)
	case s.Window < 1 || s.Window > s.FFT:
		return fmt.Errorf("log-mel: a window of %d samples in frames of %d", s.Window, s.FFT)
	case s.Hop < 1:
		return fmt.Errorf("log-mel: frames %d samples apart", s.Hop)
	case s.Mels < 1 || s.Mels > s.FFT:
		return fmt.Errorf("log-mel: %d bands of %d bins", s.Mels, s.FFT/2+1)
	case s.Scale != "htk" && s.Scale != "slaney":
		return fmt.Errorf("log-mel: scale %q: it is htk or slaney", s.Scale)
	case s.Pad != "reflect" && s.Pad != "zeros" && s.Pad != "none":
		return fmt.Errorf("log-mel: pad %q: it is reflect, zeros or none", s.Pad)
	case logs[s.Log] == 0:
		return fmt.Errorf("log-mel: log %q: it is natural, log10 or db", s.Log)
	case s.Power != 1 && s.Power != 2:
		return fmt.Errorf("log-mel: power %v: it is 1 or 2", s.Power)
	case !(s.Offset > 0) || !(s.Range >= 0) || s.Std == 0 || !finite(s.Offset, s.Range, s.Mean, s.Std):
		return fmt.Errorf("log-mel: offset %v, range %v, mean %v, std %v: the offset is above 0, the range is not negative, std is not 0", s.Offset, s.Range, s.Mean, s.Std)
	}
	_, err := s.mel().Bank()
	return err
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// logs are what the natural logarithm is multiplied by.
var logs = map[string]float64{"natural": 1, "log10": 1 / math.Ln10, "db": 10 / math.Ln10}

func (s Settings) mel() audio.Mel {
	return audio.Mel{Rate: s.Rate, FFT: s.FFT, N: s.Mels, Low: s.Low, High: s.High, HTK: s.Scale == "htk", Area: s.Area}
}

// Frames returns the number of frames of a sound of n samples.
func (s Settings) Frames(n int) int {
	s = s.Defaults()
	if s.Pad != "none" {
		n += 2 * (s.FFT / 2)
	}
	if n -= s.FFT; n < 0 {
		return 0
	}
	if s.DropLast {
		return n / s.Hop
	}
	return n/s.Hop + 1
}

// Graph adds the spectrogram to a graph that is being built: wave is b x n or b x 1 x n, the result b x mels x frames. A sound
// that is shorter than a frame has none; one that is to be reflected must be longer than half a frame.
func (s Settings) Graph(b *onnx.Builder, wave onnx.Value) (onnx.Value, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	s = s.Defaults()
	bank, err := s.mel().Bank()
	if err != nil {
		return "", err
	}
	x := b.Reshape(wave, 0, 1, -1)
	pads := []int{0, 0}
	switch s.Pad {
	case "zeros":
		pads = []int{s.FFT / 2, s.FFT / 2}
	case "reflect":
		x = b.Op("Pad", onnx.Attrs{"mode": "reflect"}, x, b.Ints(0, 0, s.FFT/2, 0, 0, s.FFT/2))
	}
	spectrum := b.Op("Conv", onnx.Attrs{"strides": []int{s.Hop}, "pads": pads, "kernel_shape": []int{s.FFT}}, x, b.Const("fourier", s.fourier()))
	if s.DropLast {
		spectrum = b.Slice(spectrum, 2, 0, -1, 1)
	}
	y := s.compress(b, b.MatMul(b.Const("mel", matrix(bank)), s.power(b, spectrum)))
	return y, b.Err()
}

// fourier holds the cosines of all frequencies under the window, then the sines: 2 bins x 1 x FFT.
func (s Settings) fourier() tensor.Tensor {
	bins := s.FFT/2 + 1
	t := tensor.New(2*bins, 1, s.FFT)
	window, lead := audio.Hann(s.Window), (s.FFT-s.Window)/2
	for k := range bins {
		for i, w := range window {
			at := lead + i
			// The angle is reduced by whole turns first, in integers.
			sin, cos := math.Sincos(2 * math.Pi * float64(k*at%s.FFT) / float64(s.FFT))
			t.Data[k*s.FFT+at] = float32(w * cos)
			t.Data[(bins+k)*s.FFT+at] = float32(-w * sin)
		}
	}
	return t
}

// power returns |X| or |X|^2: b x bins x frames.
func (s Settings) power(b *onnx.Builder, spectrum onnx.Value) onnx.Value {
	bins := s.FFT/2 + 1
	re, im := b.Slice(spectrum, 1, 0, bins, 1), b.Slice(spectrum, 1, bins, 2*bins, 1)
	p := b.Add(b.Mul(re, re), b.Mul(im, im))
	if s.Power == 1 {
		p = b.Sqrt(b.Add(p, b.Scalar(1e-20))) // the root has a gradient at silence
	}
	return p
}

// compress takes the logarithm and what comes after it.
func (s Settings) compress(b *onnx.Builder, y onnx.Value) onnx.Value {
	offset := b.Scalar(float32(s.Offset))
	if s.Clamp {
		y = b.Op("Max", nil, y, offset)
	} else {
		y = b.Add(y, offset)
	}
	y = b.Log(y)
	if scale := logs[s.Log]; scale != 1 {
		y = b.Mul(y, b.Scalar(float32(scale)))
	}
	if s.Range > 0 {
		y = b.Op("Max", nil, y, b.Sub(b.ReduceMax(y, true, 1, 2), b.Scalar(float32(s.Range))))
	}
	if s.Mean != 0 {
		y = b.Sub(y, b.Scalar(float32(s.Mean)))
	}
	if s.Std != 1 {
		y = b.Div(y, b.Scalar(float32(s.Std)))
	}
	return y
}

func matrix(rows [][]float64) tensor.Tensor {
	t := tensor.New(len(rows), len(rows[0]))
	for i, row := range rows {
		for k, v := range row {
			t.Data[i*len(row)+k] = float32(v)
		}
	}
	return t
}
