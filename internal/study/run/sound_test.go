package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// writeTones writes sine tones with a little noise in files named LABEL_TAKE.wav: for each of three
// labels, which are pitches, four recordings ("takes") that differ in length and noise. rate is in
// samples per second.
func writeTones(t *testing.T, dir string, rate int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for label, hz := range []float64{300, 800, 2000} {
		for take := range 4 {
			r := seed.Rand(1, label, take)
			wave := make([]float32, rate/5+take*100)
			for i := range wave {
				wave[i] = float32(0.4*math.Sin(2*math.Pi*hz*float64(i)/float64(rate)) + 0.01*r.NormFloat64())
			}
			var b bytes.Buffer
			if err := audio.WriteWAV(&b, audio.Clip{Rate: rate, Wave: wave}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d_%d.wav", label, take)), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// writeListener writes an audio classifier, "listener". Its input is a log-mel spectrogram, batch x
// mels x frames. Its layers are "pooled", the mean over frames, and "logits" of three classes, each
// the mean of a third of the mel bands.
func writeListener(t *testing.T, path string, mels int) {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("features", onnx.Float, -1, mels, -1)
	pooled := b.ReduceMean(x, false, 2)
	w := tensor.New(mels, 3)
	for m := range mels {
		w.Data[m*3+min(2, m*3/mels)] = 3 / float32(mels)
	}
	b.Output("pooled", b.Op("Identity", nil, pooled))
	b.Output("logits", b.MatMul(pooled, b.Const("w", w)))
	testmodel.Save(t, path, b, "logits")
}

const soundStudy = `name: sounds
data: [{name: tones, sound: {folder: tones, pattern: "{label}_{take}.wav", length: 0.2}, where: {take: [0, 2]}}]
models:
  - name: listener
    onnx: listener.onnx
    scores: logits
    preprocess: {rate: 8000, features: {log-mel: {mels: 12, fmax: 3500}}}
transforms: [identity]
measures: [accuracy, effective-invariance, distance]
`

// TestRecordingsThatArePadded checks the warning on recordings that are shorter than the input of a
// model: of 12, with 1,600 to 1,900 samples, nine have fewer than 1,850.
func TestRecordingsThatArePadded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	b := onnx.NewBuilder(17)
	x := b.Input("wave", onnx.Float, -1, 1850)
	b.Output("y", b.ReduceMean(b.Mul(x, x), true, 1))
	testmodel.Save(t, filepath.Join(dir, "level.onnx"), b)
	const text = `name: sounds
data: [{name: tones, sound: {folder: tones}}]
models: [{name: level, onnx: level.onnx, layers: [y], preprocess: {rate: 8000, standardise: STANDARDISE}}]
transforms: [identity]
measures: [distance]
`
	for standardise, want := range map[string]string{
		"false": "data tones: 9 of 12 recordings are shorter than the input of model level and are padded with zeros: fit: crop",
		"true":  "padded with zeros, which count in the mean and deviation by which they are standardised",
	} {
		var warnings []string
		o := studytest.Options(t)
		o.Warn = func(text string) { warnings = append(warnings, text) }
		studytest.Run(t, studytest.Parse(t, dir, strings.Replace(text, "STANDARDISE", standardise, 1)), filepath.Join(dir, standardise), o)
		if got := strings.Join(warnings, "\n"); !strings.Contains(got, want) {
			t.Errorf("standardise %s: warnings %q, want %q", standardise, got, want)
		}
	}
}

func TestAudioEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	r := studytest.Run(t, studytest.Parse(t, dir, soundStudy), filepath.Join(dir, "run"), studytest.Options(t))
	seen := map[string]float64{} // by measure, statistic and layer; moved: on transformed recordings
	for _, row := range r.Rows {
		seen[row.Measure+" "+row.Statistic+" "+row.Layer] = row.Value
		if row.N != 9 {
			t.Errorf("%s %s is of %d recordings, want 9: takes 0 to 2", row.Measure, row.Statistic, row.N)
		}
	}
	for key, want := range map[string]float64{"accuracy clean ": 1, "accuracy moved ": 1, "distance l2 logits": 0} {
		if got, ok := seen[key]; !ok || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %v, want %v (%v)", key, got, want, seen)
		}
	}
}

// TestSounds checks the recording that a report plays: for each of the 9 samples the first 0.2 s as
// they are, and then under the transformation.
func TestSounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, strings.Replace(soundStudy, "[identity]", "[{name: loud, gain: 6}]", 1)), out, studytest.Options(t))
	files := studytest.Pictures(t, out)
	raw, err := fs.ReadFile(files, "pictures/samples/01.json")
	var sheet scores.SampleSheet
	if err == nil {
		err = json.Unmarshal(raw, &sheet)
	}
	if err != nil || sheet.Sound == nil || sheet.Sound.Rate != 8000 || sheet.Sound.Length != 1600 || len(sheet.Sound.Lines) != len(sheet.Samples) {
		t.Fatalf("the sheet has %+v; error %v", sheet.Sound, err)
	}
	raw, err = fs.ReadFile(files, "pictures/samples/01.wav")
	if err != nil {
		t.Fatal(err)
	}
	clip, err := audio.Decode(raw)
	if err != nil || len(clip.Wave) != 2*1600*len(sheet.Samples) {
		t.Fatalf("%d values for %d samples; error %v", len(clip.Wave), len(sheet.Samples), err)
	}
	gain := math.Pow(10, 6.0/20)
	for i := 0; i < len(clip.Wave); i += 2 * 1600 {
		for k := i; k < i+1600; k++ {
			if want := max(-1, min(1, gain*float64(clip.Wave[k]))); math.Abs(float64(clip.Wave[k+1600])-want) > 1e-3 {
				t.Fatalf("value %d is %v, and %v with 6 dB more", k, clip.Wave[k], clip.Wave[k+1600])
			}
		}
	}
}

func TestAudioStudyErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	o := studytest.Options(t)
	for want, change := range map[string][]string{ // old and new texts of the study, in turn
		"have 8000 samples per second and the model takes 16000: set rate: 16000": {"{rate: 8000,", "{rate: 16000,"},
		"does not fix the length of waveforms":                                    {", length: 0.2", ""},
		`unknown factor "tale": use one of label, duration, take`:                 {"where: {take", "where: {tale"},
		"no sample meets the conditions":                                          {"[0, 2]", "[7, 9]"},
		"the range [2, 1] has its ends exchanged":                                 {"[0, 2]", "[2, 1]"},
		"transformation rotate applies to images, but model listener takes audio": {"[identity]", "[{rotate: 20}]"},
		"takes audio, but data tones are images":                                  {`sound: {folder: tones, pattern: "{label}_{take}.wav", length: 0.2}, where: {take: [0, 2]}`, "shapes: {n: 9, size: 8}", "rate: 8000", "rate: 8000, length: 1600"},
		"features need rate":                                                      {"rate: 8000, ", ""},
		"no field {digit}":                                                        {`"{label}_{take}.wav"`, `"{label}_{take}.wav", label: digit`},
		"a rate is an integer number of samples per second, or model":             {"length: 0.2", "length: 0.2, rate: fast"},
	} {
		if !strings.Contains(soundStudy, change[0]) {
			t.Fatalf("%q is not in the study", change[0])
		}
		s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(strings.NewReplacer(change...).Replace(soundStudy)), nil)
		if err == nil {
			_, err = study.Run(t.Context(), s, filepath.Join(t.TempDir(), "run"), o)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRateOfTheModel checks that audio is resampled to the sampling rate of the model if the
// study's rate is that number or "model".
func TestRateOfTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 22050)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	for _, rate := range []string{"8000", "model"} {
		text := strings.Replace(soundStudy, "length: 0.2", "length: 0.2, rate: "+rate, 1)
		found := false
		for _, row := range studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(t.TempDir(), "run"), studytest.Options(t)).Rows {
			if row.Measure != "accuracy" || row.Statistic != "clean" {
				continue
			}
			found = true
			if row.Value != 1 {
				t.Errorf("rate %s: accuracy %v", rate, row.Value)
			}
		}
		if !found {
			t.Errorf("rate %s: no accuracy", rate)
		}
	}
}

