// Package audio reads, resamples and measures waveforms.
//
// A Clip is a waveform of one channel, whose values are usually in [-1, 1], and its sampling rate.
// Read decodes WAV and FLAC files. Probe returns their rate, number of channels and
// length, nearly always from the header alone. Read averages several channels, and ReadChannels
// returns them.
//
//	WAV   8, 16, 24 and 32-bit integers, 32 and 64-bit floats, plain or WAVE_FORMAT_EXTENSIBLE
//	FLAC  4 to 32 bits
//
// An ID3 tag before either is skipped.
// Integers of b bits are divided by 2^(b-1), so that full scale is 1; 8-bit WAV files hold unsigned
// integers, from which 128 is subtracted first. Floats are not scaled and may exceed 1. NaN and
// infinity are errors.
//
// Resample changes the rate by a polyphase filter, a windowed sinc. Stretch changes the tempo and
// ShiftPitch the pitch. A Room computes impulse responses, for reverberation. Hann and Mel are the
// window and the filter bank of spectrograms.
//
//	clip, err := audio.Read("speech.flac")
//	wave, err := audio.Resample(clip.Wave, clip.Rate, 16000)
package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// A Clip is a waveform of one channel.
type Clip struct {
	Rate int       // samples a second
	Wave []float32 // full scale is 1
}

// An Info is the header of a file.
type Info struct {
	Rate     int // samples a second
	Channels int
	Frames   int // number of samples of each channel
}

// Seconds returns the duration of the audio.
func (i Info) Seconds() float64 { return float64(i.Frames) / float64(i.Rate) }

const (
	maxRate     = 1 << 20 // samples a second
	maxChannels = 256
	maxValues   = 1 << 28              // 1 GiB of float32: 4 hours 39 minutes at 16 kHz
	maxFile     = 8*maxValues + 64<<20 // bytes: these values as 64-bit floats, and the rest of the file
)

// check returns an error if a value of the header is out of bounds.
func (i Info) check() error {
	switch {
	case i.Rate < 1 || i.Rate > maxRate:
		return fmt.Errorf("a sampling rate of %d Hz: it must be 1 to %d", i.Rate, maxRate)
	case i.Channels < 1 || i.Channels > maxChannels:
		return fmt.Errorf("%d channels: there must be 1 to %d", i.Channels, maxChannels)
	case i.Frames < 0 || i.Frames > maxValues/i.Channels:
		return fmt.Errorf("%d values of %d channels are too many, %d in all at most: split the file", i.Frames, i.Channels, maxValues)
	}
	return nil
}

// IsAudio reports whether a file name has the extension of a format that Read decodes.
func IsAudio(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".wav", ".wave", ".flac":
		return true
	}
	return false
}

// Read decodes a file. Its first bytes determine the format.
func Read(path string) (Clip, error) {
	data, err := readFile(path)
	if err != nil {
		return Clip{}, err
	}
	return Decode(data)
}

// ReadChannels decodes a file, and returns its rate and channels.
func ReadChannels(path string) (rate int, channels [][]float32, err error) {
	data, err := readFile(path)
	if err != nil {
		return 0, nil, err
	}
	return decode(data, false)
}

func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("the file has %d bytes, more than the limit of %d: split it", info.Size(), maxFile)
	}
	return filesys.ReadFile(path)
}

// tagLength returns the length of an ID3 tag, from the first ten bytes of a file; 0: there is none.
func tagLength(head []byte) int64 {
	const header, footer = 10, 0x10 // length, and the flag of another one at the end
	if len(head) < header || string(head[:3]) != "ID3" {
		return 0
	}
	n := int64(header)
	if head[5]&footer != 0 {
		n += header
	}
	size := int64(0)
	for _, b := range head[6:header] { // seven bits each
		size = size<<7 | int64(b&0x7F)
	}
	return n + size
}

func unknownFormat(data []byte) error {
	if len(data) > 8 && string(data[4:8]) == "ftyp" {
		data = data[4:]
	}
	for start, name := range map[string]string{
		"RF64": "RF64, the WAV of large files", "BW64": "BW64, the WAV of large files", "RIFX": "RIFX, a WAV with the high byte first",
		"riff": "W64, the WAV of large files", "FORM": "AIFF", "OggS": "Ogg", "ID3": "MP3, or another format after an ID3 tag",
		"caff": "CAF", ".snd": "AU", "\xff\xfb": "MP3", "\xff\xfa": "MP3", "\xff\xf3": "MP3", "\xff\xf2": "MP3", "\xff\xf1": "AAC", "\xff\xf9": "AAC",
		"ftyp": "MP4 (M4A)", "\x1aE\xdf\xa3": "WebM or Matroska", "0&\xb2u": "WMA", "#!AMR": "AMR", "wvpk": "WavPack", "MAC ": "Monkey's Audio", "DSD ": "DSF",
		"version http": "a pointer of Git LFS (git lfs pull)", "<": "a web page or XML", "NIST_1A": "NIST SPHERE", "Creative Voice": "VOC", "TTA1": "TTA", ".SoX": "SoX", "\x0bw": "AC-3",
	} {
		if bytes.HasPrefix(data, []byte(start)) {
			return fmt.Errorf("the file is %s, not WAV or FLAC: convert it (ffmpeg -i OLD NEW.wav)", name)
		}
	}
	return errors.New("the file is neither WAV nor FLAC")
}

// Decode decodes the contents of a file.
func Decode(data []byte) (Clip, error) {
	rate, channels, err := decode(data, true)
	if err != nil {
		return Clip{}, err
	}
	return Clip{rate, channels[0]}, nil
}

// decode returns the channels of a file, or their mean.
func decode(data []byte, mean bool) (rate int, channels [][]float32, err error) {
	if n := tagLength(data); n > 0 && n < int64(len(data)) && (isWAV(data[n:]) || isFLAC(data[n:])) {
		data = data[n:]
	}
	switch {
	case isWAV(data):
		return decodeWAV(data, mean)
	case isFLAC(data):
		return decodeFLAC(data, mean)
	case len(data) == 0:
		return 0, nil, errors.New("the file is empty")
	}
	return 0, nil, unknownFormat(data)
}

// Probe reads the header of a file. A FLAC file whose header lacks the length is decoded.
func Probe(path string) (Info, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	start, size := make([]byte, min(stat.Size(), 12)), stat.Size()
	if _, err := f.ReadAt(start, 0); err != nil {
		return Info{}, err
	}
	from, head := tagLength(start), make([]byte, 12)
	if n, _ := f.ReadAt(head, from); !isWAV(head[:n]) && !isFLAC(head[:n]) {
		from, head = 0, start
	}
	in := io.NewSectionReader(f, from, size-from)
	switch {
	case isWAV(head):
		h, err := parseWAV(in, size-from)
		return h.Info, err
	case isFLAC(head):
		return probeFLAC(in, path)
	case size == 0:
		return Info{}, errors.New("the file is empty")
	}
	return Info{}, unknownFormat(start)
}
