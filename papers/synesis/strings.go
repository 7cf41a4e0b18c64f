package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"

	"github.com/noether-ml/noether/internal/audio"
)

// A part is a folder of utterances that are made of the takes first to last.
type part struct {
	name        string
	first, last int
	utterances  int
}

// writeStrings joins spoken digits to utterances, in folders laid out as LibriSpeech, so that they
// have a speech rate. The digits are recordings DIGIT_SPEAKER_TAKE.wav of the free spoken digit
// dataset, where TAKE numbers the recordings of a digit by one speaker. An utterance is a string of
// digits of one speaker, drawn at random, with a pause after each. Utterances differ in their
// number of words, in their speed and in the length of their pauses. No recording is in two of the
// folders train, dev and test. The same seed gives the same utterances.
func writeStrings(args []string) error {
	flags := flag.NewFlagSet("strings", flag.ContinueOnError)
	digits := flags.String("digits", "", "folder of the recordings")
	out := flags.String("o", "strings", "folder of the utterances")
	n := flags.Int("n", 5000, "number of utterances: 70 % for training, 10 % for validation, 20 % for tests")
	seed := flags.Uint64("seed", 1, "seed of the utterances")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *digits == "" {
		return errors.New("name the folder of the recordings: -digits data/fsdd")
	}
	if *n < 10 {
		return fmt.Errorf("-n is %d: at least 10 utterances are needed", *n)
	}
	recordings, err := read(*digits)
	if err != nil {
		return err
	}
	parts := []part{{"train", 10, 49, *n * 7 / 10}, {"dev", 5, 9, *n / 10}, {"test", 0, 4, *n - *n*7/10 - *n/10}}
	for i, p := range parts {
		if err := p.write(filepath.Join(*out, p.name), recordings, rand.New(rand.NewPCG(*seed, uint64(i)))); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// recordings holds the waveforms of each speaker, by digit and take.
type recordings struct {
	rate     int // samples per second
	speakers []string
	waves    map[string]map[[2]int][]float32
}

// read reads a folder of recordings named DIGIT_SPEAKER_TAKE.wav.
func read(folder string) (*recordings, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_*_*.wav"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no recordings DIGIT_SPEAKER_TAKE.wav", folder)
	}
	r := &recordings{waves: map[string]map[[2]int][]float32{}}
	for _, file := range files {
		var digit, take int
		fields := strings.Split(strings.TrimSuffix(filepath.Base(file), ".wav"), "_")
		if _, err := fmt.Sscanf(fields[0]+" "+fields[len(fields)-1], "%d %d", &digit, &take); err != nil || len(fields) != 3 || digit < 0 || digit > 9 {
			return nil, fmt.Errorf("%s is not named DIGIT_SPEAKER_TAKE.wav", file)
		}
		clip, err := audio.Read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.rate = cmp.Or(r.rate, clip.Rate)
		if clip.Rate != r.rate {
			return nil, fmt.Errorf("%s has %d samples per second, and others have %d", file, clip.Rate, r.rate)
		}
		speaker := fields[1]
		if r.waves[speaker] == nil {
			r.waves[speaker] = map[[2]int][]float32{}
			r.speakers = append(r.speakers, speaker)
		}
		r.waves[speaker][[2]int{digit, take}] = clip.Wave
	}
	slices.Sort(r.speakers)
	return r, nil
}

// perChapter is the number of utterances in a folder.
const perChapter = 50

// write writes the utterances of a part. The speakers take turns.
func (p part) write(folder string, r *recordings, draw *rand.Rand) error {
	for i := range p.utterances {
		speaker, number := r.speakers[i%len(r.speakers)], i/len(r.speakers)
		wave, words, err := p.utterance(r, speaker, draw)
		if err != nil {
			return err
		}
		chapter := fmt.Sprintf("%s-%d", speaker, number/perChapter)
		name := fmt.Sprintf("%s-%04d", chapter, number%perChapter)
		dir := filepath.Join(folder, speaker, fmt.Sprint(number/perChapter))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := writeFLAC(filepath.Join(dir, name+".flac"), wave, r.rate); err != nil {
			return err
		}
		if err := appendLine(filepath.Join(dir, chapter+".trans.txt"), number%perChapter == 0, name+" "+strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return nil
}

var digitNames = strings.Fields("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE")

// utterance joins 3 to 7 digits. The speed is 0.7 to 1.5 times that of the recordings. An utterance
// has a mean pause of 0.05 to 0.6 seconds, and each of its pauses is 0.5 to 1.5 times as long.
func (p part) utterance(r *recordings, speaker string, draw *rand.Rand) (wave []float32, words []string, err error) {
	speed, pause := 0.7+0.8*draw.Float64(), 0.05+0.55*draw.Float64()
	for range 3 + draw.IntN(5) {
		key := [2]int{draw.IntN(10), p.first + draw.IntN(p.last-p.first+1)}
		spoken, ok := r.waves[speaker][key]
		if !ok {
			return nil, nil, fmt.Errorf("there is no recording %d_%s_%d.wav", key[0], speaker, key[1])
		}
		wave = append(wave, audio.Stretch(spoken, speed, r.rate)...)
		wave = append(wave, make([]float32, int(pause*(0.5+draw.Float64())*float64(r.rate)))...)
		words = append(words, digitNames[key[0]])
	}
	return wave, words, nil
}

// appendLine appends a line to a file, or starts the file with it.
func appendLine(file string, start bool, line string) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if start {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, mode, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// block is the number of samples of a FLAC frame.
const block = 4096

// writeFLAC writes a waveform as 16-bit FLAC, uncompressed. Values beyond [-1, 1] are clipped.
func writeFLAC(file string, wave []float32, rate int) error {
	var out bytes.Buffer
	info := &meta.StreamInfo{BlockSizeMin: block, BlockSizeMax: block, SampleRate: uint32(rate), NChannels: 1, BitsPerSample: 16, NSamples: uint64(len(wave))}
	encoder, err := flac.NewEncoder(&out, info)
	if err != nil {
		return err
	}
	for from := 0; from < len(wave); from += block {
		part := wave[from:min(from+block, len(wave))]
		samples := make([]int32, len(part))
		for i, v := range part {
			samples[i] = int32(math.Round(max(math.MinInt16, min(math.MaxInt16, 1<<15*float64(v)))))
		}
		f := &frame.Frame{
			Header:    frame.Header{HasFixedBlockSize: true, BlockSize: uint16(len(part)), SampleRate: uint32(rate), Channels: frame.ChannelsMono, BitsPerSample: 16},
			Subframes: []*frame.Subframe{{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, Samples: samples, NSamples: len(part)}},
		}
		if err := encoder.WriteFrame(f); err != nil {
			return err
		}
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}