// TestSpokenDigitsEndToEnd runs a study on FSDD, the Free Spoken Digit Dataset: ten digits in five
// takes of one speaker.
func TestSpokenDigitsEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	text := strings.Replace(soundStudy, `sound: {folder: tones, pattern: "{label}_{take}.wav", length: 0.2}, where: {take: [0, 2]}`,
		fmt.Sprintf(`sound: {folder: %q, pattern: "{digit}_{speaker}_{take}.wav", length: 1}, where: {take: [0, 4], speaker: theo}`, testdata.Path(t, "fsdd")), 1)
	text = strings.Replace(text, "accuracy, ", "", 1)
	rows := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t)).Rows
	if len(rows) == 0 {
		t.Error("no scores")
	}
	for _, row := range rows {
		if row.N != 50 {
			t.Errorf("%s is of %d recordings, want 50", row.Measure, row.N)
		}
	}
}

// TestTransformationsOfAudio checks that every transformation of audio runs, has the expected
// effect on scores, and does not depend on the batch size. Gains, levels and signal-to-noise ratios
// (snr) are in dB, pitch shifts in semitones, reverberation times in seconds, cut-offs in Hz. A
// shift by 17 semitones makes 300 Hz, the lowest pitch of writeTones, 800 Hz, the next one.
func TestTransformationsOfAudio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTones(t, filepath.Join(dir, "tones"), 8000)
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	text := strings.Replace(soundStudy, "[identity]", `
  - {name: same-speed, time-stretch: 1}
  - {name: same-gain, gain: 0}
  - {name: speed, time-stretch: {values: [0.5, 2]}}
  - {name: high-pitch, pitch-shift: 17}
  - {name: noise, white-noise: {snr: {values: [40, -30]}}}
  - {name: faint-noise, white-noise: {level: -60}, per: trial}
  - {name: room, reverb: [0, 0.5]}
  - {name: band-pass, sequence: [{low-pass: 500}, {high-pass: 50}]}`, 1)
	whole := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), studytest.Options(t))
	studytest.SameScores(t, whole.Rows, studytest.Run(t, studytest.Parse(t, dir, text+"batch: 2\n"), filepath.Join(dir, "batch"), studytest.Options(t)).Rows, 1e-5)
	moved := map[string]float64{}
	for _, row := range whole.Rows {
		if row.Measure == "accuracy" && row.Statistic == "moved" || row.Measure == "distance" && row.Statistic == "l2" && row.Layer == "logits" {
			moved[strings.Trim(row.Measure+" "+row.Transform+" "+row.Parameter, " ")] = row.Value
		}
	}
	for key, want := range map[string]float64{"distance same-speed": 0, "distance same-gain": 0, "accuracy speed 0.5": 1, "accuracy speed 2": 1, "accuracy noise 40": 1} {
		if got, ok := moved[key]; !ok || math.Abs(got-want) > 0.01 {
			t.Errorf("%s is %v, want %v (%v)", key, got, want, moved)
		}
	}
	for _, key := range []string{"accuracy high-pitch", "accuracy band-pass", "accuracy noise -30"} {
		if got, ok := moved[key]; !ok || got > 0.67 { // at most two of three classes correct
			t.Errorf("%s is %v, want 2/3 at most (%v)", key, got, moved)
		}
	}
	record, err := os.ReadFile(filepath.Join(dir, "whole", "run.json"))
	if err != nil || !strings.Contains(string(record), "values drawn for room were invalid and were drawn again") {
		t.Errorf("the record does not count the reverberation times that were drawn again; error %v", err)
	}
}

