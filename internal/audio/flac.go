package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The decoder is our own, since the library for Go decodes samples of at most 24 bits.

const (
	flacMagic      = "fLaC"
	flacStreamInfo = 34 // bytes of the first block of metadata
)

func isFLAC(data []byte) bool { return len(data) >= 4 && string(data[:4]) == flacMagic }

// A flacHeader is what the metadata of a FLAC file say.
type flacHeader struct {
	Info        // Frames is 0 if the length is not stated
	depth int   // bits of a sample
	audio int64 // offset of the first frame
}

// parseFLAC reads the metadata of a FLAC file.
func parseFLAC(r io.ReaderAt) (h flacHeader, err error) {
	at := int64(len(flacMagic))
	for first, last := true, false; !last; first = false {
		var block [4 + flacStreamInfo]byte
		n, err := r.ReadAt(block[:], at)
		if n < 4 || first && n < len(block) {
			return h, fmt.Errorf("damaged FLAC header: %w", err)
		}
		last = block[0]&0x80 != 0
		length := int64(binary.BigEndian.Uint32(block[:]) & 0xFFFFFF)
		if kind := block[0] & 0x7F; first != (kind == 0) || first && length != flacStreamInfo {
			return h, fmt.Errorf("damaged FLAC header: a block of type %d with %d bytes", kind, length)
		}
		if first {
			if err := h.parseStreamInfo(block[4:]); err != nil {
				return h, err
			}
		}
		at += 4 + length
	}
	h.audio = at
	return h, nil
}

func (h *flacHeader) parseStreamInfo(block []byte) error {
	// The rate has 20 bits, the number of channels minus 1 has 3, that of bits minus 1 has 5, and
	// the number of samples of a channel 36.
	v := binary.BigEndian.Uint64(block[10:])
	h.Rate, h.Channels, h.depth = int(v>>44), int(v>>41&7)+1, int(v>>36&31)+1
	samples := v & (1<<36 - 1)
	if samples > maxValues {
		return fmt.Errorf("%d values are too many: split the file", samples)
	}
	h.Frames = int(samples)
	if h.depth < 4 {
		return fmt.Errorf("FLAC of %d bits: there must be 4 to 32", h.depth)
	}
	return h.check()
}

// probeFLAC returns the header of a FLAC file. It reads r, and decodes the file at path only if the
// header does not state the length.
func probeFLAC(r io.ReaderAt, path string) (Info, error) {
	h, err := parseFLAC(r)
	if err != nil || h.Frames > 0 {
		return h.Info, err
	}
	clip, err := Read(path)
	h.Frames = len(clip.Wave)
	return h.Info, err
}

// decodeFLAC returns the channels of a FLAC file or their mean. It returns an error if the number of
// values of a channel differs from that in the header. What follows the last value is not read,
// such as an ID3 tag. A frame in the messages is a block of FLAC; Info.Frames is the number of
// values of a channel.
func decodeFLAC(data []byte, mean bool) (rate int, channels [][]float32, err error) {
	h, err := parseFLAC(bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	if h.audio > int64(len(data)) {
		return 0, nil, errors.New("the FLAC file ends within its header")
	}
	data = data[h.audio:]
	channels = make([][]float32, h.Channels)
	scale := 1 / float64(int64(1)<<(h.depth-1)) // to [-1, 1]
	if mean {
		channels = channels[:1]
		scale = 1 / float64(int64(h.Channels)<<(h.depth-1))
	}
	values := 0 // of a channel
	var frame flacFrame
	for len(data) > 0 && (h.Frames == 0 || values < h.Frames) {
		n, err := frame.decode(data, h.Channels, h.depth)
		if err != nil {
			return 0, nil, fmt.Errorf("the FLAC file is damaged or truncated after %d of %d values: %w", values, h.Frames, err)
		}
		data = data[n:]
		block := len(frame.channels[0])
		if values > maxValues/len(channels)-block {
			return 0, nil, fmt.Errorf("more than %d values are too many: split the FLAC file", values)
		}
		for i := range block {
			var sum int64
			for k, c := range frame.channels {
				if sum += c[i]; !mean {
					channels[k] = append(channels[k], float32(float64(c[i])*scale))
				}
			}
			if mean {
				channels[0] = append(channels[0], float32(float64(sum)*scale))
			}
		}
		values += block
	}
	if h.Frames > 0 && values != h.Frames {
		return 0, nil, fmt.Errorf("the FLAC file is truncated: %d of %d values are present", values, h.Frames)
	}
	return h.Rate, channels, nil
}
