package audio

import (
	"cmp"
	"fmt"
	"math"
)

// Hann returns the periodic Hann window of n values: (1 - cos(2 pi i / n)) / 2.
func Hann(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = (1 - math.Cos(2*math.Pi*float64(i)/float64(n))) / 2
	}
	return w
}

// Hamming returns the periodic Hamming window of n values: 0.54 - 0.46 cos(2 pi i / n).
func Hamming(n int) []float64 {
	w := Hann(n)
	for i := range w {
		w[i] = 0.08 + 0.92*w[i]
	}
	return w
}

// A Mel describes a mel filter bank: triangular filters over the bins of a spectrum.
type Mel struct {
	Rate int     // samples per second
	FFT  int     // number of samples of a frame; its spectrum has FFT / 2 + 1 bins
	N    int     // number of filters
	Low  float64 // Hz: start of the first filter
	High float64 // Hz: end of the last filter; 0: half the rate
	// HTK selects the scale of the Hidden Markov Model Toolkit, mel = 2595 log10(1 + f / 700) with
	// f in Hz. Otherwise it is that of Slaney's Auditory Toolbox, linear below 1 kHz and
	// logarithmic above.
	HTK bool
	// Area divides each filter by half its width in Hz (Slaney's normalisation). Otherwise its peak
	// is 1.
	Area bool
	// Symmetric gives the upper side of each filter the width of its lower one, as SpeechBrain does.
	// Otherwise the upper side ends at the peak of the next filter.
	Symmetric bool
}

// Bank returns the matrix of the filters, N x (FFT / 2 + 1), as librosa's filters.mel and
// torchaudio's melscale_fbanks do. A range beyond half the rate is an error.
func (m Mel) Bank() ([][]float64, error) {
	high := cmp.Or(m.High, float64(m.Rate)/2)
	switch {
	case m.Rate < 1 || m.FFT < 2 || m.N < 1:
		return nil, fmt.Errorf("mel bank: rate %d, fft %d, %d bands: fft must be at least 2, the others at least 1", m.Rate, m.FFT, m.N)
	case !(0 <= m.Low && m.Low < high && high <= float64(m.Rate)/2):
		return nil, fmt.Errorf("mel bank: from %v to %v Hz: the range must be in 0 to %v, half the rate", m.Low, high, float64(m.Rate)/2)
	}
	edges := make([]float64, m.N+2) // Hz
	lowMel, highMel := m.mel(m.Low), m.mel(high)
	for i := range edges {
		edges[i] = m.hz(lowMel + (highMel-lowMel)*float64(i)/float64(m.N+1))
	}
	bank := make([][]float64, m.N)
	for b := range bank {
		right := edges[b+2]
		if m.Symmetric {
			right = 2*edges[b+1] - edges[b]
		}
		bank[b] = m.triangle(edges[b], edges[b+1], right)
	}
	return bank, nil
}

// triangle returns a row of the bank: the filter with the given edges and peak in Hz.
func (m Mel) triangle(left, peak, right float64) []float64 {
	row := make([]float64, m.FFT/2+1)
	scale := 1.0
	if m.Area {
		scale = 2 / (right - left)
	}
	for k := range row {
		f := float64(k) * float64(m.Rate) / float64(m.FFT)
		row[k] = scale * max(0, min((f-left)/(peak-left), (right-f)/(right-peak)))
	}
	return row
}

// Slaney's scale is linear below slaneyHz, with 3 mel for 200 Hz, and logarithmic above, with 27
// mel for a factor of 6.4.
const slaneyHz, slaneyMel = 1000, 15

func (m Mel) mel(hz float64) float64 {
	switch {
	case m.HTK:
		return 2595 * math.Log10(1+hz/700)
	case hz < slaneyHz:
		return hz * 3 / 200
	}
	return slaneyMel + math.Log(hz/slaneyHz)*27/math.Log(6.4)
}

func (m Mel) hz(mel float64) float64 {
	switch {
	case m.HTK:
		return 700 * (math.Pow(10, mel/2595) - 1)
	case mel < slaneyMel:
		return mel * 200 / 3
	}
	return slaneyHz * math.Exp((mel-slaneyMel)*math.Log(6.4)/27)
}
