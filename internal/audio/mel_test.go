package audio

import (
	"math"
	"testing"
)

// TestMelBankAgreesWithNumPy compares mel filter banks with those that testdata/golden.py wrote
// into testdata/mel.json. Norm is the field Area of Mel: divide each filter by half its width.
func TestMelBankAgreesWithNumPy(t *testing.T) {
	t.Parallel()
	var banks []struct {
		Rate, FFT, Mels int
		Low, High       float64
		HTK, Norm       bool
		Bank            [][]float64
	}
	golden(t, "mel.json", &banks)
	for _, want := range banks {
		got, err := Mel{Rate: want.Rate, FFT: want.FFT, N: want.Mels, Low: want.Low, High: want.High, HTK: want.HTK, Area: want.Norm}.Bank()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want.Bank) {
			t.Fatalf("%d bands, want %d", len(got), len(want.Bank))
		}
		for b := range got {
			for k := range got[b] {
				if math.Abs(got[b][k]-want.Bank[b][k]) > 1e-5*math.Max(1e-2, want.Bank[b][k]) {
					t.Fatalf("band %d, bin %d is %v, want %v", b, k, got[b][k], want.Bank[b][k])
				}
			}
		}
	}
	// No bands; a frame of one sample; High above half the rate; Low at half the rate, where the
	// last band ends by default; a Low that is no number.
	for _, bad := range []Mel{{Rate: 8000, FFT: 256}, {Rate: 8000, FFT: 1, N: 10}, {Rate: 8000, FFT: 256, N: 10, High: 5000}, {Rate: 8000, FFT: 256, N: 10, Low: 4000}, {Rate: 8000, FFT: 256, N: 10, Low: math.NaN()}} {
		if _, err := bad.Bank(); err == nil {
			t.Errorf("Bank of %+v: no error", bad)
		}
	}
}
