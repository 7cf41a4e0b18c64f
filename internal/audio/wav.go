package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Formats of WAV files, as the fmt chunk numbers them.
const (
	wavInteger    = 1
	wavFloat      = 3
	wavExtensible = 0xFFFE
)

// wavFormats are what follows the number of a format in the identifiers of extensible formats: of
// usual ones, and of Ambisonics.
var wavFormats = []string{"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71", "\x00\x00\x21\x07\xd3\x11\x86\x44\xc8\xc1\xca\x00\x00\x00"}

// A wavHeader is the format and the position of the samples of a WAV file. Its Info is the rate,
// the number of channels and the number of frames (samples of each channel).
type wavHeader struct {
	Info
	format     int   // wavInteger or wavFloat
	bits       int   // of a sample
	data, size int64 // offset and length of the samples, in bytes
}

func isWAV(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WAVE"
}

// parseWAV reads the chunks of a file of size bytes up to its data and skips unknown chunks. Chunks
// start at even offsets.
func parseWAV(r io.ReaderAt, size int64) (wavHeader, error) {
	var h wavHeader
	for at := int64(12); ; { // after RIFF, the length and WAVE
		var head [8]byte
		if at+8 > size {
			return h, errors.New("the WAV file ends before its data: is it truncated?")
		}
		if _, err := r.ReadAt(head[:], at); err != nil {
			return h, err
		}
		name, length := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		at += 8
		switch name {
		case "fmt ":
			if h.bits > 0 {
				return h, errors.New("the WAV file has two format chunks: convert it (ffmpeg -i OLD NEW.wav)")
			}
			if err := h.parseFormat(r, at, length, size); err != nil {
				return h, err
			}
		case "data":
			length, err := dataLength(r, at, length, size)
			switch {
			case err != nil:
				return h, err
			case length < 0:
				return h, h.setUnknownData(at, size)
			}
			if err := h.setData(at, length, size); err != nil {
				return h, err
			}
			return h, onlyData(r, at+length+length%2, size)
		}
		at += length + length%2
	}
}

// onlyData returns an error if more samples follow in a chunk from an offset on.
func onlyData(r io.ReaderAt, at, size int64) error {
	var head [8]byte
	for at+8 <= size {
		if _, err := r.ReadAt(head[:], at); err != nil {
			return err
		}
		if string(head[:4]) == "data" {
			return errors.New("the WAV file has several parts with data: convert it (ffmpeg -i OLD NEW.wav)")
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		at += 8 + length + length%2
	}
	return nil
}

func (h *wavHeader) parseFormat(r io.ReaderAt, at, length, size int64) error {
	if length < 16 || at+length > size {
		return fmt.Errorf("a WAV format chunk of %d bytes: is the file truncated?", length)
	}
	// Offsets in the chunk: 0 format, 2 channels, 4 rate, 12 bytes of a block, which is one value
	// of each channel, 14 bits of a value, 24 sub-format of WAVE_FORMAT_EXTENSIBLE.
	chunk := make([]byte, min(length, 40))
	if _, err := r.ReadAt(chunk, at); err != nil {
		return err
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(chunk[i:])) }
	h.format, h.Channels, h.bits = u16(0), u16(2), u16(14)
	rate, block := int64(binary.LittleEndian.Uint32(chunk[4:])), u16(12)
	h.Rate = int(min(rate, maxRate+1)) // fits an int; check rejects all rates above maxRate
	if h.format == wavExtensible {
		if len(chunk) < 40 {
			return errors.New("an extensible WAV format chunk has no sub-format")
		}
		h.format = u16(24)
		if !slices.Contains(wavFormats, string(chunk[26:40])) {
			return fmt.Errorf("WAV in a format with the unknown identifier %x: convert it to 16-bit integers", chunk[24:40])
		}
	}
	switch {
	case h.format == wavInteger && (h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32):
	case h.format == wavFloat && (h.bits == 32 || h.bits == 64):
	case h.format == wavInteger || h.format == wavFloat:
		return fmt.Errorf("WAV of %d bits: 8, 16, 24 and 32-bit integers and 32 and 64-bit floats are supported", h.bits)
	default:
		return fmt.Errorf("WAV in format %d (A-law is 6, mu-law 7, ADPCM 2 or 17): convert it to 16-bit integers", h.format)
	}
	if block != h.Channels*h.bits/8 {
		return fmt.Errorf("WAV blocks of %d bytes for %d channels of %d bits", block, h.Channels, h.bits)
	}
	return h.Info.check()
}

