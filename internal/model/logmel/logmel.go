// Package logmel builds logarithmic mel spectrograms, and the features of Kaldi, as ONNX graphs. A
// network whose input is a spectrogram can then take waveforms: the engine that runs the network also
// computes the spectrogram, and gradients flow through it.
//
// A waveform x of n samples is divided into frames of FFT samples, Hop samples apart, each
// multiplied by a Hann or Hamming window w. With X the discrete Fourier transform of frame t, M the
// mel filter bank of package audio, j the imaginary unit, and capitalised names the fields of
// Settings,
//
//	X[k, t] = sum over i of w[i] x[t Hop + i] exp(-2 pi j k i / FFT)
//	S[m, t] = sum over k of M[m, k] |X[k, t]|^Power
//	y[m, t] = (log(S[m, t] + Offset) - Mean) / Std
//
// Clamp, Range, Log and SubtractMean, which change the last line, are described with Settings.
//
// The transform is one convolution with the cosines and sines of all frequencies. If the waveform
// is padded by FFT / 2 samples on both sides ("reflect", "zeros"), frame t is centred at sample t
// Hop, and there are floor(n / Hop) + 1 frames. These are the conventions of torch.stft and
// librosa. Scale and Area choose between torchaudio's default filter bank and librosa's.
//
//	s := logmel.Settings{Rate: 8000, Mels: 40}
//	features, err := s.Graph(b, wave) // wave: b x n or b x 1 x n; features: b x mels x frames
package logmel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Settings are the settings of a spectrogram. A field that is zero has the default that its comment
// gives.
type Settings struct {
	Rate   int     // samples per second; required
	FFT    int     // samples of a frame; default: Window
	Window int     // samples of the window, in the middle of the frame; default: 25 ms
	Hop    int     // samples from one frame to the next; default: 10 ms
	Mels   int     // number of bands, the filters of the filter bank; default: 64
	Low    float64 // lowest frequency of the bands in Hz
	High   float64 // highest frequency of the bands in Hz; default: half the rate
	Scale  string  // mel scale, "htk" (default of torchaudio and here) or "slaney" (of librosa)
	Area   bool    // filters of equal area (librosa) instead of equal height (torchaudio)
	Power  float64 // 1: of magnitudes; 2 (default): of powers
	Pad    string  // beyond the ends of the waveform: "reflect" (default), "zeros" or "none"
	Log    string  // "natural" (default), "log10" or "db" (10 log10)
	Offset float64 // added before the logarithm; default: 1e-6
	Clamp  bool    // take the larger of S (see the package comment) and Offset instead of their sum
	// Range is the largest difference of two values of a spectrogram, in the unit of the logarithm:
	// lower values are raised to the largest value less Range; 0: none is raised.
	Range float64
	Mean  float64 // subtracted from the logarithm
	Std   float64 // divides the result; default: 1

	DropLast bool `json:",omitzero"` // leave out the last frame, as Whisper does

	Hamming      bool `json:",omitzero"` // the window is Hamming's instead of Hann's
	Symmetric    bool `json:",omitzero"` // filters of the bands as in SpeechBrain; see audio.Mel
	SubtractMean bool `json:",omitzero"` // subtract the mean over frames of each band

	Kaldi *Kaldi `json:",omitzero"` // not nil: the features are Kaldi's
}

// Rows returns the number of values of a frame; 0: not set.
func (s Settings) Rows() int {
	switch k := s.Kaldi; {
	case k == nil || s.Mels == 0 && k.Cepstra == 0:
		return s.Mels
	case k.Cepstra > 0:
		return k.Cepstra
	case k.Energy:
		return s.Mels + 1
	}
	return s.Mels
}

// WithRows returns settings whose frames have n values.
func (s Settings) WithRows(n int) Settings {
	if k := s.Kaldi; k != nil && k.Energy && k.Cepstra == 0 {
		n--
	}
	s.Mels = n
	return s
}

