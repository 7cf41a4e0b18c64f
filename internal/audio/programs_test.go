// The tests of this file compare with golden values of the programs SoX and Rubber Band, which
// testdata/programs.py ran.

package audio

import (
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
)

// chirp returns a sine whose frequency rises linearly from low to high.
func chirp(rate int, low, high, seconds, amplitude float64) []float32 {
	wave := make([]float32, int(float64(rate)*seconds))
	for i := range wave {
		t := float64(i) / float64(rate)
		wave[i] = float32(amplitude * math.Sin(2*math.Pi*(low*t+(high-low)/(2*seconds)*t*t)))
	}
	return wave
}

// A goldenSamples holds samples of a waveform that SoX wrote: those at 0, Every, 2 Every and so on.
type goldenSamples struct {
	Every int
	Y     []float64
}

// worst returns the largest difference between a waveform and the golden samples. It leaves out the
// fraction ends of the samples at either end.
func (s goldenSamples) worst(wave []float32, ends float64) float64 {
	var out float64
	for i, want := range s.Y {
		if at := float64(i) / float64(len(s.Y)); at >= ends && at < 1-ends {
			out = math.Max(out, math.Abs(float64(wave[i*s.Every])-want))
		}
	}
	return out
}

// TestAgreesWithSox checks that resampling and filters agree with SoX sample by sample at all
// common rates. Resampled chirps are not compared at their ends, which depend on the lengths of the
// filters. Package transform compares gain.
func TestAgreesWithSox(t *testing.T) {
	t.Parallel()
	var cases struct {
		Resample []struct {
			From, To int     // sample rates
			Top      float64 // frequency at the end of the chirp, in Hz
			goldenSamples
		}
		Filters []struct {
			Kind string  // "low" or "high" pass
			Hz   float64 // cutoff frequency
			Rate int
			goldenSamples
		}
	}
	golden(t, "programs.json", &cases) // reads the file from testdata
	if len(cases.Resample) != 20 || len(cases.Filters) != 20 {
		t.Fatalf("%d and %d cases, want 20 each", len(cases.Resample), len(cases.Filters))
	}
	var resampled, filtered float64
	for _, c := range cases.Resample {
		got, err := Resample(chirp(c.From, 100, c.Top, 0.1, 0.4), c.From, c.To)
		if err != nil {
			t.Fatal(err)
		}
		worst := c.worst(got, 0.1)
		resampled = max(resampled, worst)
		if worst > 1e-4 {
			t.Errorf("%d to %d Hz: the largest difference is %.1e, want at most 1e-4", c.From, c.To, worst)
		}
	}
	for _, c := range cases.Filters {
		filter := LowPass
		if c.Kind == "high" {
			filter = HighPass
		}
		worst := c.worst(filter(chirp(c.Rate, 50, 0.45*float64(c.Rate), 0.1, 0.4), c.Hz, c.Rate), 0)
		filtered = max(filtered, worst)
		if worst > 1e-5 {
			t.Errorf("%s-pass filter at %v Hz, rate %d: the largest difference is %.1e, want at most 1e-5", c.Kind, c.Hz, c.Rate, worst)
		}
	}
	t.Logf("the largest difference is %.1e for resampled chirps and %.1e for filtered ones, which have an amplitude of 0.4", resampled, filtered)
}

// TestTonesAgreeWithRubberband checks that stretched and shifted tones have the length and the
// pitch of Rubber Band's results within 1 %, at all common rates.
func TestTonesAgreeWithRubberband(t *testing.T) {
	t.Parallel()
	var cases struct {
		Tones []struct {
			Kind          string
			By, HZ, Pitch float64 // tempo factor or semitones; frequency before and after, in Hz
			Rate, Length  int     // sample rate; number of samples after
		}
	}
	golden(t, "programs.json", &cases)
	if len(cases.Tones) != 40 {
		t.Fatalf("%d tones, want 40", len(cases.Tones))
	}
	var worst float64
	for _, c := range cases.Tones {
		// tone returns half a second of a sine; pitch finds the frequency by its zero crossings.
		got := apply(tone(c.HZ, c.Rate, c.Rate/2), c.Kind, c.By, c.Rate)
		lengthError, pitchError := float64(len(got))/float64(c.Length)-1, pitch(got, c.Rate)/c.Pitch-1
		worst = max(worst, math.Abs(lengthError), math.Abs(pitchError))
		if math.Abs(lengthError) > 0.01 || math.Abs(pitchError) > 0.01 {
			t.Errorf("%s by %v of %v Hz, rate %d: the relative errors of length and pitch are %.4f and %.4f, want at most 0.01", c.Kind, c.By, c.HZ, c.Rate, lengthError, pitchError)
		}
	}
	t.Logf("lengths and pitches are within %.2f %%", 100*worst)
}

// apply stretches a waveform by a tempo factor or shifts its pitch by semitones.
func apply(wave []float32, kind string, by float64, rate int) []float32 {
	if kind == "pitch-shift" {
		return ShiftPitch(wave, math.Pow(2, by/12), rate)
	}
	return Stretch(wave, by, rate)
}