// dataLength returns the length of the samples at an offset, or -1 if the program that wrote the
// header, perhaps to a pipe, did not know it: it is one of the lengths that stand for an unknown
// one and the file ends before, or it is 0 and the length of the file in the header is wrong too.
func dataLength(r io.ReaderAt, at, length, size int64) (int64, error) {
	switch {
	case slices.Contains([]int64{0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF}, length) && at+length > size:
		return -1, nil
	case length == 0 && at < size:
		var stated [4]byte
		if _, err := r.ReadAt(stated[:], 4); err != nil {
			return 0, err
		}
		// After RIFF and the length itself come that many bytes, and one that makes them even.
		if end := int64(binary.LittleEndian.Uint32(stated[:])) + 8; end != size && end+1 != size {
			return -1, nil
		}
	}
	return length, nil
}

// setUnknownData is setData for samples up to the end of the file, without a part of a block.
func (h *wavHeader) setUnknownData(at, size int64) error {
	block := max(int64(h.Channels*h.bits/8), 1)
	return h.setData(at, (size-at)/block*block, size)
}

func (h *wavHeader) setData(at, length, size int64) error {
	if h.bits == 0 {
		return errors.New("the WAV file has no format chunk before its data")
	}
	if at+length > size {
		return fmt.Errorf("the WAV file is truncated: %d of %d bytes of its data are present", size-at, length)
	}
	block := int64(h.Channels * h.bits / 8)
	if length%block != 0 {
		return fmt.Errorf("%d bytes of WAV data are not a multiple of the block size %d", length, block)
	}
	h.data, h.size, h.Frames = at, length, int(min(length/block, maxValues+1))
	return h.Info.check()
}

// decodeWAV returns the channels or their mean. It returns an error for values that are not finite.
func decodeWAV(data []byte, mean bool) (rate int, channels [][]float32, err error) {
	h, err := parseWAV(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, nil, err
	}
	raw := data[h.data : h.data+h.size]
	step := h.bits / 8
	decode := h.decoder()
	channels = make([][]float32, h.Channels)
	if mean {
		channels = channels[:1]
	}
	for c := range channels {
		channels[c] = make([]float32, h.Frames)
	}
	for i := range h.Frames {
		var sum float64
		for c := range h.Channels {
			v := decode(raw[(i*h.Channels+c)*step:])
			if sum += v; !mean {
				channels[c][i] = float32(v)
			}
		}
		if mean {
			channels[0][i] = float32(sum / float64(h.Channels))
		}
		for _, wave := range channels {
			if v := wave[i]; v-v != 0 { // a 64-bit float may also be too large for 32 bits
				return 0, nil, fmt.Errorf("value %d is %v", i, v)
			}
		}
	}
	return h.Rate, channels, nil
}

func (h wavHeader) decoder() func(b []byte) float64 {
	le := binary.LittleEndian
	switch {
	case h.format == wavFloat && h.bits == 32:
		return func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case h.format == wavFloat:
		return func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	case h.bits == 8:
		return func(b []byte) float64 { return (float64(b[0]) - 128) / 128 }
	case h.bits == 16:
		return func(b []byte) float64 { return float64(int16(le.Uint16(b))) / (1 << 15) }
	case h.bits == 24:
		return func(b []byte) float64 {
			return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)>>8) / (1 << 23)
		}
	}
	return func(b []byte) float64 { return float64(int32(le.Uint32(b))) / (1 << 31) }
}

// WriteWAV writes a clip as a WAV file of one channel of 32-bit floats. It returns an error for a
// clip above the 4 GiB that the format allows.
func WriteWAV(w io.Writer, c Clip) error {
	return writeWAV(w, c.Rate, wavFloat, 4, len(c.Wave), c.Wave)
}

// WriteWAV16 is WriteWAV with whole numbers of 16 bits. Values beyond -1 and 1 are clipped.
func WriteWAV16(w io.Writer, c Clip) error {
	values := make([]int16, len(c.Wave))
	for i, v := range c.Wave {
		values[i] = int16(math.Round(float64(min(1, max(-1, v)) * math.MaxInt16)))
	}
	return writeWAV(w, c.Rate, wavInteger, 2, len(values), values)
}

// writeWAV writes n values, a slice of numbers of the given format and number of bytes.
func writeWAV(w io.Writer, rate int, format uint16, bytesEach, n int, values any) error {
	const head = 44 // bytes before the values
	if n > (math.MaxUint32-head)/bytesEach {
		return fmt.Errorf("%d values are too many for a WAV file", n)
	}
	size := bytesEach * n
	var out bytes.Buffer
	for _, v := range []any{
		[]byte("RIFF"), uint32(head - 8 + size),
		// format; channels; rate; bytes per second, of a block; bits of a value
		[]byte("WAVEfmt "), uint32(16), format, uint16(1), uint32(rate),
		uint32(bytesEach * rate), uint16(bytesEach), uint16(8 * bytesEach),
		[]byte("data"), uint32(size), values,
	} {
		binary.Write(&out, binary.LittleEndian, v) // a Buffer gives no error
	}
	_, err := out.WriteTo(w)
	return err
}
