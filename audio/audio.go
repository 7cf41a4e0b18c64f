// Package audio reads, resamples and measures waveforms.
//
// A Clip is a waveform of one channel: values in [-1, 1] and how many of them make a second. Read decodes WAV and FLAC
// files; Probe reads no more than their headers. Several channels become one by their mean.
//
//	WAV   8, 16, 24 and 32-bit integers, 32 and 64-bit floats, plain or WAVE_FORMAT_EXTENSIBLE
//	FLAC  4 to 32 bits
//
// Integers of b bits are divided by 2^(b-1) (those of 8-bit WAV files after 128 is taken off), so full scale is 1. Floats are
// kept as they are, beyond 1 too; NaN and infinity are errors.
//
// Resample changes the rate by a polyphase windowed sinc; MelBank and Hann are what a spectrogram is made of.
package audio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Clip is a waveform of one channel.
type Clip struct {
	Rate int       // samples a second
	Wave []float32 // values, full scale being 1
}

// Seconds is the length of the clip.
func (c Clip) Seconds() float64 { return float64(len(c.Wave)) / float64(c.Rate) }

// An Info is what the header of a file says.
type Info struct {
	Rate     int // samples a second
	Channels int
	Frames   int // values of each channel
}

// Seconds is the length of the sound.
func (i Info) Seconds() float64 { return float64(i.Frames) / float64(i.Rate) }

const (
	maxRate     = 1 << 20 // samples a second: more than any recorder
	maxChannels = 256
	maxValues   = 1 << 28 // 1 GiB of float32: 4 hours 39 minutes at 16 kHz
)

// check refuses headers that no sound has.
func (i Info) check() error {
	switch {
	case i.Rate < 1 || i.Rate > maxRate:
		return fmt.Errorf("a rate of %d samples a second: it is 1 to %d", i.Rate, maxRate)
	case i.Channels < 1 || i.Channels > maxChannels:
		return fmt.Errorf("%d channels: there are 1 to %d", i.Channels, maxChannels)
	case i.Frames < 0 || i.Frames > maxValues/i.Channels:
		return fmt.Errorf("%d values of %d channels: too long; cut it into pieces", i.Frames, i.Channels)
	}
	return nil
}

// IsAudio reports whether a file's ending is that of a sound which Read knows.
func IsAudio(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".wav", ".wave", ".flac":
		return true
	}
	return false
}

// Read decodes a file, whose first bytes say what it is.
func Read(path string) (Clip, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Clip{}, err
	}
	return Decode(data)
}

// Decode decodes the bytes of a file.
func Decode(data []byte) (Clip, error) {
	switch {
	case isWAV(data):
		return decodeWAV(data)
	case isFLAC(data):
		return decodeFLAC(data)
	case len(data) == 0:
		return Clip{}, errors.New("the file is empty")
	}
	return Clip{}, errors.New("neither WAV nor FLAC")
}

// Probe reads the header of a file. Of a FLAC file that does not say how long it is, all of it is decoded.
func Probe(path string) (Info, error) {
	f, err := os.Open(path)
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
	return Info{}, errors.New("neither WAV nor FLAC")
}
