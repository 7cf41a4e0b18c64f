package audio

import (
	"math"

	"github.com/noether-ml/noether/tensor"
)

// butterworth holds the quality factors of the two sections of a Butterworth filter of order 4.
var butterworth = [2]float64{1 / (2 * math.Cos(math.Pi/8)), 1 / (2 * math.Cos(3*math.Pi/8))}

// LowPass applies a low-pass Butterworth filter of order 4, by the bilinear transform. rate is in
// samples a second. The filter attenuates by 3 dB at hz, and by about 24 dB more for each octave
// above. If hz is half the rate or more, LowPass returns a copy of the waveform.
func LowPass(wave []float32, hz float64, rate int) []float32 {
	const high = false
	return cascade(wave, hz, rate, high)
}

// HighPass applies a high-pass Butterworth filter of order 4, which attenuates below hz as that of
// LowPass does above. If hz is half the rate or more, it returns silence.
func HighPass(wave []float32, hz float64, rate int) []float32 {
	const high = true
	return cascade(wave, hz, rate, high)
}

// cascade applies the two sections of a low-pass or, with high, of a high-pass filter.
func cascade(wave []float32, hz float64, rate int, high bool) []float32 {
	out := make([]float32, len(wave))
	if hz >= float64(rate)/2 {
		if !high {
			copy(out, wave)
		}
		return out
	}
	x := tensor.Float64s(wave)
	for _, q := range butterworth {
		section(x, 2*math.Pi*hz/float64(rate), q, high)
	}
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// section filters x in place by a section of order 2 with the cutoff w in radians per sample and
// the quality factor q. With alpha = sin w / (2 q), its coefficients are
//
//	low-pass   b = (1 - cos w) / 2 (1, 2, 1)
//	high-pass  b = (1 + cos w) / 2 (1, -2, 1)
//	both       a = (1 + alpha, -2 cos w, 1 - alpha)
//
// as in Bristow-Johnson's Audio EQ Cookbook.
func section(x []float64, w, q float64, high bool) {
	sin, cos := math.Sincos(w)
	alpha := sin / (2 * q)
	b0, b1 := (1-cos)/2, 1-cos
	if high {
		b0, b1 = (1+cos)/2, -(1 + cos)
	}
	a0, a1, a2 := 1+alpha, -2*cos, 1-alpha
	var x1, x2, y1, y2 float64
	for i, v := range x {
		y := (b0*(v+x2) + b1*x1 - a1*y1 - a2*y2) / a0
		x1, x2, y1, y2 = v, x1, y, y1
		x[i] = y
	}
}
