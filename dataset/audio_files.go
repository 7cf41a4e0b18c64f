package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/audio"
	"github.com/noether-ml/noether/tensor"
)

// RateOfModel, as SoundsOptions.Rate, resamples sounds to whatever a model takes.
const ModelRate = -1

// AudioOptions says which files of sound to read, how they are labelled, and how they become items of one length.
type AudioOptions struct {
	Dir     string
	Labels  string // CSV file of file, label and columns of factors; the files are relative to Dir
	Label   string // the column of the CSV file, or the field of Pattern, that holds the label; "": label
	Pattern string // of file names: "{label}_{speaker}_{take}.wav"
	Layout  string // "classes" (a folder a class), "flat" or "librispeech"; "": classes where there are folders, else flat

	Rate   int     // samples a second that sounds are resampled to, or RateOfModel; 0: as they are, which must be the same for all
	Length float64 // seconds of an item; 0: as the model takes them, else whole sounds
	Fit    string  // "pad" (default), "crop" or "split": see OpenSounds
}

// Audio is a source over WAV and FLAC files.
type Audio struct {
	fileList
	options     AudioOptions
	info        []audio.Info // of each file
	damaged     []error      // of each file: why its header cannot be read
	items       []audioItem
	notes       []string
	fingerprint string
}

// A audioItem is a sample: a file, or the part-th stretch of it.
type audioItem struct{ file, part int }

// OpenAudio opens a folder of WAV and FLAC files. Labels and factors come from a CSV file, from a pattern of names, or from the
// layout. In a pattern a field in braces takes text up to what comes next; {label} is the label, and other fields are
// factors, numbers where all of them are and categories else (see Categories):
//
//	{label}_{speaker}_{take}.wav     of names, at any depth
//	{speaker}/{label}/{}.flac        of paths beneath the folder; what {} takes is passed over
//
// The layout librispeech is that of its archives, SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac beside
// SPEAKER-CHAPTER.trans.txt, at any depth: the factors are speaker, chapter, words (of the transcript) and words-per-second,
// words / duration of the whole utterance. Sounds without a transcript are left out; Notes counts and names them.
//
// Every sound has the factor duration, in seconds, unless the table has one of its own.
//
// An item is Length seconds of a sound:
//
//	pad    what is longer is cropped in its middle; what is shorter is followed by zeros
//	crop   what is longer is cropped in its middle; what is shorter is a BadSample
//	split  every sound is cut into as many items as it holds, from its start; the rest is left out, and so are sounds shorter
//	       than an item, which Notes counts and names
//
// Channels are mixed to one. The fingerprint hashes names, sizes, labels, factors and the ends of files, as OpenFolder's does.
func OpenAudio(ctx context.Context, o AudioOptions) (*Audio, error) {
	s := &Audio{fileList: fileList{dir: o.Dir, what: "sounds", extensions: []string{".flac", ".wav", ".wave"}}, options: o}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("opening sounds %s: %w", o.Dir, err)
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
	} else if err := s.list(ctx, labelSource{s.options.Labels, s.options.Label, s.options.Pattern, s.options.Layout}); err != nil {
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
	s.fingerprint = d.String()
	return err
}

// Bounds of waveforms.
const (
	MaxRate    = 768_000   // samples per second
	MaxSeconds = 24 * 3600 // length of an item
)

func (o AudioOptions) check() error {
	switch {
	case o.Rate != ModelRate && (o.Rate < 0 || o.Rate > MaxRate):
		return fmt.Errorf("rate %d: it is 1 to %d samples a second", o.Rate, MaxRate)
	case !(o.Length >= 0 && o.Length <= MaxSeconds):
		return fmt.Errorf("length %v: it is above 0 and at most %d seconds", o.Length, MaxSeconds)
	case o.Fit != "" && o.Fit != "pad" && o.Fit != "crop" && o.Fit != "split":
		return fmt.Errorf("fit %q: it is pad, crop or split", o.Fit)
	case o.Fit == "split" && o.Length == 0:
		return fmt.Errorf("fit: split wants a length: how many seconds an item has")
	case o.Layout == "librispeech" && (o.Labels != "" || o.Pattern != ""):
		return fmt.Errorf("the layout librispeech has its own factors: leave out the CSV file and the pattern")
	case o.Layout == "synsets":
		return fmt.Errorf(`layout "synsets" is one of images: classes, flat or librispeech`)
	}
	return nil
}

// readHeaders reads the headers of all files. A file whose header is damaged stays in the list, as a sample that cannot be read.
func (s *Audio) readHeaders(ctx context.Context) error {
	s.info, s.damaged = make([]audio.Info, len(s.files)), make([]error, len(s.files))
	first := -1
	ownDuration := slices.Contains(s.factors, "duration")
	for i, f := range s.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.info[i], s.damaged[i] = audio.Probe(filepath.Join(s.dir, f.name))
		if s.damaged[i] != nil {
			continue
		}
		if !ownDuration {
			s.setFactor(i, "duration", s.info[i].Seconds())
		}
		if first < 0 {
			first = i
		}
		if a, b := s.info[first].Rate, s.info[i].Rate; a != b && s.options.Rate == 0 {
			return fmt.Errorf("%s has %d samples a second and %s %d: say rate: %d, and all are resampled to it", s.files[first].name, a, f.name, b, max(a, b))
		}
	}
	if first < 0 {
		return fmt.Errorf("none of %d sounds can be read; the first is %s: %w", len(s.files), s.files[0].name, s.damaged[0])
	}
	return nil
}

