package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/tensor"
)

// ModelRate, as AudioOptions.Rate, resamples each file to the rate of the model.
const ModelRate = -1

// AudioOptions are the options of OpenAudio: which files to read, their labels, and the length of
// an item, which is a file or an excerpt of it.
type AudioOptions struct {
	Dir     string
	Labels  string // CSV file with columns file (relative to Dir) and label; others are factors
	Label   string // column of the CSV file, or field of Pattern, with the label; "": label
	Pattern string // of file names: "{label}_{speaker}_{take}.wav"
	// Layout is "classes" (a folder for each class), "flat" (no labels) or "librispeech". The
	// default is classes if all files are in folders, and flat if none are; else there is an error.
	Layout string

	// Rate is the number of samples per second to resample to, or ModelRate. If it is 0, files are
	// not resampled and must all have the same rate.
	Rate   int
	Length float64 // seconds of an item; 0: the length that the model takes, or else whole files
	Fit    string  // for files of another length: "pad" (default), "crop" or "split"; see OpenAudio
}

// Audio is a Source of WAV and FLAC files.
type Audio struct {
	fileList
	options AudioOptions
	info    []audio.Info // of each file: rate and length
	damaged []error      // of each file: why its header cannot be read; nil: it can
	items   []audioItem
}

// otherAudioExtensions are the extensions of recordings in formats that are not read.
var otherAudioExtensions = []string{".aac", ".aif", ".aifc", ".aiff", ".amr", ".ape", ".au", ".caf", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".rf64", ".snd", ".sph",
	".w64", ".wma", ".wv"}

// An audioItem is one sample of the source: a part of a file. file is an index into files. Only Fit
// "split" has parts other than part 0.
type audioItem struct{ file, part int }

// OpenAudio opens a folder of WAV and FLAC files. Labels and factors come from a CSV file, from a
// pattern of file names, or from the layout. A field of a pattern, in braces, matches the text up
// to what follows the field in the pattern. The field {label} is the label. Other fields are
// factors: numbers if all their values are, categories (see Categories) if none is.
//
//	{label}_{speaker}_{take}.wav     matches file names, at any depth
//	{speaker}/{label}/{}.flac        matches paths within the folder; {} is ignored
//
// The layout librispeech is that of LibriSpeech: SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac beside
// SPEAKER-CHAPTER.trans.txt, at any depth. Its factors are speaker, chapter, words (of the
// transcript) and words-per-second (words / duration of the utterance). Files without a transcript
// are left out; Notes counts them and names the first five.
//
// Each file has the factor duration, in seconds, unless the CSV file has a column of that name.
//
// A sample of the source is an item: Length seconds of a file. Fit selects how files of another
// length are treated:
//
//	pad    a longer file is cropped at its centre, a shorter one is padded with zeros at its end
//	crop   a longer file is cropped at its centre, a shorter one is a BadSample, the error of one
//	       sample that cannot be read
//	split  a file is cut into whole items from its start, and the rest is left out; a shorter file is
//	       left out, and Notes counts such files and names the first five
//
// Channels are averaged, unless the model takes two. The fingerprint hashes names, labels, factors and
// contents of the files as that of OpenFolder, and the options Rate, Length and Fit.
func OpenAudio(ctx context.Context, o AudioOptions) (*Audio, error) {
	s := &Audio{fileList: fileList{dir: o.Dir, what: "audio files", extensions: []string{".flac", ".wav", ".wave"}, others: otherAudioExtensions}, options: o}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("opening audio files %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Audio) open(ctx context.Context) error {
	if err := s.options.check(); err != nil {
		return err
	}
	if s.options.Layout == "librispeech" {
		if err := s.find(ctx); err != nil {
			return err
		}
	} else if err := s.findAndLabel(ctx, labelSource{s.options.Labels, s.options.Label, s.options.Pattern, s.options.Layout}); err != nil {
		return err
	}
	if err := s.readHeaders(ctx); err != nil {
		return err
	}
	if s.options.Layout == "librispeech" {
		if err := s.readTranscripts(); err != nil {
			return err
		}
	}
	if err := s.splitItems(); err != nil {
		return err
	}
	d := newDigest("sounds")
	d.add(s.options.Rate, s.options.Length, s.options.Fit)
	err := s.hash(ctx, d)
	s.setFingerprint(d)
	return err
}

// Upper bounds of AudioOptions.Rate and AudioOptions.Length.
const (
	MaxRate    = 768_000   // samples per second
	MaxSeconds = 24 * 3600 // length of an item
)

func (o AudioOptions) check() error {
	switch {
	case o.Rate != ModelRate && (o.Rate < 0 || o.Rate > MaxRate):
		return fmt.Errorf("rate %d is not 1 to %d samples per second", o.Rate, MaxRate)
	case !(o.Length >= 0 && o.Length <= MaxSeconds):
		return fmt.Errorf("length %v is not between 0 and %d seconds", o.Length, MaxSeconds)
	case o.Fit != "" && o.Fit != "pad" && o.Fit != "crop" && o.Fit != "split":
		return fmt.Errorf("unknown fit %q: use pad, crop or split", o.Fit)
	case o.Fit == "split" && o.Length == 0:
		return fmt.Errorf("fit: split needs a length, the seconds of an item")
	case o.Layout == "librispeech" && (o.Labels != "" || o.Pattern != ""):
		return fmt.Errorf("the layout librispeech has its own factors: leave out the CSV file and the pattern")
	case o.Layout == "synsets":
		return fmt.Errorf(`layout "synsets" is for images: use classes, flat or librispeech`)
	case !slices.Contains([]string{"", "classes", "flat", "librispeech"}, o.Layout):
		return fmt.Errorf("unknown layout %q: use classes, flat or librispeech", o.Layout)
	}
	return nil
}

// readHeaders reads the headers of all files. A file with a damaged header stays in the list, as a
// sample that cannot be read.
func (s *Audio) readHeaders(ctx context.Context) error {
	s.info, s.damaged = make([]audio.Info, len(s.files)), make([]error, len(s.files))
	first := -1
	ownDuration := slices.Contains(s.factors, "duration")
	for i, f := range s.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := filestate.Retry(ctx, func() (err error) {
			s.info[i], err = audio.Probe(filepath.Join(s.dir, f.name))
			return err
		})
		if filestate.Passing(err) {
			return err // says nothing about the file
		}
		if s.damaged[i] = err; err != nil {
			continue
		}
		if !ownDuration {
			s.setFactor(i, "duration", s.info[i].Seconds())
		}
		if first < 0 {
			first = i
		}
		if a, b := s.info[first].Rate, s.info[i].Rate; a != b && s.options.Rate == 0 {
			return fmt.Errorf("%s has %d samples per second and %s has %d: set rate: %d to resample all files", s.files[first].name, a, f.name, b, max(a, b))
		}
	}
	if first < 0 {
		return fmt.Errorf("none of %d audio files can be read; the first is %s: %w", len(s.files), s.files[0].name, s.damaged[0])
	}
	return nil
}

