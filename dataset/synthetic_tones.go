package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// TonesOptions are the options of OpenTones. A sample is one waveform. A range is a low and a high
// end. Each factor of a sample is drawn from its range, independently of the others. Equal ends fix
// a factor.
type TonesOptions struct {
	N      int     // number of samples of the source
	Rate   int     // values of a waveform per second; 0: 16,000
	Length float64 // of a waveform, in seconds; 0: 1
	Seed   uint64

	// The ranges of the factors, in the units of Tone.
	Pitch    []float64 // drawn uniformly on a logarithmic scale; nil: 110 to 880
	Loudness []float64 // nil: -30 to -12
	Beats    []float64 // nil: 1 to 6
	Bright   []float64 // nil: 0 to 0.7
}

// tonesVersion changes when the same options give different samples.
const tonesVersion = 1

// Tones is a synthetic source of audio with known factors. See OpenTones.
type Tones struct {
	metadata
	options TonesOptions
}

// A Tone holds the factors of one sample: a tone of one pitch, repeated at a constant rate.
type Tone struct {
	Pitch    float64 // fundamental frequency in Hz
	Loudness float64 // root mean square between rise and fall, in dB relative to an amplitude of 1
	Beats    float64 // repetitions per second
	Bright   float64 // amplitude of a harmonic relative to the one below it, 0 to 1; 0: a sine
}

// OpenTones returns a source of audio. Each sample carries the factors that were drawn for it:
//
//	pitch     fundamental frequency in Hz
//	loudness  root mean square between rise and fall of a tone, in dB relative to an amplitude of 1
//	beats     repetitions per second, the counterpart of the speech rate
//	bright    amplitude of a harmonic relative to the one below it
//
// A tone has 16 harmonics, except those at or above half the rate. The factors of sample i depend
// on i, the seed and the ranges, not on rate and length. There are no labels.
func OpenTones(o TonesOptions) (*Tones, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("tones: %w", err)
	}
	factors := []string{"beats", "bright", "loudness", "pitch"}
	return &Tones{metadata{factors: factors, fingerprint: syntheticFingerprint("tones", tonesVersion, o)}, o}, nil
}

func (o TonesOptions) withDefaults() TonesOptions {
	o.Rate = cmp.Or(o.Rate, 16000)
	o.Length = cmp.Or(o.Length, 1)
	o.Pitch = orRange(o.Pitch, 110, 880)
	o.Loudness = orRange(o.Loudness, -30, -12)
	o.Beats = orRange(o.Beats, 1, 6)
	o.Bright = orRange(o.Bright, 0, 0.7)
	return o
}

func (o TonesOptions) check() error {
	switch {
	case o.N < 1 || o.N > maxSynthetic:
		return fmt.Errorf("n is %d: set it to the number of samples, 1 to %d", o.N, maxSynthetic)
	case o.Rate < 1000 || o.Rate > MaxRate:
		return fmt.Errorf("rate %d is not 1000 to %d samples per second", o.Rate, MaxRate)
	case !(o.Length > 0 && o.Length <= 60):
		return fmt.Errorf("length %v is not above 0 and at most 60 seconds", o.Length)
	}
	if err := checkRanges(factorRange{"pitch", o.Pitch, 20, float64(o.Rate) / 2}, factorRange{"loudness", o.Loudness, -100, 0},
		factorRange{"beats", o.Beats, 0.1, 50}, factorRange{"bright", o.Bright, 0, 1}); err != nil {
		return err
	}
	if half := float64(o.Rate) / 2; o.Pitch[1] >= half {
		return fmt.Errorf("pitch is %v: it must be below half the rate, %g Hz", o.Pitch, half)
	}
	return nil
}

func (s *Tones) Len() int { return s.options.N }

// Tone returns the factors of sample i.
func (s *Tones) Tone(i int) Tone {
	r := seed.Rand(s.options.Seed, "tones", i)
	octaves := uniform(r, []float64{math.Log2(s.options.Pitch[0]), math.Log2(s.options.Pitch[1])})
	return Tone{math.Exp2(octaves), uniform(r, s.options.Loudness), uniform(r, s.options.Beats), uniform(r, s.options.Bright)}
}

// Describe returns sample i without its values: Waveform has no Data.
func (s *Tones) Describe(i int) Sample {
	m := s.Tone(i)
	return Sample{Index: i, Name: fmt.Sprintf("tones#%d", i), Label: NoLabel, Waveform: &Waveform{Rate: s.options.Rate, Seconds: s.options.Length},
		Factors: map[string]float64{"pitch": m.Pitch, "loudness": m.Loudness, "beats": m.Beats, "bright": m.Bright}}
}

// At returns sample i with its waveform. It is an error if the frame is for images, or has another
// rate or length.
func (s *Tones) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "tones", i, s.options.N); err != nil {
		return Sample{}, err
	}
	n := max(1, int(math.Round(s.options.Length*float64(s.options.Rate))))
	switch {
	case frame.ForImages():
		return Sample{}, fmt.Errorf("tones are audio, and the model takes images")
	case frame.Rate > 0 && frame.Rate != s.options.Rate:
		return Sample{}, fmt.Errorf("tones have %d samples per second and the model takes %d: set rate: %d", s.options.Rate, frame.Rate, frame.Rate)
	case frame.Length > 0 && frame.Length != n:
		return Sample{}, fmt.Errorf("tones have %d samples and the model takes %d: set length: %v", n, frame.Length, float64(frame.Length)/float64(s.options.Rate))
	}
	out := s.Describe(i)
	wave := s.Tone(i).waveform(s.options.Rate, n)
	out.Waveform.Data = wave
	out.Input = tensor.Tensor{Shape: []int{1, n}, Data: slices.Clone(wave)}
	return out, nil
}

// waveform returns n values of the repeated tone, at rate values per second. A tone lasts half of
// the time from its start to the start of the next. Its amplitude rises and falls in 5 ms.
func (m Tone) waveform(rate, n int) []float32 {
	const harmonics = 16
	var weights []float64 // amplitudes of the harmonics
	var power float64
	for k := 1; float64(k)*m.Pitch < float64(rate)/2 && k <= harmonics; k++ {
		w := math.Pow(m.Bright, float64(k-1))
		weights = append(weights, w)
		power += w * w / 2
	}
	amplitude := math.Pow(10, m.Loudness/20) / math.Sqrt(power)
	wave := make([]float32, n)
	for i := range wave {
		t := float64(i) / float64(rate)
		envelope := m.envelope(t)
		if envelope == 0 {
			continue
		}
		var v float64
		for k, w := range weights {
			v += w * math.Sin(2*math.Pi*float64(k+1)*m.Pitch*t)
		}
		wave[i] = float32(amplitude * envelope * v)
	}
	return wave
}

// envelope returns the amplitude at second t, between 0 and 1.
func (m Tone) envelope(t float64) float64 {
	const rise = 0.005 // seconds
	at := math.Mod(t, 1/m.Beats)
	duration := 0.5 / m.Beats
	return max(0, min(1, at/rise, (duration-at)/rise))
}
