// Package audio reads, resamples and measures waveforms.
//
// A Clip is a waveform of one channel, whose values are usually in [-1, 1], and its sampling rate.
// Read decodes WAV and FLAC files. Probe returns their rate, number of channels and
// length, nearly always from the header alone. Read averages several channels.
//
//	WAV   8, 16, 24 and 32-bit integers, 32 and 64-bit floats, plain or WAVE_FORMAT_EXTENSIBLE
//	FLAC  4 to 32 bits
//
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
	maxValues   = 1 << 28 // 1 GiB of float32: 4 hours 39 minutes at 16 kHz
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
	data, err := filesys.ReadFile(path)
	if err != nil {
		return Clip{}, err
	}
	return Decode(data)
}

func unknownFormat(data []byte) error {
	for start, name := range map[string]string{
		"RF64": "RF64, the WAV of large files", "BW64": "BW64, the WAV of large files", "RIFX": "RIFX, a WAV with the high byte first",
		"riff": "W64, the WAV of large files", "FORM": "AIFF", "OggS": "Ogg", "ID3": "MP3, or another format after an ID3 tag",
		"caff": "CAF", ".snd": "AU", "\xff\xfb": "MP3",
	} {
		if bytes.HasPrefix(data, []byte(start)) {
			return fmt.Errorf("the file is %s, not WAV or FLAC: convert it (ffmpeg -i OLD NEW.wav)", name)
		}
	}
	return errors.New("the file is neither WAV nor FLAC")
}

// Decode decodes the contents of a file.
func Decode(data []byte) (Clip, error) {
	switch {
	case isWAV(data):
		return decodeWAV(data)
	case isFLAC(data):
		return decodeFLAC(data)
	case len(data) == 0:
		return Clip{}, errors.New("the file is empty")
	}
	return Clip{}, unknownFormat(data)
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
	head := make([]byte, min(stat.Size(), 12))
	if _, err := f.ReadAt(head, 0); err != nil {
		return Info{}, err
	}
	switch {
	case isWAV(head):
		h, err := parseWAV(f, stat.Size())
		return h.Info, err
	case isFLAC(head):
		return probeFLAC(f, path)
	case len(head) == 0:
		return Info{}, errors.New("the file is empty")
	}
	return Info{}, unknownFormat(head)
}
