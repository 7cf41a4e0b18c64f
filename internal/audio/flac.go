package audio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/meta"
)

func isFLAC(data []byte) bool { return len(data) >= 4 && string(data[:4]) == "fLaC" }

// probeFLAC returns the header of a FLAC file. It reads r, and decodes the file at path only if the
// header does not state the length.
func probeFLAC(r io.Reader, path string) (info Info, err error) {
	defer recoverError(&err)
	stream, err := flac.New(bufio.NewReader(r))
	if err != nil {
		return Info{}, fmt.Errorf("damaged FLAC header: %w", err)
	}
	if info, err = infoOf(stream.Info); err != nil || info.Frames > 0 {
		return info, err
	}
	clip, err := Read(path)
	info.Frames = len(clip.Wave)
	return info, err
}

func infoOf(s *meta.StreamInfo) (Info, error) {
	if s.NSamples > maxValues {
		return Info{}, fmt.Errorf("%d values are too many: split the file", s.NSamples)
	}
	if s.BitsPerSample < 4 || s.BitsPerSample > 24 { // the library computes in 32 bits, which more would exceed
		return Info{}, fmt.Errorf("FLAC of %d bits: 4 to 24 are supported: convert it (ffmpeg -i OLD -c:a pcm_s32le NEW.wav)", s.BitsPerSample)
	}
	info := Info{Rate: int(s.SampleRate), Channels: int(s.NChannels), Frames: int(s.NSamples)}
	return info, info.check()
}

// decodeFLAC decodes a FLAC file and averages its channels. It returns an error if the number of
// values of a channel differs from that in the header. A frame in the messages and in ParseNext is
// a block of FLAC; Info.Frames is the number of values of a channel.
func decodeFLAC(data []byte) (clip Clip, err error) {
	defer recoverError(&err)
	stream, err := flac.New(bytes.NewReader(data))
	if err != nil {
		return Clip{}, fmt.Errorf("damaged FLAC header: %w", err)
	}
	info, err := infoOf(stream.Info)
	if err != nil {
		return Clip{}, err
	}
	// From a sum of channels to a mean in [-1, 1].
	scale := 1 / float64(int64(info.Channels)<<(stream.Info.BitsPerSample-1))
	var wave []float32
	for {
		frame, err := stream.ParseNext()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Clip{}, fmt.Errorf("the FLAC file is damaged or truncated after %d of %d values: %w", len(wave), info.Frames, err)
		}
		if len(frame.Subframes) != info.Channels || len(wave) > maxValues-int(frame.BlockSize) {
			return Clip{}, fmt.Errorf("a FLAC frame of %d channels after %d values, in a file of %d channels", len(frame.Subframes), len(wave), info.Channels)
		}
		for i := range int(frame.BlockSize) {
			var sum int64
			for _, s := range frame.Subframes {
				sum += int64(s.Samples[i])
			}
			wave = append(wave, float32(float64(sum)*scale))
		}
	}
	if info.Frames > 0 && len(wave) != info.Frames {
		return Clip{}, fmt.Errorf("the FLAC file is truncated: %d of %d values are present", len(wave), info.Frames)
	}
	return Clip{info.Rate, wave}, nil
}

// recoverError, when deferred, turns a panic of the decoder on damaged data into an error.
func recoverError(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged FLAC: %v", r)
	}
}