// splitItems makes the list of items.
func (s *Audio) splitItems() error {
	var short []string
	for i, f := range s.files {
		parts := 1
		if s.options.Fit == "split" && s.damaged[i] == nil {
			rate := s.rate(i)
			parts = resampledLength(s.info[i].Frames, s.info[i].Rate, rate) / s.itemLength(rate)
		}
		if parts == 0 {
			short = append(short, f.name)
		}
		for p := range parts {
			s.items = append(s.items, audioItem{i, p})
		}
	}
	if len(s.items) == 0 {
		return fmt.Errorf("all %d audio files are shorter than an item of %v s", len(s.files), s.options.Length)
	}
	s.note(short, fmt.Sprintf("shorter than an item of %v s", s.options.Length))
	return nil
}

// note adds a note on files that are left out.
func (s *Audio) note(names []string, why string) {
	if len(names) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d of %d audio files are left out because they are %s: %s", len(names), len(s.files), why, firstNames(names, 5)))
	}
}

// rate returns the rate to which file i is resampled if no Frame sets another.
func (s *Audio) rate(i int) int {
	if s.options.Rate > 0 {
		return s.options.Rate
	}
	return s.info[i].Rate
}

// itemLength returns the number of audio samples of an item at a rate.
func (s *Audio) itemLength(rate int) int {
	return max(1, int(math.Round(s.options.Length*float64(rate))))
}

// resampledLength returns the number of audio samples that n of them become at another rate.
func resampledLength(n, from, to int) int {
	return int((int64(n)*int64(to) + int64(from) - 1) / int64(from))
}

func (s *Audio) Len() int { return len(s.items) }

// Describe returns item i without its values: Waveform has no Data. The name is the path of the
// file within the folder, followed by the number of the item if files are split.
func (s *Audio) Describe(i int) Sample {
	item := s.items[i]
	out := s.fileList.Describe(item.file)
	out.Index = i
	if s.options.Fit == "split" {
		out.Name = fmt.Sprintf("%s#%d", out.Name, item.part)
	}
	out.Waveform = &Waveform{Rate: s.rate(item.file), Seconds: s.options.Length}
	return out
}

// At reads item i. frame holds the rate and the length that a model takes; it is an error if the
// options exclude them. A file that cannot be read is a BadSample.
func (s *Audio) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "audio files "+s.dir, i, len(s.items)); err != nil {
		return Sample{}, err
	}
	return s.watched.read(ctx, s.items[i].file, func() (Sample, error) { return s.at(i, frame) })
}

