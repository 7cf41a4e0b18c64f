package logmel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Kaldi holds the settings of the features of Kaldi, as torchaudio.compliance.kaldi and
// kaldi-native-fbank compute them, that Settings does not have: filter banks (fbank) and mel
// frequency cepstral coefficients (MFCC). Rate, Window, Hop, Mels, Low, High, Power, Mean and Std
// of Settings apply too; a High of 0 or less is that far below half the rate.
//
// From each frame its mean is subtracted, then each value takes Preemphasis times the one before
// it, and the frame is multiplied by the window and filled up with zeros to a power of two. These
// steps are linear, so one convolution does them together with the transform. Filters are triangles
// in mel = 1127 ln(1 + f / 700). The logarithm is that of the larger of the value and 2^-23.
type Kaldi struct {
	Cepstra     int    // number of cepstral coefficients; 0: filter banks
	WindowType  string // "povey", "hanning", "hamming", "blackman" or "rectangular"
	Preemphasis float64
	KeepMean    bool // do not subtract the mean of a frame
	// Mirror continues the waveform at both ends by its mirror image: floor(n / Hop + 1/2) frames
	// (Kaldi's snip-edges = false).
	Mirror bool
	// Energy puts the logarithm of a frame's energy before the bands, or in place of the first
	// coefficient. It is that before Preemphasis and window, or with WindowedEnergy after them, and
	// at least that of EnergyFloor.
	Energy         bool
	WindowedEnergy bool
	EnergyFloor    float64
	Lifter         float64 // of the coefficients, as in HTK; 0: none
	SubtractMean   bool    // subtract the mean over frames
	Frames         int     // frames of the result, to which zeros are added, or which are cut; 0: all
}

// kaldiEpsilon is the smallest value before a logarithm, the epsilon of float32.
const kaldiEpsilon = 1.0 / (1 << 23)

var kaldiWindows = map[string]func(cos float64) float64{
	"povey":       func(cos float64) float64 { return math.Pow(0.5-0.5*cos, 0.85) },
	"hanning":     func(cos float64) float64 { return 0.5 - 0.5*cos },
	"hamming":     func(cos float64) float64 { return 0.54 - 0.46*cos },
	"blackman":    func(cos float64) float64 { return 0.42 - 0.5*cos + 0.08*(2*cos*cos-1) },
	"rectangular": func(float64) float64 { return 1 },
}

func (s Settings) kaldiDefaults() Settings {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&s.Window, s.Rate*25/1000) // rounded down, as Kaldi does
	or(&s.Hop, s.Rate/100)
	or(&s.Mels, 23)
	s.FFT = 1
	for s.FFT < s.Window {
		s.FFT *= 2
	}
	if s.Power == 0 {
		s.Power = 2
	}
	if s.High <= 0 {
		s.High += float64(s.Rate) / 2
	}
	if s.Std == 0 {
		s.Std = 1
	}
	return s
}

func (s Settings) checkKaldi() error {
	k := s.Kaldi
	switch {
	case s.Window < 2 || s.FFT > maxFFT:
		return fmt.Errorf("kaldi: frames of %d samples: they must have 2 to %d", s.Window, maxFFT)
	case s.Hop < 1:
		return fmt.Errorf("kaldi: frames are %d samples apart: it must be at least 1", s.Hop)
	case s.Mels < 3 || s.Mels > s.FFT:
		return fmt.Errorf("kaldi: %d bands: there must be 3 to %d, the samples of a frame", s.Mels, s.FFT)
	case k.Cepstra < 0 || k.Cepstra > s.Mels:
		return fmt.Errorf("kaldi: %d coefficients of %d bands: there must be 1 to as many as bands", k.Cepstra, s.Mels)
	case kaldiWindows[k.WindowType] == nil:
		return fmt.Errorf("kaldi: unknown window %q: use povey, hanning, hamming, blackman or rectangular", k.WindowType)
	case s.Power != 1 && s.Power != 2:
		return fmt.Errorf("kaldi: power is %v: it must be 1 or 2", s.Power)
	case !(0 <= s.Low && s.Low < s.High && s.High <= float64(s.Rate)/2):
		return fmt.Errorf("kaldi: bands from %v to %v Hz: the range must be in 0 to %v, half the rate", s.Low, s.High, float64(s.Rate)/2)
	case !(k.Preemphasis >= 0 && k.Preemphasis <= 1):
		return fmt.Errorf("kaldi: preemphasis %v: it must be 0 to 1", k.Preemphasis)
	case !(k.EnergyFloor >= 0) || !(k.Lifter >= 0) || k.Frames < 0 || s.Std == 0 || !finite(k.EnergyFloor, k.Lifter, s.Mean, s.Std):
		return errors.New("kaldi: energy-floor, lifter and frames must not be negative, std not 0, and all finite")
	}
	return nil
}

// mirrored returns the numbers of samples by which Mirror continues a waveform; negative ones are
// left out instead.
func (s Settings) mirrored() (before, after int) {
	before = s.Window/2 - s.Hop/2
	return before, s.Window - s.Hop + s.Hop/2 - before
}

func (s Settings) kaldiFrames(n int) int {
	if s.Kaldi.Frames > 0 {
		return s.Kaldi.Frames
	}
	if s.Kaldi.Mirror {
		return (n + s.Hop/2) / s.Hop
	}
	if n < s.Window {
		return 0
	}
	return (n-s.Window)/s.Hop + 1
}

