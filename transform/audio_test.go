package transform

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
)

// sampleRate is the number of audio samples per second in these tests (Hz).
const sampleRate = 8000

// chirp returns one second of a tone with rising frequency and amplitude.
func chirp() []float32 {
	wave := make([]float32, sampleRate)
	for i := range wave {
		t := float64(i) / sampleRate
		wave[i] = float32(0.3 * t * math.Sin(2*math.Pi*(300+200*t)*t))
	}
	return wave
}

// applyAudio draws from tr with the seed base and returns the transformed waveform. It checks that
// the wave itself does not change, and that the result is the same twice.
func applyAudio(t *testing.T, tr Transform, base uint64, wave []float32) []float32 {
	t.Helper()
	op, ok := tr.Draw(seed.Rand(base)).(AudioOp)
	if !ok {
		t.Fatalf("%+v does not apply to audio", tr)
	}
	before := slices.Clone(wave)
	out := op.ApplyAudio(wave, sampleRate)
	if !slices.Equal(wave, before) {
		t.Fatalf("%+v changes its input", tr)
	}
	if !slices.Equal(out, op.ApplyAudio(wave, sampleRate)) {
		t.Fatalf("%+v is not deterministic", tr)
	}
	return out
}

// TestAudioKindsAreFinite checks that every kind of audio transform, such as gain, gives finite
// values at the ends of the ranges of its parameters, for audio of several lengths. mustMake, of
// golden_test.go, makes a transform of a kind with given parameters.
func TestAudioKindsAreFinite(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		for _, p := range k.Params {
			if !k.Audio {
				continue
			}
			for _, v := range []float64{p.Min, p.Max, (p.Min + p.Max) / 2, 1} {
				if k.Name == "reverb" {
					// Reverberation times of the simulated room are 0.105 s or more.
					v = max(v, 0.11)
				}
				if p.Above && v == p.Min { // the range excludes its lower end
					v = 1e-3
				}
				tr := mustMake(t, k.Name, Args{p.Name: Fixed(v)})
				for _, n := range []int{0, 1, 7, 300, 3000} {
					for i, x := range applyAudio(t, tr, 1, chirp()[:n]) {
						if x-x != 0 { // infinite or NaN
							t.Fatalf("%s %s %v on %d values: value %d is %v", k.Name, p.Name, v, n, i, x)
						}
					}
				}
			}
		}
	}
}

// TestWhiteNoiseLevel checks the level of the noise, relative to the audio (SNR, in dB) or absolute
// (in dBFS: relative to an amplitude of 1).
func TestWhiteNoiseLevel(t *testing.T) {
	t.Parallel()
	wave := chirp()
	for _, db := range []float64{-30, 0, 20, 50} {
		noise := make([]float32, len(wave))
		for i, v := range applyAudio(t, WhiteNoise{SNR: Fixed(db)}, 2, wave) {
			noise[i] = v - wave[i]
		}
		if got := 20 * math.Log10(rms(wave)/rms(noise)); math.Abs(got-db) > 0.15 {
			t.Errorf("an SNR of %v dB is %.2f", db, got)
		}
		for i, v := range applyAudio(t, WhiteNoise{Level: Fixed(-db), Absolute: true}, 2, wave) {
			noise[i] = v - wave[i]
		}
		if got := 20 * math.Log10(rms(noise)); math.Abs(got+db) > 0.15 {
			t.Errorf("a level of %v dBFS is %.2f", -db, got)
		}
	}
	if out := applyAudio(t, WhiteNoise{SNR: Fixed(0)}, 2, make([]float32, 100)); rms(out) != 0 {
		t.Error("an SNR adds noise to silence")
	}
	a, b := applyAudio(t, WhiteNoise{SNR: Fixed(0)}, 2, wave), applyAudio(t, WhiteNoise{SNR: Fixed(0)}, 3, wave)
	if slices.Equal(a, b) {
		t.Error("two draws have the same noise")
	}
}

func TestAudioLengths(t *testing.T) {
	t.Parallel()
	wave := chirp()
	for _, c := range []struct {
		tr   Transform
		want int
	}{
		{TimeStretch{Rate: Fixed(2)}, sampleRate / 2}, {TimeStretch{Rate: Fixed(0.5)}, 2 * sampleRate}, {PitchShift{Semitones: Fixed(5)}, sampleRate}, {Reverb{RT60: Fixed(0.4)}, sampleRate},
		{Gain{DB: Fixed(3)}, sampleRate}, {Sequence{Identity{}, TimeStretch{Rate: Fixed(0.8)}, Gain{DB: Fixed(1)}}, sampleRate * 10 / 8},
	} {
		if got := len(applyAudio(t, c.tr, 1, wave)); got != c.want {
			t.Errorf("%+v: %d values, want %d", c.tr, got, c.want)
		}
	}
}