// TestRedrawnForProbes checks that parameter values that are invalid and drawn again are counted
// once per transformation, also for probes (small models trained on the vectors of a layer), which
// draw values of their own, and when a second run takes the features from the cache of the first.
// Reverberation times below 0.105 s are invalid.
func TestRedrawnForProbes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	text := strings.NewReplacer(`sound: {folder: tones, pattern: "{label}_{take}.wav", length: 0.2}, where: {take: [0, 2]}`, "tones: {n: 30, rate: 8000, length: 0.2}",
		"[identity]", "[{name: room, reverb: [0, 0.2]}]", "[accuracy, effective-invariance, distance]", "[invariance, {parameter-equivariance: {probe: ridge}}]").Replace(soundStudy)
	o := studytest.Options(t)
	o.FeatureCache = &features.Store{Dir: filepath.Join(dir, "store")}
	var warnings []string
	for _, run := range []string{"first", "cached"} {
		studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, run), o)
		record, err := os.ReadFile(filepath.Join(dir, run, "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		warnings = append(warnings, regexp.MustCompile(`data tones: (\d+) of (\d+) values drawn for room were invalid`).FindString(string(record)))
		var redrawn, drawn int
		if _, err := fmt.Sscanf(warnings[len(warnings)-1], "data tones: %d of %d", &redrawn, &drawn); err != nil || redrawn == 0 || drawn != 30+redrawn {
			t.Errorf("%s run: warning %q of %d values redrawn of %d drawn; want 30 valid ones", run, warnings[len(warnings)-1], redrawn, drawn)
		}
	}
	if warnings[0] != warnings[1] {
		t.Errorf("the warnings of the runs are %q, want equal ones", warnings)
	}
}

// TestTonesAndFactorsInStudies checks a study of synthetic tones that chooses samples by their
// factors level and pitch.
func TestTonesAndFactorsInStudies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	text := strings.NewReplacer(`sound: {folder: tones, pattern: "{label}_{take}.wav", length: 0.2}, where: {take: [0, 2]}`,
		"tones: {n: 40, rate: 8000, length: 0.25}, factors: [level], where: {level: [-30, 0], pitch: [110, 500]}", "accuracy, ", "").Replace(soundStudy)
	s := studytest.Parse(t, dir, text)
	r := studytest.Run(t, s, filepath.Join(dir, "run"), studytest.Options(t))
	if n := r.Rows[0].N; n < 5 || n >= 40 {
		t.Errorf("%d of 40 tones are chosen", n)
	}
	bad := studytest.Parse(t, dir, strings.Replace(text, "[level], where: {level: [-30, 0], pitch: [110, 500]}", "[mood]", 1))
	if _, err := study.Run(t.Context(), bad, filepath.Join(dir, "bad"), studytest.Options(t)); err == nil || !strings.Contains(err.Error(), `unknown factor "mood"`) {
		t.Errorf("an unknown factor: %v", err)
	}
}

// TestFiringRatesOfAudio checks the local firing rate: the fraction of the values of a
// transformation at which a unit still fires on an input that excites it. With gains of 0 and
// -0.001 dB it is 1; with gains of 0 and -200 dB, which is silence, it is one half.
func TestFiringRatesOfAudio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeListener(t, filepath.Join(dir, "listener.onnx"), 12)
	const text = `name: sounds
data: [{name: tones, tones: {n: 200, rate: 8000, length: 0.2, seed: 1}}]
models:
  - name: listener
    onnx: listener.onnx
    layers: [penultimate]
    preprocess: {rate: 8000, features: {log-mel: {mels: 12, fmax: 3500}}}
transforms:
  - {name: slight, gain: {values: [0, -0.001]}}
  - {name: silent, gain: {values: [0, -200]}}
measures: [{firing: {sparse: all, rate: 0.1}}]
`
	r := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	rates := map[string]float64{}
	for _, row := range r.Rows {
		if row.Statistic == "local-rate" && row.Trial == 0 {
			rates[row.Transform] = row.Value
		}
	}
	if rates["slight"] != 1 || math.Abs(rates["silent"]-0.5) > 1e-9 {
		t.Errorf("local rates are %v, want 1 for slight and 0.5 for silent", rates)
	}
}