// Defaults returns the settings with defaults in place of zero fields.
func (s Settings) Defaults() Settings {
	if s.Kaldi != nil {
		return s.kaldiDefaults()
	}
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

// maxFFT bounds FFT: the matrix of the transform has about FFT^2 elements.
const maxFFT = 1 << 14

// Check returns an error for settings that are out of range.
func (s Settings) Check() error {
	if s.Rate < 1 {
		return errors.New("features: the rate is missing: set the number of samples per second")
	}
	s = s.Defaults()
	if s.Kaldi != nil {
		return s.checkKaldi()
	}
	switch {
	case s.FFT < 2 || s.FFT > maxFFT:
		return fmt.Errorf("log-mel: frames of %d samples: they must have 2 to %d", s.FFT, maxFFT)
	case s.Window < 1 || s.Window > s.FFT:
		return fmt.Errorf("log-mel: a window of %d samples: it must have 1 to %d, the samples of a frame", s.Window, s.FFT)
	case s.Hop < 1:
		return fmt.Errorf("log-mel: frames are %d samples apart: it must be at least 1", s.Hop)
	case s.Mels < 1 || s.Mels > s.FFT:
		return fmt.Errorf("log-mel: %d bands: there must be 1 to %d, the samples of a frame", s.Mels, s.FFT)
	case s.Scale != "htk" && s.Scale != "slaney":
		return fmt.Errorf("log-mel: unknown scale %q: use htk or slaney", s.Scale)
	case s.Pad != "reflect" && s.Pad != "zeros" && s.Pad != "none":
		return fmt.Errorf("log-mel: unknown pad %q: use reflect, zeros or none", s.Pad)
	case logs[s.Log] == 0:
		return fmt.Errorf("log-mel: unknown log %q: use natural, log10 or db", s.Log)
	case s.Power != 1 && s.Power != 2:
		return fmt.Errorf("log-mel: power is %v: it must be 1 or 2", s.Power)
	case !(s.Offset > 0) || !(s.Range >= 0) || s.Std == 0 || !finite(s.Offset, s.Range, s.Mean, s.Std):
		return fmt.Errorf("log-mel: offset %v, range %v, mean %v, std %v: the offset must be above 0, the range not negative, and std not 0", s.Offset, s.Range, s.Mean, s.Std)
	}
	_, err := s.mel().Bank()
	return err
}

func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// logs has, for each Settings.Log, the factor by which the natural logarithm is multiplied.
var logs = map[string]float64{"natural": 1, "log10": 1 / math.Ln10, "db": 10 / math.Ln10}

func (s Settings) mel() audio.Mel {
	return audio.Mel{Rate: s.Rate, FFT: s.FFT, N: s.Mels, Low: s.Low, High: s.High, HTK: s.Scale == "htk", Area: s.Area, Symmetric: s.Symmetric}
}

// Frames returns the number of frames of a sound of n samples.
func (s Settings) Frames(n int) int {
	s = s.Defaults()
	if s.Kaldi != nil {
		return s.kaldiFrames(n)
	}
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

// Graph adds the features to a graph that is being built. wave is b x n or b x 1 x n, and the
// result is b x Rows x frames. A waveform that is shorter than a frame has no frames. With
// "reflect" it must be longer than half a frame.
func (s Settings) Graph(b *onnx.Builder, wave onnx.Value) (onnx.Value, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	s = s.Defaults()
	if s.Kaldi != nil {
		return s.kaldiGraph(b, wave)
	}
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

// fourier returns the windowed cosines of all frequencies, then the sines: 2 bins x 1 x FFT.
func (s Settings) fourier() tensor.Tensor {
	bins := s.FFT/2 + 1
	t := tensor.New(2*bins, 1, s.FFT)
	window, lead := audio.Hann(s.Window), (s.FFT-s.Window)/2 // lead: samples of the frame before the window
	if s.Hamming {
		window = audio.Hamming(s.Window)
	}
	for k := range bins {
		for i, w := range window {
			at := lead + i
			// The angle is first reduced by multiples of 2 pi, in integers.
			sin, cos := math.Sincos(2 * math.Pi * float64(k*at%s.FFT) / float64(s.FFT))
			t.Data[k*s.FFT+at] = float32(w * cos)
			t.Data[(bins+k)*s.FFT+at] = float32(-w * sin)
		}
	}
	return t
}

func (s Settings) power(b *onnx.Builder, spectrum onnx.Value) onnx.Value {
	bins := s.FFT/2 + 1
	re, im := b.Slice(spectrum, 1, 0, bins, 1), b.Slice(spectrum, 1, bins, 2*bins, 1)
	p := b.Add(b.Mul(re, re), b.Mul(im, im))
	if s.Power == 1 {
		p = b.Sqrt(b.Add(p, b.Scalar(1e-20))) // so that the root has a gradient at 0
	}
	return p
}

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
	if s.SubtractMean {
		y = b.Sub(y, b.ReduceMean(y, true, 2))
	}
	return s.normalise(b, y)
}

// normalise returns (y - Mean) / Std.
func (s Settings) normalise(b *onnx.Builder, y onnx.Value) onnx.Value {
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