// TestChirps checks that a stretched or shifted chirp has the expected pitch, within 1 % over
// windows of 80 ms.
func TestChirps(t *testing.T) {
	t.Parallel()
	const low, high, seconds = 300, 900, 1.0
	for _, rate := range []int{8000, 16000, 22050, 44100, 48000} {
		in := chirp(rate, low, high, seconds, 0.5)
		for _, c := range []struct {
			kind   string
			by     float64
			faster float64 // factor of the tempo
			higher float64 // factor of the pitch
		}{{"time-stretch", 0.5, 0.5, 1}, {"time-stretch", 1.8, 1.8, 1}, {"pitch-shift", -12, 1, 0.5}, {"pitch-shift", 7, 1, math.Pow(2, 7.0/12)}} {
			out := apply(in, c.kind, c.by, rate)
			for _, fraction := range []float64{0.2, 0.4, 0.6, 0.8} {
				middle, half := int(fraction*float64(len(out))), rate/25 // half: 40 ms
				// pitch uses the middle half: 80 ms.
				got := pitch(out[middle-2*half:middle+2*half], rate)
				want := c.higher * (low + (high-low)*float64(middle)/float64(rate)*c.faster/seconds)
				if math.Abs(got/want-1) > 0.01 {
					t.Errorf("%d Hz, %s by %v: the pitch at %.1f of the length is %.1f Hz, want %.1f", rate, c.kind, c.by, fraction, got, want)
				}
			}
		}
	}
}

// melBands returns the energies of 16 mel bands in dB, frames x 16, for frames of 32 ms.
func melBands(t *testing.T, wave []float32, rate int) [][]float64 {
	t.Helper()
	n := rate * 32 / 1000
	bank, err := Mel{Rate: rate, FFT: n, N: 16, HTK: true}.Bank()
	if err != nil {
		t.Fatal(err)
	}
	fft, window, frame := fourier.NewFFT(n), Hann(n), make([]float64, n)
	var out [][]float64
	for from := 0; from+n <= len(wave); from += n {
		for i, w := range window {
			frame[i] = w * float64(wave[from+i])
		}
		row := make([]float64, len(bank))
		for k, x := range fft.Coefficients(nil, frame) {
			for b := range bank {
				row[b] += bank[b][k] * real(x*cmplx.Conj(x))
			}
		}
		for b, v := range row {
			row[b] = 10 * math.Log10(v+1e-6)
		}
		out = append(out, row)
	}
	return out
}

// spectralDistance returns the mean absolute difference in dB over frames and bands, and that of
// the means over frames.
func spectralDistance(a, b [][]float64) (frames, mean float64) {
	n, bands := min(len(a), len(b)), len(a[0])
	for band := range bands {
		var sumA, sumB float64
		for i := range n {
			frames += math.Abs(a[i][band]-b[i][band]) / float64(n*bands)
			sumA, sumB = sumA+a[i][band], sumB+b[i][band]
		}
		mean += math.Abs(sumA-sumB) / float64(n*bands)
	}
	return frames, mean
}

// TestDigitsAgreeWithRubberband checks that stretched and shifted spoken digits have the spectra of
// Rubber Band's results. For comparison, the log shows the distance between the results of Rubber
// Band's two engines, "faster" and "finer".
func TestDigitsAgreeWithRubberband(t *testing.T) {
	t.Parallel()
	data := os.Getenv("NOETHER_TESTDATA")
	if data == "" {
		t.Skip("NOETHER_TESTDATA is not set: it names a folder with fsdd, recordings of the Free Spoken Digit Dataset")
	}
	var cases []struct {
		File, Kind string
		By         float64
		Length     int
		Engines    float64     // distance between Rubber Band's engines: mean over frames and bands
		DB         [][]float64 // melBands of Rubber Band's result
	}
	golden(t, "digits.json", &cases)
	var distance, betweenEngines, mean float64
	for _, c := range cases {
		clip, err := Read(filepath.Join(data, "fsdd", c.File))
		if err != nil {
			t.Fatal(err)
		}
		got := apply(clip.Wave, c.Kind, c.By, clip.Rate)
		if d := math.Abs(float64(len(got))/float64(c.Length) - 1); d > 0.01 {
			t.Errorf("%s %s by %v: %d values, want about %d, as Rubber Band returns", c.File, c.Kind, c.By, len(got), c.Length)
		}
		frames, average := spectralDistance(melBands(t, got, clip.Rate), c.DB)
		t.Logf("%s %s by %v: %.2f dB, means %.2f dB; between Rubber Band's engines %.2f dB", c.File, c.Kind, c.By, frames, average, c.Engines)
		distance, betweenEngines, mean = distance+frames/float64(len(cases)), betweenEngines+c.Engines/float64(len(cases)), mean+average/float64(len(cases))
		if frames > 3 || average > 2 {
			t.Errorf("%s %s by %v: the spectra differ by %.2f dB, want at most 3, and their means over time by %.2f dB, want at most 2", c.File, c.Kind, c.By, frames, average)
		}
	}
	t.Logf("all: %.2f dB, means %.2f dB; between Rubber Band's engines %.2f dB", distance, mean, betweenEngines)
}