func (s *Audio) at(i int, frame Frame) (Sample, error) {
	item, out := s.items[i], s.Describe(i)
	if err := s.damaged[item.file]; err != nil {
		return out, &BadSample{Name: out.Name, Err: err}
	}
	rate, length, err := s.target(item.file, frame)
	if err != nil {
		return out, err
	}
	channels, err := s.channels(item.file, rate, frame.Stereo)
	if err == nil {
		for i, wave := range channels {
			channels[i] = repeated(wave, length, frame.Repeat)
		}
		err = s.fit(&out, channels, rate, length, item.part)
	}
	if err != nil {
		return out, &BadSample{Name: out.Name, Err: cmp.Or(withoutPath(err), err)}
	}
	return out, nil
}

// channels reads the mean of the channels of a file, or two channels, and resamples them.
func (s *Audio) channels(file, rate int, stereo bool) ([][]float32, error) {
	path := filepath.Join(s.dir, s.files[file].name)
	var read [][]float32
	from := 0
	if stereo {
		var err error
		if from, read, err = audio.ReadChannels(path); err != nil {
			return nil, err
		}
		switch len(read) {
		case 1:
			read = append(read, read[0])
		case 2:
		default:
			return nil, fmt.Errorf("the file has %d channels, and the model takes 2", len(read))
		}
	} else {
		clip, err := audio.Read(path)
		if err != nil {
			return nil, err
		}
		from, read = clip.Rate, [][]float32{clip.Wave}
	}
	for i, wave := range read {
		var err error
		if read[i], err = audio.Resample(wave, from, rate); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// target returns the rate that a file is resampled to for a frame, and the number of audio samples
// of an item; 0: those of the whole file.
func (s *Audio) target(file int, frame Frame) (rate, length int, err error) {
	if frame.ForImages() {
		return 0, 0, fmt.Errorf("audio files %s: the model takes images", s.dir)
	}
	if rate = s.rate(file); frame.Rate > 0 && frame.Rate != rate {
		if s.options.Rate != ModelRate {
			return 0, 0, fmt.Errorf("audio files %s have %d samples per second and the model takes %d: set rate: %d of the data to resample them", s.dir, rate, frame.Rate, frame.Rate)
		}
		rate = frame.Rate
	}
	if s.options.Length > 0 {
		length = s.itemLength(rate)
	}
	if frame.Length > 0 && length > 0 && frame.Length != length {
		return 0, 0, fmt.Errorf("audio files %s give items of %d samples (%v s) and the model takes %d: set length: %v", s.dir, length, s.options.Length, frame.Length, float64(frame.Length)/float64(rate))
	}
	return rate, max(length, frame.Length), nil
}

// Shorter returns how many of the recordings of a source have fewer audio samples than an item of a
// frame, and the number of all recordings; 0 for a source of anything else.
func Shorter(src Source, frame Frame) (short, all int) {
	s, ok := find[*Audio](src)
	if !ok || s.options.Fit == "crop" || s.options.Fit == "split" {
		return 0, 0
	}
	for i, info := range s.info {
		if s.damaged[i] != nil || info.Frames == 0 { // or the file does not state its length
			continue
		}
		all++
		if rate, length, err := s.target(i, frame); err == nil && resampledLength(info.Frames, info.Rate, rate) < length {
			short++
		}
	}
	return short, all
}

// fit cuts an item of length audio samples (0: all) out of resampled channels and sets the Input,
// channels x length, and the Waveform of out.
func (s *Audio) fit(out *Sample, channels [][]float32, rate, length, part int) error {
	n := len(channels[0])
	switch {
	case n == 0:
		return fmt.Errorf("the file has no samples")
	case length == 0:
		length = n
	case n < length && s.options.Fit == "crop":
		return fmt.Errorf("%d samples are fewer than the %d of an item: set fit: pad", n, length)
	}
	all := max(n, length)
	from := (all - length) / 2
	if s.options.Fit == "split" {
		from = part * length
	}
	if from+length > all {
		return fmt.Errorf("%d samples are fewer than the header states", n)
	}
	out.Waveform = &Waveform{Rate: rate, Seconds: s.options.Length, Data: channels[0], Start: from}
	if len(channels) > 1 || n < all {
		out.Waveform.Data = make([]float32, len(channels)*all) // padded with zeros
		for c, wave := range channels {
			copy(out.Waveform.Data[c*all:], wave)
		}
	}
	out.Input = tensor.New(len(channels), length)
	for c := range channels {
		copy(out.Input.Data[c*length:(c+1)*length], out.Waveform.Data[c*all+from:])
	}
	return nil
}

// repeated returns audio that is repeated as Frame.Repeat says, up to length samples.
func repeated(wave []float32, length int, how string) []float32 {
	n := len(wave)
	if how == "" || n == 0 || n >= length {
		return wave
	}
	if how == "repeatpad" {
		length = length / n * n
	}
	out := make([]float32, length)
	for i := range out {
		out[i] = wave[i%n]
	}
	return out
}
