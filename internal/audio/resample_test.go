package audio

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// golden reads a JSON file of testdata into v.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestResampleAgreesWithSciPy(t *testing.T) {
	t.Parallel()
	var cases []struct {
		From, To int       // samples per second
		X, Y     []float32 // the input, and the output of SciPy in testdata/golden.py
	}
	golden(t, "resample.json", &cases)
	for _, c := range cases {
		got, err := Resample(c.X, c.From, c.To)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(c.Y) {
			t.Fatalf("%d to %d: %d values, want %d", c.From, c.To, len(got), len(c.Y))
		}
		// Resample uses resampleBy only for rates with a small common divisor. Here it is tested
		// for all.
		direct := resampleBy(c.X, float64(c.From)/float64(c.To), len(c.Y))
		for i := range got {
			if math.Abs(float64(got[i]-c.Y[i])) > 2e-5 || math.Abs(float64(direct[i]-c.Y[i])) > 2e-5 {
				t.Fatalf("%d to %d: value %d is %v, by resampleBy %v, want %v", c.From, c.To, i, got[i], direct[i], c.Y[i])
			}
		}
	}
}

// tone returns a sine of amplitude 1.
func tone(hz float64, rate, n int) []float32 {
	wave := make([]float32, n)
	for i := range wave {
		wave[i] = float32(math.Sin(2 * math.Pi * hz * float64(i) / float64(rate)))
	}
	return wave
}

// power returns the mean square of the middle half, which the ends do not affect.
func power(wave []float32) float64 {
	var sum float64
	middle := wave[len(wave)/4 : 3*len(wave)/4]
	for _, v := range middle {
		sum += float64(v) * float64(v)
	}
	return sum / float64(len(middle))
}

// Tones of the pass band keep their level within 0.01 dB and their phase. Tones above the new
// Nyquist frequency are attenuated by at least 80 dB.
func TestPassAndStopBand(t *testing.T) {
	t.Parallel()
	rates := []int{8000, 16000, 22050, 44100, 48000}
	for _, from := range rates {
		for _, to := range rates {
			if from == to {
				continue
			}
			nyquist := float64(min(from, to)) / 2
			for _, fraction := range []float64{0.05, 0.5, 0.92} {
				got, err := Resample(tone(fraction*nyquist, from, from/5), from, to)
				if err != nil {
					t.Fatal(err)
				}
				want := tone(fraction*nyquist, to, len(got))
				for i := len(got) / 4; i < 3*len(got)/4; i++ {
					if math.Abs(float64(got[i]-want[i])) > 1.2e-3 {
						t.Fatalf("%d to %d: a tone at %.2f of Nyquist: value %d is %v, want %v", from, to, fraction, i, got[i], want[i])
					}
				}
				if db := 10 * math.Log10(2*power(got)); math.Abs(db) > 0.01 {
					t.Errorf("%d to %d: the level of a tone at %.2f of Nyquist changes by %.4f dB", from, to, fraction, db)
				}
			}
			if to > from {
				continue
			}
			for hz := nyquist; hz < float64(from)/2; hz *= 1.13 { // in steps of about two semitones
				got, _ := Resample(tone(hz, from, from/5), from, to)
				if db := 10 * math.Log10(2*power(got)); db > -80 {
					t.Errorf("%d to %d: a tone at %.0f Hz is %.1f dB", from, to, hz, db)
				}
			}
		}
	}
}

// The common divisor of these rates is 1.
func TestUncommonRates(t *testing.T) {
	t.Parallel()
	got, err := Resample(tone(440, 44101, 44101), 44101, 47999)
	if err != nil {
		t.Fatal(err)
	}
	want := tone(440, 47999, len(got))
	for i := 1000; i < len(got)-1000; i++ {
		if math.Abs(float64(got[i]-want[i])) > 1e-4 {
			t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
	if _, err := Resample(want, 0, 8000); err == nil {
		t.Error("Resample to a rate of 0: no error")
	}
}
