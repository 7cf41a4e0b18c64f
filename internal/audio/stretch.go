package audio

import (
	"math"
	"math/bits"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Stretch makes a waveform of perSecond samples a second faster (rate above 1) or slower and keeps
// its pitch: n samples become round(n / rate). rate must be above 0.
//
// It is a phase vocoder with identity phase locking (Laroche and Dolson 1999). Frames have N
// samples, the power of two nearest to 50 ms (in ratio), and output frames are Hs = N / 4 samples
// apart. Output frame k has the magnitudes of X, the spectrum of the input frame at sample (k Hs)
// rate. Its phases continue those of the output frame before it. With X' the spectrum of the input
// Hs samples earlier, bin b of the spectrum of output frame k is
//
//	Y[k, b] = X[b] exp(j arg(Y[k-1, p] conj(X'[p])))
//
// where j is the imaginary unit and p the spectral peak whose region contains b. No frequency is
// estimated, and rate 1 returns the input up to rounding. At an attack, where more than three
// quarters of the energy of a frame is new since X', the phases are those of the input, so that the
// attack stays sharp.
func Stretch(wave []float32, rate float64, perSecond int) []float32 {
	n := int(math.Round(float64(len(wave)) / rate))
	if len(wave) == 0 || n == 0 {
		return nil
	}
	v := newVocoder(wave, frameLength(perSecond))
	// The output is divided by the sum of the squared windows that overlap.
	out, weight := make([]float64, n+2*v.n), make([]float64, n+2*v.n)
	for at := 0; at < n+v.n/2; at += v.hop {
		v.frame(int(math.Round(float64(at)*rate)), at == 0)
		for i, w := range v.window {
			out[at+i] += v.time[i] * w
			weight[at+i] += w * w
		}
	}
	result := make([]float32, n)
	for i := range result {
		k := i + v.n/2 // frames are centred
		// At the ends the sum of the squared windows may be nearly 0; then out is, too.
		result[i] = float32(out[k] / math.Max(weight[k], 1e-3))
	}
	return result
}

// frameLength returns the number of samples of a frame: the power of two nearest to 50 ms in
// ratio, at least 64.
func frameLength(perSecond int) int {
	want := float64(perSecond) * 0.05
	below := 1 << max(6, bits.Len(uint(want))-1)
	if want/float64(below) > float64(2*below)/want {
		return 2 * below
	}
	return below
}

// A vocoder holds the state and buffers of Stretch for one waveform.
type vocoder struct {
	wave              []float32 // the input
	n, hop            int       // samples of a frame, and from one output frame to the next
	window            []float64
	fft               *fourier.FFT
	time              []float64    // samples of one frame
	current, previous []complex128 // spectra of the input at the frame, and a hop before
	out               []complex128 // spectrum of the last output frame
	magnitude         []float64    // |current|
	// Bins of the peaks, and the end of the region of each, exclusive.
	peaks, ends []int
}

func newVocoder(wave []float32, n int) *vocoder {
	bins := n/2 + 1
	return &vocoder{wave: wave, n: n, hop: n / 4, window: Hann(n), fft: fourier.NewFFT(n), time: make([]float64, n),
		current: make([]complex128, bins), previous: make([]complex128, bins), out: make([]complex128, bins), magnitude: make([]float64, bins)}
}

// spectrum writes to dst the spectrum of the input frame with its centre at sample centre.
func (v *vocoder) spectrum(dst []complex128, centre int) {
	from := centre - v.n/2
	for i, w := range v.window {
		v.time[i] = 0
		if k := from + i; k >= 0 && k < len(v.wave) {
			v.time[i] = w * float64(v.wave[k])
		}
	}
	v.fft.Coefficients(dst, v.time)
}

// frame writes to v.time the output frame that is made from the input frame with its centre at
// sample centre. The first output frame has the phases of the input.
func (v *vocoder) frame(centre int, first bool) {
	v.spectrum(v.current, centre)
	v.spectrum(v.previous, centre-v.hop)
	for k, x := range v.current {
		v.magnitude[k] = cmplx.Abs(x)
	}
	if first || v.attack() {
		copy(v.out, v.current)
	} else {
		v.lockPhases()
	}
	v.fft.Sequence(v.time, v.out)
	for i := range v.time {
		v.time[i] /= float64(v.n)
	}
}

// attack reports whether more than three quarters of the energy of the frame is new since the frame
// a hop before.
func (v *vocoder) attack() bool {
	var total, added float64
	for k, size := range v.magnitude {
		energy, before := size*size, real(v.previous[k])*real(v.previous[k])+imag(v.previous[k])*imag(v.previous[k])
		total += energy
		added += max(0, energy-before)
	}
	return added > 0.75*total
}

// lockPhases sets out to the spectrum of the input frame, with all bins in the region of a peak
// rotated by the same angle (see Stretch).
func (v *vocoder) lockPhases() {
	v.findPeaks()
	lo := 0
	for i, p := range v.peaks {
		hi := v.ends[i]
		rotation := v.out[p] * cmplx.Conj(v.previous[p])
		if size := cmplx.Abs(rotation); size > 0 {
			rotation /= complex(size, 0)
		} else {
			rotation = 1
		}
		for k := lo; k < hi; k++ {
			v.out[k] = v.current[k] * rotation
		}
		lo = hi
	}
}

// findPeaks sets peaks and ends. A peak is a bin whose magnitude is larger than those of two
// neighbours on each side; without any, bin 0 is the peak. The region of a peak ends after the
// smallest magnitude before the next peak.
func (v *vocoder) findPeaks() {
	v.peaks, v.ends = v.peaks[:0], v.ends[:0]
	bins := len(v.magnitude)
	for k := range bins {
		isPeak := true
		for d := 1; d <= 2 && isPeak; d++ {
			isPeak = (k-d < 0 || v.magnitude[k] > v.magnitude[k-d]) && (k+d >= bins || v.magnitude[k] >= v.magnitude[k+d])
		}
		if isPeak {
			v.peaks = append(v.peaks, k)
		}
	}
	if len(v.peaks) == 0 {
		v.peaks = append(v.peaks, 0)
	}
	for i := range v.peaks[1:] {
		lowest := v.peaks[i]
		for k := v.peaks[i]; k < v.peaks[i+1]; k++ {
			if v.magnitude[k] < v.magnitude[lowest] {
				lowest = k
			}
		}
		v.ends = append(v.ends, lowest+1)
	}
	v.ends = append(v.ends, bins)
}

// ShiftPitch multiplies the pitch of a waveform of perSecond samples a second by a factor, 2^(1/12)
// for a semitone, and keeps its length. It stretches the waveform and then resamples it.
func ShiftPitch(wave []float32, factor float64, perSecond int) []float32 {
	return resampleBy(Stretch(wave, 1/factor, perSecond), factor, len(wave))
}