func (s Settings) kaldiGraph(b *onnx.Builder, wave onnx.Value) (onnx.Value, error) {
	k := s.Kaldi
	x := b.Reshape(wave, 0, 1, -1)
	if k.Mirror {
		x = s.mirror(b, x)
	}
	frames := func(name string, kernels tensor.Tensor) onnx.Value {
		return b.Op("Conv", onnx.Attrs{"strides": []int{s.Hop}, "kernel_shape": []int{s.Window}}, x, b.Const(name, kernels))
	}
	floor := func(y onnx.Value, v float64) onnx.Value { return b.Op("Max", nil, y, b.Scalar(float32(v))) }
	spectrum := frames("fourier", s.kaldiKernels(k.Preemphasis, k.WindowType))
	y := b.MatMul(b.Const("mel", matrix(s.kaldiBank())), s.power(b, spectrum))
	y = b.Log(floor(y, kaldiEpsilon))
	if k.Cepstra > 0 {
		y = b.MatMul(b.Const("cosines", matrix(s.cosines())), y)
	}
	if k.Energy {
		if !k.WindowedEnergy {
			spectrum = frames("plain", s.kaldiKernels(0, "rectangular"))
		}
		e := b.Log(floor(b.MatMul(b.Const("parseval", matrix(s.parseval())), b.Mul(spectrum, spectrum)), max(kaldiEpsilon, k.EnergyFloor)))
		if k.Cepstra > 0 {
			y = b.Slice(y, 1, 1, k.Cepstra, 1)
		}
		y = b.Concat(1, e, y)
	}
	if k.SubtractMean {
		y = b.Sub(y, b.ReduceMean(y, true, 2))
	}
	if k.Frames > 0 {
		y = b.Slice(b.Op("Pad", nil, y, b.Ints(0, 0, 0, 0, 0, k.Frames)), 2, 0, k.Frames, 1)
	}
	return s.normalise(b, y), b.Err()
}

// mirror returns the waveform x, b x 1 x n, with its mirror image at both ends.
func (s Settings) mirror(b *onnx.Builder, x onnx.Value) onnx.Value {
	before, after := s.mirrored()
	whole := x
	if before < 0 {
		x = b.Slice(x, 2, -before, math.MaxInt32, 1)
	}
	if after < 0 {
		x = b.Slice(x, 2, 0, after, 1)
	}
	parts := []onnx.Value{x}
	if before > 0 {
		parts = slices.Insert(parts, 0, b.Slice(whole, 2, before-1, math.MinInt32, -1))
	}
	if after > 0 {
		parts = append(parts, b.Slice(whole, 2, -1, -after-1, -1))
	}
	return b.Concat(2, parts...)
}

// kaldiKernels returns the cosines of all frequencies, then the sines, 2 bins x 1 x Window, as
// applied to a frame without its mean, after preemphasis a and a window.
func (s Settings) kaldiKernels(a float64, window string) tensor.Tensor {
	bins, n := s.FFT/2+1, s.Window
	t, row := tensor.New(2*bins, 1, n), make([]float64, n)
	for k := range 2 * bins {
		for i := range row {
			sin, cos := math.Sincos(2 * math.Pi * float64(k%bins*i%s.FFT) / float64(s.FFT))
			if row[i] = cos; k >= bins {
				row[i] = -sin
			}
			row[i] *= kaldiWindows[window](math.Cos(2 * math.Pi * float64(i) / float64(n-1)))
		}
		// The transposes of preemphasis, y[i] = x[i] - a x[max(i - 1, 0)], and of the mean.
		first, mean := row[0], 0.0
		for i := range row[:n-1] {
			row[i] -= a * row[i+1]
		}
		row[0] -= a * first
		if !s.Kaldi.KeepMean {
			for _, v := range row {
				mean += v / float64(n)
			}
		}
		for i, v := range row {
			t.Data[k*n+i] = float32(v - mean)
		}
	}
	return t
}

// kaldiBank returns the filters, Mels x bins. The last bin, half the rate, is in none.
func (s Settings) kaldiBank() [][]float64 {
	mel := func(hz float64) float64 { return 1127 * math.Log(1+hz/700) }
	low := mel(s.Low)
	step := (mel(s.High) - low) / float64(s.Mels+1)
	bank := make([][]float64, s.Mels)
	for m := range bank {
		bank[m] = make([]float64, s.FFT/2+1)
		for k := range s.FFT / 2 {
			at := (mel(float64(k)*float64(s.Rate)/float64(s.FFT)) - low) / step // in units of half a filter
			bank[m][k] = max(0, min(at-float64(m), float64(m+2)-at))
		}
	}
	return bank
}

// cosines returns the discrete cosine transform with the lifter, Cepstra x Mels.
func (s Settings) cosines() [][]float64 {
	k, n := s.Kaldi, float64(s.Mels)
	rows := make([][]float64, k.Cepstra)
	for i := range rows {
		scale := math.Sqrt(2 / n)
		if i == 0 {
			scale = math.Sqrt(1 / n)
		}
		if k.Lifter > 0 {
			scale *= 1 + k.Lifter/2*math.Sin(math.Pi*float64(i)/k.Lifter)
		}
		for m := range s.Mels {
			rows[i] = append(rows[i], scale*math.Cos(math.Pi/n*(float64(m)+0.5)*float64(i)))
		}
	}
	return rows
}

// parseval returns the weights of the squares of a spectrum, 1 x 2 bins, whose sum is the energy of
// the frame.
func (s Settings) parseval() [][]float64 {
	bins := s.FFT/2 + 1
	row := make([]float64, 2*bins)
	for k := range row {
		if row[k] = 2 / float64(s.FFT); k%bins == 0 || k%bins == bins-1 {
			row[k] /= 2
		}
	}
	return [][]float64{row}
}