// splitItems makes the items.
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
		return fmt.Errorf("all %d sounds are shorter than an item of %v s", len(s.files), s.options.Length)
	}
	s.note(short, fmt.Sprintf("shorter than an item of %v s", s.options.Length))
	return nil
}

// note takes down files that were left out.
func (s *Audio) note(names []string, why string) {
	if len(names) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d of %d sounds are left out, being %s: %s", len(names), len(s.files), why, someNames(names)))
	}
}

// someNames lists names, cut short where they are many.
func someNames(names []string) string {
	const most = 5
	text := ""
	for i, n := range names {
		switch {
		case i == most:
			return fmt.Sprintf("%s and %d more", text, len(names)-most)
		case i > 0:
			text += ", "
		}
		text += n
	}
	return text
}

// rate is that of file i as it is known before a model asks for one.
func (s *Audio) rate(i int) int {
	if s.options.Rate > 0 {
		return s.options.Rate
	}
	return s.info[i].Rate
}

// itemLength is Length in samples.
func (s *Audio) itemLength(rate int) int {
	return max(1, int(math.Round(s.options.Length*float64(rate))))
}

// resampledLength is the number of values that n have at another rate.
func resampledLength(n, from, to int) int {
	return int((int64(n)*int64(to) + int64(from) - 1) / int64(from))
}

// Len is the number of items.
func (s *Audio) Len() int { return len(s.items) }

// Classes are the names of the labels, sorted; nil where there are none.
func (s *Audio) Classes() []string { return s.classes }

// Factors are those of the table, the pattern or the transcripts, and duration.
func (s *Audio) Factors() []string { return s.factors }

// Fingerprint is described at OpenSounds.
func (s *Audio) Fingerprint() string { return s.fingerprint }

// Notes say which files were left out, and why.
func (s *Audio) Notes() []string { return s.notes }

// Describe is item i without its waveform. Its name is that of the file, relative to the folder, with
// the number of the item behind it where sounds are split.
func (s *Audio) Describe(i int) Sample {
	item := s.items[i]
	out := s.describe(item.file)
	out.Index = i
	if s.options.Fit == "split" {
		out.Name = fmt.Sprintf("%s#%d", out.Name, item.part)
	}
	out.Waveform = &Waveform{Rate: s.rate(item.file), Seconds: s.options.Length}
	return out
}

// At reads item i. A file that cannot be read is a BadSample; a rate or length other than the model's is an error.
func (s *Audio) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "sounds "+s.dir, i, len(s.items)); err != nil {
		return Sample{}, err
	}
	item, out := s.items[i], s.Describe(i)
	if err := s.damaged[item.file]; err != nil {
		return out, &BadSample{Name: out.Name, Err: err}
	}
	rate, length, err := s.target(item.file, frame)
	if err != nil {
		return out, err
	}
	clip, err := audio.Read(filepath.Join(s.dir, s.files[item.file].name))
	if err == nil {
		clip.Wave, err = audio.Resample(clip.Wave, clip.Rate, rate)
	}
	if err == nil {
		err = s.fit(&out, clip.Wave, rate, length, item.part)
	}
	if err != nil {
		return out, &BadSample{Name: out.Name, Err: cmp.Or(withoutPath(err), err)}
	}
	return out, nil
}

// target is the rate and the length (0: all) of a file under a frame.
func (s *Audio) target(file int, frame Frame) (rate, length int, err error) {
	if frame.ForImages() {
		return 0, 0, fmt.Errorf("sounds %s: the model takes images", s.dir)
	}
	if rate = s.rate(file); frame.Rate > 0 && frame.Rate != rate {
		if s.options.Rate != ModelRate {
			return 0, 0, fmt.Errorf("sounds %s have %d samples a second and the model takes %d: say rate: %d of the data, and they are resampled", s.dir, rate, frame.Rate, frame.Rate)
		}
		rate = frame.Rate
	}
	if s.options.Length > 0 {
		length = s.itemLength(rate)
	}
	if frame.Length > 0 && length > 0 && frame.Length != length {
		return 0, 0, fmt.Errorf("sounds %s are items of %d samples (%v s) and the model takes %d: say length: %v", s.dir, length, s.options.Length, frame.Length, float64(frame.Length)/float64(rate))
	}
	return rate, max(length, frame.Length), nil
}

// fit makes an item of a whole waveform.
func (s *Audio) fit(out *Sample, wave []float32, rate, length, part int) error {
	n := len(wave)
	switch {
	case n == 0:
		return fmt.Errorf("the sound is empty")
	case length == 0:
		length = n
	case n < length && s.options.Fit == "crop":
		return fmt.Errorf("%d samples are fewer than the %d of an item: say fit: pad", n, length)
	case n < length:
		wave = append(slices.Clip(wave), make([]float32, length-n)...)
	}
	from := (len(wave) - length) / 2
	if s.options.Fit == "split" {
		from = part * length
	}
	if from+length > len(wave) {
		return fmt.Errorf("%d samples, where the header said more", n)
	}
	out.Waveform = &Waveform{Rate: rate, Seconds: s.options.Length, Data: wave, Start: from}
	out.Input = tensor.Tensor{Shape: []int{1, length}, Data: slices.Clone(wave[from : from+length])}
	return nil
}
