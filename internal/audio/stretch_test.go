package audio

import (
	"fmt"
	"math"
	"testing"
)

// pitch returns the frequency of a tone, from the times of its upward zero crossings within the
// middle half.
func pitch(wave []float32, rate int) float64 {
	var crossings []float64
	for i := len(wave) / 4; i < 3*len(wave)/4; i++ {
		if a, b := float64(wave[i]), float64(wave[i+1]); a < 0 && b >= 0 {
			crossings = append(crossings, float64(i)-a/(b-a))
		}
	}
	n := len(crossings) - 1
	return float64(n) * float64(rate) / (crossings[n] - crossings[0])
}

func TestStretchKeepsPitch(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{8000, 16000, 22050, 44100, 48000} {
		for _, speed := range []float64{0.5, 0.9, 2} {
			for _, hz := range []float64{150, 1000, 3000} {
				in := tone(hz, rate, rate/4) // a quarter of a second of a sine
				out := Stretch(in, speed, rate)
				if want := float64(len(in)) / speed; math.Abs(float64(len(out))-want) > 1 {
					t.Errorf("sample rate %d Hz, speed %v: %d samples, want %v", rate, speed, len(out), want)
				}
				if got := pitch(out, rate); math.Abs(got/hz-1) > 0.002 {
					t.Errorf("sample rate %d Hz, speed %v: a tone of %v Hz is at %.1f", rate, speed, hz, got)
				}
				// power is the mean square, which is 1/2 for a sine of amplitude 1.
				if level := 10 * math.Log10(2*power(out)); math.Abs(level) > 0.5 {
					t.Errorf("sample rate %d Hz, speed %v: a tone of %v Hz is %.2f dB louder", rate, speed, hz, level)
				}
			}
		}
	}
}

func TestStretchByOneIsIdentity(t *testing.T) {
	t.Parallel()
	in := tone(440, 8000, 3000)
	for i := range in {
		in[i] += float32(math.Sin(float64(i*i) / 900))
	}
	for i, v := range Stretch(in, 1, 8000) {
		if math.Abs(float64(v-in[i])) > 1e-5 {
			t.Fatalf("value %d is %v, want %v", i, v, in[i])
		}
	}
}

func TestShiftPitchKeepsLength(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{8000, 44100} {
		for _, semitones := range []float64{-12, -0.3, 7, 12} {
			for _, hz := range []float64{200, 700} {
				factor := math.Pow(2, semitones/12)
				out := ShiftPitch(tone(hz, rate, rate/4), factor, rate)
				if len(out) != rate/4 {
					t.Errorf("%v semitones: %d samples, want %d", semitones, len(out), rate/4)
				}
				if got := pitch(out, rate); math.Abs(got/(hz*factor)-1) > 0.002 {
					t.Errorf("sample rate %d Hz, %v semitones: a tone of %v Hz is at %.1f, want %.1f", rate, semitones, hz, got, hz*factor)
				}
			}
		}
	}
}

// clicks returns ten decaying clicks a second.
func clicks(rate, n int) []float32 {
	wave := make([]float32, n)
	for i := range wave {
		k := i % (rate / 10)
		wave[i] = float32(math.Exp(-float64(k)/(0.004*float64(rate))) * math.Sin(2*math.Pi*1500*float64(k)/float64(rate)))
	}
	return wave
}

// Attacks (the onsets of sounds) stay sharp when stretched: at least 80 % of the energy of a click
// lies in the first 30 ms of its period.
func TestAttacksStaySharp(t *testing.T) {
	t.Parallel()
	const rate = 16000
	for _, speed := range []float64{0.5, 1.5} {
		out := Stretch(clicks(rate, rate), speed, rate)
		period := int(rate / 10 / speed)
		best := 0.0
		for lag := range period { // offset of the attacks within a period
			var near, all float64
			for i := period; i < len(out)-2*period; i++ {
				e := float64(out[i]) * float64(out[i])
				all += e
				if (i+lag)%period < rate*30/1000 {
					near += e
				}
			}
			best = max(best, near/all)
		}
		t.Logf("speed %v: %.3f of the energy within 30 ms", speed, best)
		if best < 0.8 {
			t.Errorf("speed %v: %.2f of the energy lies within 30 ms of the attacks", speed, best)
		}
	}
}

func TestStretchShortWaveforms(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 10, 100} {
		for _, speed := range []float64{0.25, 1, 4} {
			out := Stretch(make([]float32, n), speed, 8000)
			if want := int(math.Round(float64(n) / speed)); len(out) != want {
				t.Errorf("%d samples at speed %v become %d, want %d", n, speed, len(out), want)
			}
		}
	}
}

// A frame has the power of two of samples that is nearest to 50 ms, and at least 64.
func TestFrameLength(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int]int{8000: 512, 16000: 1024, 22050: 1024, 44100: 2048, 48000: 2048, 100: 64} {
		if got := frameLength(rate); got != want {
			t.Errorf("frames have %d samples at %d samples per second, want %d", got, rate, want)
		}
	}
}

func BenchmarkStretch(b *testing.B) {
	for _, speed := range []float64{0.5, 2} {
		b.Run(fmt.Sprint(speed), func(b *testing.B) {
			in := clicks(16000, 16000)
			for b.Loop() {
				Stretch(in, speed, 16000)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "s/s") // the input lasts one second
		})
	}
}
