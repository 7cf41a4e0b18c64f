package audio

import (
	"fmt"
	"math"
	"sync"
)

// Resampling computes the output at time t, in input samples, as the sum of x[k] h(t - k) over the
// input x, with a Kaiser-windowed sinc h. Frequencies are fractions of the lower of the Nyquist
// frequencies of the two rates:
//
//	pass band   0 to 0.92, within 0.01 dB
//	stop band   from 1, at -80 dB
//
// The window extends over 64 samples at the lower rate on each side. The delay is compensated.
const (
	halfWindow = 64
	stopBand   = 80 // dB
	// transition is the width of the transition band by Kaiser's formula for a window of M samples
	// and an attenuation of A dB, 2 (A - 7.95) / (14.36 M), with M = 2 x 64 at the lower rate.
	transition = (stopBand - 7.95) / 14.36 / halfWindow
	maxPhases  = 4096 // largest number of filters of a bank; other ratios use resampleBy
)

// kaiserBeta is the parameter beta of the window by Kaiser's formula for an attenuation of A dB,
// 0.1102 (A - 8.7).
var kaiserBeta = 0.1102 * (stopBand - 8.7)

// Resample converts a waveform from one rate to another, in samples a second. n samples become
// ceil(n to / from). The waveform is 0 beyond its ends. If the rates are equal, the waveform itself
// is returned. A rate outside 1 to maxRate (2^20), or a result of more than maxValues (2^28)
// samples, is an error.
func Resample(wave []float32, from, to int) ([]float32, error) {
	if from < 1 || to < 1 || from > maxRate || to > maxRate {
		return nil, fmt.Errorf("resampling from %d to %d samples a second: rates must be 1 to %d", from, to, maxRate)
	}
	if from == to {
		return wave, nil
	}
	if len(wave) > maxValues/(to/from+1) {
		return nil, fmt.Errorf("%d values at %d samples a second would be too many at %d", len(wave), from, to)
	}
	n := (len(wave)*to + from - 1) / from
	up, down := to, from
	if g := gcd(up, down); g > 1 {
		up, down = up/g, down/g
	}
	if up > maxPhases { // rates with a small common divisor
		return resampleBy(wave, float64(from)/float64(to), n), nil
	}
	return polyphase(wave, up, down, n), nil
}

// polyphase resamples a waveform by the ratio up / down to n samples, with a bank of filters.
func polyphase(wave []float32, up, down, n int) []float32 {
	bank := bankOf(up, down)
	out := make([]float32, n)
	for m := range out {
		position := m * down
		k, phase := position/up, position%up
		taps := bank.taps[phase]
		out[m] = dot(taps, wave, k-bank.half+1)
	}
	return out
}

// dot returns the sum of taps[i] wave[from+i] over the indices within wave.
func dot(taps []float32, wave []float32, from int) float32 {
	lo, hi := max(0, -from), min(len(taps), len(wave)-from)
	var sum float32
	if lo >= hi {
		return 0
	}
	part := wave[from+lo : from+hi]
	for i, t := range taps[lo:hi] {
		sum += t * part[i]
	}
	return sum
}

// A bank holds a filter for each phase p / up, the fraction of an output position beyond the input
// sample before it. taps[p][i] is the weight of the input sample at offset i - half + 1 from that
// sample.
type bank struct {
	half int         // half the number of weights of a filter
	taps [][]float32 // 2 x half weights for each phase
}

var bankCache sync.Map // from [2]int{up, down} to *bank

// bankOf returns the bank of the ratio up / down and caches it.
func bankOf(up, down int) *bank {
	key := [2]int{up, down}
	if b, ok := bankCache.Load(key); ok {
		return b.(*bank)
	}
	widen := math.Max(1, float64(down)/float64(up)) // a lower rate needs a wider filter
	b := &bank{half: int(math.Ceil(halfWindow*widen)) + 1, taps: make([][]float32, up)}
	for p := range b.taps {
		taps := make([]float32, 2*b.half)
		for i := range taps {
			t := (float64(p)/float64(up) - float64(i-b.half+1)) / widen
			taps[i] = float32(cutoff / widen * sinc(cutoff*t) * kaiser(t/halfWindow))
		}
		b.taps[p] = taps
	}
	bankCache.Store(key, b)
	return b
}

// kernel is one side of the filter of Resample, tabulated finely enough that the error of linear
// interpolation is below -115 dB.
var kernel = sync.OnceValue(func() []float32 {
	table := make([]float32, halfWindow*kernelSteps+2)
	for i := range table {
		t := float64(i) / kernelSteps
		table[i] = float32(cutoff * sinc(cutoff*t) * kaiser(t/halfWindow))
	}
	return table
})

const (
	kernelSteps = 1024 // values of the table per sample at the lower rate
	// cutoff is the frequency at which the gain is 1/2, as a fraction of the lower Nyquist
	// frequency.
	cutoff = 1 - transition/2
)

// resampleBy reads a waveform at steps of any size: sample m of n is the input at position m x
// step. Played at the same rate, audio with a step above 1 is shorter and has a higher pitch. The
// filter is that of Resample.
func resampleBy(wave []float32, step float64, n int) []float32 {
	table, widen := kernel(), math.Max(1, step)
	halfWidth := halfWindow * widen
	out := make([]float32, n)
	for m := range out {
		position := float64(m) * step
		lo, hi := max(0, int(math.Ceil(position-halfWidth))), min(len(wave)-1, int(math.Floor(position+halfWidth)))
		var sum float64
		for k := lo; k <= hi; k++ {
			u := math.Abs(position-float64(k)) / widen * kernelSteps
			i := int(u)
			f := float32(u - float64(i))
			sum += float64(((1-f)*table[i] + f*table[i+1]) * wave[k])
		}
		out[m] = float32(sum / widen)
	}
	return out
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser returns the Kaiser window at x in [-1, 1], and 0 outside.
func kaiser(x float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return besselI0(kaiserBeta*math.Sqrt(1-x*x)) / besselI0(kaiserBeta)
}

// besselI0 returns the modified Bessel function of the first kind and order 0, by its power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-17; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
