package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/audio"
)

// writeRecordings writes a tone of a third of a second for each speaker, digit and take
// (repetition) into a folder, which it returns.
func writeRecordings(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, speaker := range []string{"a", "b"} {
		for digit := range 10 {
			wave := make([]float32, 2700)
			for i := range wave {
				wave[i] = float32(0.5 * math.Sin(2*math.Pi*float64(200+50*digit)*float64(i)/8000))
			}
			for take := range 50 {
				f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d_%s_%d.wav", digit, speaker, take)))
				if err != nil {
					t.Fatal(err)
				}
				if err := audio.WriteWAV(f, audio.Clip{Rate: 8000, Wave: wave}); err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
		}
	}
	return folder
}

// TestLayout checks that package dataset reads the utterances (strings of 3 to 7 digits) in the
// layout of LibriSpeech, with their numbers of words per second. The option -n is the number of
// utterances: 70 % are for training, 10 % for validation and 20 % for tests. words and
// words-per-second are factors, known properties of a sample.
func TestLayout(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	digits := writeRecordings(t)
	if err := writeStrings([]string{"-digits", digits, "-o", out, "-n", "220"}); err != nil {
		t.Fatal(err)
	}
	for part, n := range map[string]int{"train": 154, "dev": 22, "test": 44} {
		src, err := dataset.OpenAudio(t.Context(), dataset.AudioOptions{Dir: filepath.Join(out, part), Layout: "librispeech", Label: "speaker"})
		if err != nil {
			t.Fatal(err)
		}
		if src.Len() != n || !slices.Equal(src.Classes(), []string{"a", "b"}) {
			t.Errorf("%s has %d utterances of %v, want %d of a and b", part, src.Len(), src.Classes(), n)
		}
		var least, most = math.Inf(1), 0.0
		for i := range src.Len() {
			s, err := src.At(t.Context(), i, dataset.Frame{})
			if err != nil {
				t.Fatal(err)
			}
			words, seconds := s.Factors["words"], float64(s.Input.Len())/8000
			if rate := s.Factors["words-per-second"]; words < 3 || words > 7 || math.Abs(rate-words/seconds) > 1e-9 {
				t.Fatalf("%s: %v words in %v seconds, at %v a second, want 3 to 7 words at their quotient", s.Name, words, seconds, rate)
			}
			least, most = min(least, words/seconds), max(most, words/seconds)
		}
		if most < 2*least {
			t.Errorf("%s: rates are only %v to %v words a second", part, least, most)
		}
	}
	again := t.TempDir() // an utterance does not depend on how many there are
	if err := writeStrings([]string{"-digits", digits, "-o", again, "-n", "20"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"test/b/0/b-0-0001.flac", "train/a/0/a-0-0006.flac"} {
		x, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if y, err := os.ReadFile(filepath.Join(again, name)); err != nil || !slices.Equal(x, y) {
			t.Errorf("%s differs between two runs, error %v", name, err)
		}
	}
}

// TestFLAC checks that a file has the waveform, rounded to 16 bits, with values above 1 clipped.
func TestFLAC(t *testing.T) {
	t.Parallel()
	wave := make([]float32, 2*block+3) // two full FLAC frames, of block values each, and a short one
	for i := range wave {
		wave[i] = float32(math.Sin(float64(i*i) / 1e4))
	}
	wave[7] = 1.5 // is clipped
	file := filepath.Join(t.TempDir(), "x.flac")
	if err := writeFLAC(file, wave, 8000); err != nil {
		t.Fatal(err)
	}
	clip, err := audio.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if clip.Rate != 8000 || len(clip.Wave) != len(wave) {
		t.Fatalf("%d values at %d, want %d", len(clip.Wave), clip.Rate, len(wave))
	}
	for i, v := range clip.Wave {
		if want := min(wave[i], math.MaxInt16/32768.0); math.Abs(float64(v-want)) > 0.51/32768 {
			t.Fatalf("value %d is %v, want %v", i, v, want)
		}
	}
}

func TestStringsErrors(t *testing.T) {
	t.Parallel()
	oneFile := t.TempDir() // one recording, of the digit 3; utterances need all ten digits
	f, err := os.Create(filepath.Join(oneFile, "3_a_0.wav"))
	if err != nil {
		t.Fatal(err)
	}
	if err := audio.WriteWAV(f, audio.Clip{Rate: 8000, Wave: make([]float32, 800)}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	misnamed := t.TempDir()
	if err := os.WriteFile(filepath.Join(misnamed, "x_y_z.wav"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "-digits"},
		{[]string{"-digits", t.TempDir()}, "no recordings"},
		{[]string{"-digits", oneFile, "-n", "3"}, "at least 10"},
		{[]string{"-digits", oneFile, "-o", t.TempDir()}, "there is no recording"},
		{[]string{"-digits", misnamed}, "is not named"},
	} {
		if err := writeStrings(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}