func TestGain(t *testing.T) {
	t.Parallel()
	wave := chirp()
	for i, v := range applyAudio(t, Gain{DB: Fixed(20)}, 1, wave) {
		if math.Abs(float64(v-10*wave[i])) > 1e-5 {
			t.Fatalf("value %d is %v, want %v", i, v, 10*wave[i])
		}
	}
}

// TestGainAgreesWithSox compares gain with samples of chirps that SoX amplified. The samples are
// those at 0, Every, 2 Every and so on; internal/audio/testdata/programs.py writes them.
func TestGainAgreesWithSox(t *testing.T) {
	t.Parallel()
	var golden struct {
		Gain []struct {
			DB          float64
			Rate, Every int
			Y           []float64
		}
	}
	raw, err := os.ReadFile("../internal/audio/testdata/programs.json")
	if err == nil {
		err = json.Unmarshal(raw, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(golden.Gain) != 10 {
		t.Fatalf("%d cases, want 10", len(golden.Gain))
	}
	for _, c := range golden.Gain {
		wave := make([]float32, c.Rate/10)
		for i := range wave { // the frequency rises from 50 Hz to 0.45 of the rate
			s := float64(i) / float64(c.Rate)
			wave[i] = float32(0.4 * math.Sin(2*math.Pi*(50*s+(0.45*float64(c.Rate)-50)/0.2*s*s)))
		}
		got := applyAudio(t, Gain{DB: Fixed(c.DB)}, 1, wave)
		for i, want := range c.Y {
			if d := math.Abs(float64(got[i*c.Every]) - want); d > 1e-5 {
				t.Errorf("gain of %v dB, rate %d: sample %d differs by %.1e, want at most 1e-5", c.DB, c.Rate, i*c.Every, d)
			}
		}
	}
}

// TestReverbRejectsDraws checks that reverberation times (RT60) below 0.105 s, which the simulated
// room cannot have, are drawn again and counted: 3.5 % of those from 0 to 3 s.
func TestReverbRejectsDraws(t *testing.T) {
	t.Parallel()
	tr := Reverb{RT60: Uniform(0, 3)}
	rejected := 0
	for i := range 20000 { // Parameter returns the one number that describes a draw, here the time
		op := tr.Draw(seed.Rand(1, i))
		rejected += RejectedDraws(op)
		if v, _ := Parameter(op); v < 0.1048 || v > 3 {
			t.Fatalf("a time of %v s", v)
		}
	}
	if fraction := float64(rejected) / float64(20000+rejected); math.Abs(fraction-0.105/3) > 0.005 {
		t.Errorf("%.4f of all draws were rejected, want 0.035", fraction)
	}
}

// TestReverbDirectSound checks that reverberation keeps the time and the level of the direct sound.
func TestReverbDirectSound(t *testing.T) {
	t.Parallel()
	wave := make([]float32, 2000)
	wave[300] = 0.5
	out := applyAudio(t, Reverb{RT60: Fixed(0.5)}, 1, wave)
	for i, v := range out[:300] {
		if math.Abs(float64(v)) > 1e-6 {
			t.Fatalf("value %d, before the sound, is %v", i, v)
		}
	}
	if math.Abs(float64(out[300]-0.5)) > 0.02 {
		t.Errorf("the direct sound is %v, want 0.5", out[300])
	}
}

// TestCropPosition checks the random position, in [0, 1), at which a piece of the model's length is
// cut out of stretched audio: Renew draws it again, and a sequence has that of its member that
// changes the length.
func TestCropPosition(t *testing.T) {
	t.Parallel()
	op := TimeStretch{Rate: Fixed(0.5)}.Draw(seed.Rand(1))
	renewed := Renew(op, seed.Rand(2))
	if v, _ := Parameter(renewed); CropPosition(op) == CropPosition(renewed) || v != 0.5 {
		t.Errorf("crop positions %v and %v, rate %v", CropPosition(op), CropPosition(renewed), v)
	}
	if CropPosition(Gain{}.Draw(nil)) != 0 || CropPosition(Sequence{Gain{}, TimeStretch{Rate: Fixed(0.5)}}.Draw(seed.Rand(1))) != CropPosition(op) {
		t.Error("the crop position of a sequence is not that of its stretching, or that of a gain is not 0")
	}
}
