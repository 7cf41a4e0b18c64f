package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/transform"
)

// ramp returns a mono WAV file of n values, rate of them per second. Value i is i / 2^14.
func ramp(t testing.TB, rate, n int) []byte {
	t.Helper()
	wave := make([]float32, n)
	for i := range wave {
		wave[i] = float32(i) / (1 << 14)
	}
	var b bytes.Buffer
	if err := audio.WriteWAV(&b, audio.Clip{Rate: rate, Wave: wave}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openAudio opens a folder of audio files as a source of samples.
func openAudio(t *testing.T, o AudioOptions) *Audio {
	t.Helper()
	s, err := OpenAudio(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// digits returns a folder of four recordings of 8000 samples per second, named as those of the Free
// Spoken Digit Dataset: the digit, the speaker and the take (the number of the repetition).
func digits(t testing.TB) string {
	return folderOf(t, map[string][]byte{
		"3_theo_0.wav": ramp(t, 8000, 800), "3_theo_10.wav": ramp(t, 8000, 1600),
		"0_lucas_0.wav": ramp(t, 8000, 400), "0_lucas_2.wav": ramp(t, 8000, 2000),
	})
}

// wavOfChannels returns a WAV file of 16-bit values of several channels, interleaved.
func wavOfChannels(channels int, values ...int16) []byte {
	le := binary.LittleEndian
	head := append([]byte("RIFF"), le.AppendUint32(nil, uint32(36+2*len(values)))...)
	head = append(le.AppendUint32(append(head, "WAVEfmt "...), 16), 1, 0, byte(channels), 0)
	head = le.AppendUint32(le.AppendUint32(head, 8000), uint32(16000*channels))
	head = append(head, byte(2*channels), 0, 16, 0)
	head = le.AppendUint32(append(head, "data"...), uint32(2*len(values)))
	for _, v := range values {
		head = le.AppendUint16(head, uint16(v))
	}
	return head
}

// TestStereo checks that a model of two channels gets both, cut and transformed alike, that of a
// recording of one channel twice, and that one of three is a sample that cannot be read.
func TestStereo(t *testing.T) {
	t.Parallel()
	const unit = 1 << 15
	s := openAudio(t, AudioOptions{Dir: folderOf(t, map[string][]byte{
		"a.wav": wavOfChannels(1, 1<<12, 2<<12, 3<<12, 4<<12), "b.wav": wavOfChannels(2, 1<<12, -1<<12, 2<<12, -2<<12, 3<<12, -3<<12, 4<<12, -4<<12),
		"c.wav": wavOfChannels(3, 1, 2, 3), "d.wav": wavOfChannels(2, 1<<12, 5<<12),
	})})
	for i, want := range [][]float32{{2, 3, 2, 3}, {2, 3, -2, -3}, nil, {1, 0, 5, 0}} {
		got, err := s.At(t.Context(), i, Frame{Length: 2, Stereo: true})
		if bad := (*BadSample)(nil); want == nil {
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), "the file has 3 channels, and the model takes 2") {
				t.Errorf("three channels: error %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			want[k] *= (1 << 12) / float32(unit)
		}
		if !slices.Equal(got.Input.Shape, []int{2, 2}) || !slices.Equal(got.Input.Data, want) {
			t.Errorf("sample %d is %v of shape %v, want %v", i, got.Input.Data, got.Input.Shape, want)
		}
		louder, err := got.Apply(transform.Gain{DB: transform.Fixed(20)}.Draw(nil))
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			want[k] *= 10
		}
		if !slices.Equal(louder.Shape, got.Input.Shape) || !slices.Equal(louder.Data, want) {
			t.Errorf("sample %d is %v, 20 dB louder, want %v", i, louder.Data, want)
		}
	}
	mean, err := s.At(t.Context(), 1, Frame{Length: 2})
	if err != nil || !slices.Equal(mean.Input.Shape, []int{1, 2}) || !slices.Equal(mean.Input.Data, []float32{0, 0}) {
		t.Errorf("the mean of two opposite channels is %v of shape %v: %v", mean.Input.Data, mean.Input.Shape, err)
	}
}

// TestAudioByPattern checks the classes, labels and factors that come from a pattern of file names.
// The factor duration, in seconds, comes from the file. The factor take is a number, so it has no
// categories.
func TestAudioByPattern(t *testing.T) {
	t.Parallel()
	s := openAudio(t, AudioOptions{Dir: digits(t), Pattern: "{label}_{speaker}_{take}.wav"})
	if got := fmt.Sprint(s.Classes(), s.Factors(), Categories(s, "speaker"), Categories(s, "take")); got != "[0 1 2 3] [duration speaker take] [lucas theo] []" {
		t.Errorf("classes, factors, categories: %s, want %s", got, "[0 1 2 3] [duration speaker take] [lucas theo] []")
	}
	for i := range s.Len() {
		got, err := s.At(t.Context(), i, Frame{}) // Frame{}: with its own rate and length
		if err != nil {
			t.Fatal(err)
		}
		var label, take int
		var speaker string
		if _, err := fmt.Sscanf(strings.ReplaceAll(strings.TrimSuffix(got.Name, ".wav"), "_", " "), "%d %s %d", &label, &speaker, &take); err != nil {
			t.Fatal(err)
		}
		n := got.Input.Shape[1]
		if got.Label != label || got.Factors["take"] != float64(take) || Categories(s, "speaker")[int(got.Factors["speaker"])] != speaker ||
			got.Factors["duration"] != float64(n)/8000 || got.Waveform.Rate != 8000 || got.Input.Data[n-1] != float32(n-1)/(1<<14) {
			t.Errorf("sample %+v", got)
		}
	}
}

// TestWhere checks which samples meet conditions on their factors or label.
func TestWhere(t *testing.T) {
	t.Parallel()
	s := openAudio(t, AudioOptions{Dir: digits(t), Pattern: "{label}_{speaker}_{take}.wav"})
	for _, c := range []struct {
		conditions map[string]Condition
		want       string
	}{
		// A condition without Values has the bounds Low and High; both are included.
		{nil, "0_lucas_0 0_lucas_2 3_theo_0 3_theo_10"},
		{map[string]Condition{"take": {High: 4}}, "0_lucas_0 0_lucas_2 3_theo_0"},
		{map[string]Condition{"take": {High: 4}, "speaker": {Values: []string{"theo"}}}, "3_theo_0"},
		{map[string]Condition{"take": {Values: []string{"2", "10"}}}, "0_lucas_2 3_theo_10"},
		{map[string]Condition{"label": {Values: []string{"3"}}}, "3_theo_0 3_theo_10"},
		{map[string]Condition{"take": {Low: 50, High: 60}}, ""},
	} {
		got, err := Where(t.Context(), Limit(s, 4), c.conditions) // the first 4, so all
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range got.Len() {
			d, err := Describe(t.Context(), got, i)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimSuffix(d.Name, ".wav"))
		}
		if strings.Join(names, " ") != c.want {
			t.Errorf("%v: %v, want %v", c.conditions, names, c.want)
		}
	}
	for want, bad := range map[string]map[string]Condition{
		`unknown factor "mood"`:   {"mood": {}},
		`unknown value "anna"`:    {"speaker": {Values: []string{"anna"}}},
		`"first" is not a number`: {"take": {Values: []string{"first"}}},
	} {
		if _, err := Where(t.Context(), s, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", bad, err, want)
		}
	}
}

// TestAudioFit checks how files of other lengths are brought to the length of an item (a sample of
// the source). The default pads short files and crops long ones; "crop" rejects short files;
// "split" makes several items of a long file. Length is in seconds: 0.1 s is 800 values.
func TestAudioFit(t *testing.T) {
	t.Parallel()
	dir := digits(t) // of 400, 2000, 800 and 1600 values, in the order of names
	// lengths returns "length:first..last" for each item: the number of its values, and the indices
	// in the file of its first and last value (0 for padding), or "bad" for a BadSample (the error
	// of one sample that cannot be used).
	lengths := func(o AudioOptions, frame Frame) (out []string) {
		s := openAudio(t, o)
		for i := range s.Len() {
			got, err := s.At(t.Context(), i, frame)
			switch bad := (*BadSample)(nil); {
			case errors.As(err, &bad):
				out = append(out, "bad")
			case err != nil:
				t.Fatal(err)
			default:
				first, last := got.Input.Data[0]*(1<<14), got.Input.Data[len(got.Input.Data)-1]*(1<<14)
				out = append(out, fmt.Sprintf("%d:%v..%v", got.Input.Shape[1], first, last))
			}
		}
		return out
	}
	for _, c := range []struct {
		o     AudioOptions
		frame Frame // the rate and length that a model takes
		want  string
	}{
		{AudioOptions{}, Frame{}, "[400:0..399 2000:0..1999 800:0..799 1600:0..1599]"},
		{AudioOptions{Length: 0.1}, Frame{}, "[800:0..0 800:600..1399 800:0..799 800:400..1199]"},
		{AudioOptions{}, Frame{Rate: 8000, Length: 800}, "[800:0..0 800:600..1399 800:0..799 800:400..1199]"},
		{AudioOptions{Length: 0.1, Fit: "crop"}, Frame{Length: 800}, "[bad 800:600..1399 800:0..799 800:400..1199]"},
		{AudioOptions{Length: 0.1, Fit: "split"}, Frame{}, "[800:0..799 800:800..1599 800:0..799 800:0..799 800:800..1599]"},
	} {
		c.o.Dir = dir
		if got := fmt.Sprint(lengths(c.o, c.frame)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
	}
	s := openAudio(t, AudioOptions{Dir: dir, Length: 0.1, Fit: "split"})
	if got := fmt.Sprint(Notes(Limit(s, 2))); got != "[1 of 4 audio files are left out because they are shorter than an item of 0.1 s: 0_lucas_0.wav]" {
		t.Errorf("notes %s, want %s", got, "[1 of 4 audio files are left out because they are shorter than an item of 0.1 s: 0_lucas_0.wav]")
	}
	if got := s.Describe(1); got.Name != "0_lucas_2.wav#1" || got.Index != 1 {
		t.Errorf("sample 1 is described as %+v, want 0_lucas_2.wav#1", got)
	}
}

// TestAudioRates checks that files of different rates need a common rate, either Rate or that of
// the model.
func TestAudioRates(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, map[string][]byte{"a.wav": ramp(t, 8000, 800), "b.wav": ramp(t, 16000, 1600)})
	if _, err := OpenAudio(t.Context(), AudioOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "a.wav has 8000 samples per second and b.wav has 16000") {
		t.Errorf("files of two rates: %v", err)
	}
	resampled := openAudio(t, AudioOptions{Dir: dir, Rate: 16000})
	for i := range resampled.Len() {
		got, err := resampled.At(t.Context(), i, Frame{})
		if err != nil || got.Input.Shape[1] != 1600 || got.Waveform.Rate != 16000 {
			t.Errorf("sample %d: %v, %v", i, got.Input.Shape, err)
		}
	}
	if _, err := resampled.At(t.Context(), 0, Frame{Rate: 8000}); err == nil || !strings.Contains(err.Error(), "the model takes 8000: set rate: 8000") {
		t.Errorf("a rate that is not the model's: %v", err)
	}
	// With ModelRate the rate is that of the model. At 22,050 samples per second an item of 0.05 s
	// has 1,103 values.
	modelRate := openAudio(t, AudioOptions{Dir: dir, Rate: ModelRate, Length: 0.05})
	for i := range modelRate.Len() {
		got, err := modelRate.At(t.Context(), i, Frame{Rate: 22050})
		if err != nil || got.Input.Shape[1] != 1103 || got.Waveform.Rate != 22050 {
			t.Errorf("sample %d: %v, %v", i, got.Input.Shape, err)
		}
	}
	if _, err := modelRate.At(t.Context(), 0, Frame{Rate: 8000, Length: 500}); err == nil || !strings.Contains(err.Error(), "items of 400 samples (0.05 s) and the model takes 500") {
		t.Errorf("a length that is not the model's: %v", err)
	}
	if _, err := modelRate.At(t.Context(), 0, Frame{Height: 32}); err == nil || !strings.Contains(err.Error(), "takes images") {
		t.Errorf("a model of images: %v", err)
	}
}

// TestLibriSpeech checks the factors that the layout of LibriSpeech gives (files
// SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER), and that files without a transcript are left out.
func TestLibriSpeech(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, map[string][]byte{
		"19/198/19-198-0000.wav": ramp(t, 16000, 16000), "19/198/19-198-0001.wav": ramp(t, 16000, 32000),
		"19/198/19-198.trans.txt": []byte("19-198-0000 ONE TWO THREE\n19-198-0001 FOUR\n"),
		"26/495/26-495-0000.wav":  ramp(t, 16000, 16000),
		"26/495/26-495.trans.txt": []byte("26-495-0000 FIVE SIX\n"),
		"26/496/26-496-0000.wav":  ramp(t, 16000, 16000), // no transcript
		"26/495/26-495-0001.wav":  ramp(t, 16000, 16000), // no line in its transcript
	})
	s := openAudio(t, AudioOptions{Dir: dir, Layout: "librispeech", Label: "speaker"})
	if got := fmt.Sprint(s.Classes(), s.Factors()); got != "[19 26] [chapter duration speaker words words-per-second]" {
		t.Errorf("classes and factors: %s, want %s", got, "[19 26] [chapter duration speaker words words-per-second]")
	}
	var got []string
	for i := range s.Len() {
		d := s.Describe(i)
		// The factor speaker is LibriSpeech's number, the label an index into the classes.
		got = append(got, fmt.Sprint(d.Label, d.Factors["words"], d.Factors["words-per-second"], d.Factors["speaker"]))
	}
	if want := []string{"0 3 3 19", "0 1 0.5 19", "1 2 2 26"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if want := "[2 of 5 audio files are left out because they are without a transcript: 26/495/26-495-0001.wav, 26/496/26-496-0000.wav]"; fmt.Sprint(s.Notes()) != want {
		t.Errorf("notes %v, want %v", s.Notes(), want)
	}
}

func TestOpenAudioErrors(t *testing.T) {
	t.Parallel()
	dir := digits(t)
	table := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(table, []byte("file,word\n3_theo_0.wav,three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	// The first four bytes of a WAV file, and an empty file.
	broken := folderOf(t, map[string][]byte{"a.wav": []byte("RIFF"), "b.flac": nil})
	for want, o := range map[string]AudioOptions{
		"no audio files":                    {Dir: empty},
		"none of 2 audio files can be read": {Dir: broken},
		"4 of 4 audio files do not match":   {Dir: dir, Pattern: "{label}-{take}.wav"},
		"has no field such as {label}":      {Dir: dir, Pattern: "a.wav"},
		"put a literal between":             {Dir: dir, Pattern: "{label}{take}.wav"},
		"field {a} occurs twice":            {Dir: dir, Pattern: "{a}_{a}_{b}.wav"},
		"unmatched brace":                   {Dir: dir, Pattern: "{a}_{b"},
		"has no field {word}":               {Dir: dir, Pattern: "{label}_{speaker}_{take}.wav", Label: "word"},
		"no column \"digit\"":               {Dir: dir, Labels: table, Label: "digit"},
		"needs a CSV file or a pattern":     {Dir: dir, Label: "digit"},
		"not from both":                     {Dir: dir, Labels: table, Pattern: "{label}.wav"},
		"split needs a length":              {Dir: dir, Fit: "split"},
		`fit "squeeze"`:                     {Dir: dir, Fit: "squeeze"},
		"rate 800000000":                    {Dir: dir, Rate: 800000000},
		"length -1":                         {Dir: dir, Length: -1},
		"all 4 audio files are shorter":     {Dir: dir, Fit: "split", Length: 10},
		"SPEAKER-CHAPTER-NUMBER":            {Dir: dir, Layout: "librispeech"},
		"librispeech has its own factors":   {Dir: dir, Layout: "librispeech", Pattern: "{label}.wav"},
		`layout "synsets" is for images`:    {Dir: dir, Layout: "synsets"},
		"use classes, flat or librispeech":  {Dir: dir, Layout: "deep"},
	} {
		if _, err := OpenAudio(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// TestDamagedAudioIsABadSample checks two truncated files: b.flac lacks its last 200 bytes, and
// c.wav has only the first 30.
func TestDamagedAudioIsABadSample(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../internal/audio/testdata/tone16.flac")
	if err != nil {
		t.Fatal(err)
	}
	dir := folderOf(t, map[string][]byte{"a.flac": whole, "b.flac": whole[:len(whole)-200], "c.wav": ramp(t, 8000, 100)[:30]})
	s := openAudio(t, AudioOptions{Dir: dir})
	if _, err := s.At(t.Context(), 0, Frame{}); err != nil {
		t.Error(err)
	}
	for i, want := range map[int]string{1: "b.flac: the FLAC file is damaged or truncated", 2: "c.wav: a WAV format chunk"} {
		var bad *BadSample
		if _, err := s.At(t.Context(), i, Frame{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("sample %d: %v", i, err)
		}
	}
}

// TestSpokenDigits checks that the test split of the Free Spoken Digit Dataset, takes 0 to 4 of the
// 10 digits by 6 speakers, has 300 files, and that their values are neither silent nor above 1.
func TestSpokenDigits(t *testing.T) {
	t.Parallel()
	s := openAudio(t, AudioOptions{Dir: testdata.Path(t, "fsdd"), Pattern: "{label}_{speaker}_{take}.wav", Length: 1})
	if s.Len() != 3000 || len(s.Classes()) != 10 || len(Categories(s, "speaker")) != 6 {
		t.Errorf("%d files, classes %v, speakers %v", s.Len(), s.Classes(), Categories(s, "speaker"))
	}
	test, err := Where(t.Context(), s, map[string]Condition{"take": {High: 4}})
	if err != nil || test.Len() != 300 {
		t.Fatalf("%d files of the test split, %v", test.Len(), err)
	}
	for i := 0; i < test.Len(); i += 50 {
		got, err := test.At(t.Context(), i, Frame{Rate: 8000, Length: 8000})
		if err != nil {
			t.Fatal(err)
		}
		var peak float64
		for _, v := range got.Input.Data {
			peak = math.Max(peak, math.Abs(float64(v)))
		}
		if peak < 0.01 || peak > 1 {
			t.Errorf("%s: peak %v", got.Name, peak)
		}
	}
}

// FuzzPattern checks that no pattern panics, and that a name that matches has a text for each
// field.
func FuzzPattern(f *testing.F) {
	f.Add("{label}_{speaker}_{take}.wav", "3_theo_10.wav")
	f.Add("{a}/{}.flac", "x/y.flac")
	f.Add("[{x}](.*)", "[1](.*)")
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := parsePattern(text)
		if err != nil {
			return
		}
		if m := p.match(name); m != nil && len(m) != len(p.fields) {
			t.Errorf("%d texts for the fields %v", len(m), p.fields)
		}
	})
}
