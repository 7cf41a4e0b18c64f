package dataset

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/tiff"
)

// tiffOf returns a TIFF file of tags, each with one short number, before 16 bytes and more.
func tiffOf(more int, tags ...[2]uint16) []byte {
	tags = append(tags, [][2]uint16{{273, 0}, {279, 8}}...)
	slices.SortFunc(tags, func(a, b [2]uint16) int { return int(a[0]) - int(b[0]) })
	le := binary.LittleEndian
	data := le.AppendUint16([]byte("II*\x00\x08\x00\x00\x00"), uint16(len(tags)))
	for _, tag := range tags {
		data = le.AppendUint32(le.AppendUint16(le.AppendUint16(data, tag[0]), 3), 1)
		data = le.AppendUint32(data, uint32(tag[1]))
	}
	return append(data, make([]byte, 16+more)...)
}

// TestTIFFRefused checks that forms of TIFF that the decoder would get wrong, or does not know, are
// errors of one line that name them.
func TestTIFFRefused(t *testing.T) {
	t.Parallel()
	for want, tags := range map[string][][2]uint16{
		"bits in reverse order (fill order 2)":                {{258, 1}, {259, 1}, {262, 1}, {266, 2}},
		"channels in separate planes (planar configuration 2": {{258, 8}, {259, 1}, {262, 1}, {284, 2}},
		"the options 1 of its fax compression (group 3)":      {{258, 1}, {259, 3}, {262, 0}, {292, 1}},
		"compression CCITT (modified Huffman) within TIFF":    {{258, 1}, {259, 2}, {262, 1}},
		"compression JPEG within TIFF is not supported":       {{258, 8}, {259, 7}, {262, 1}},
		"compression Zstandard within TIFF is not supported":  {{258, 8}, {259, 50000}, {262, 1}},
		"compression LZMA within TIFF is not supported":       {{258, 8}, {259, 34925}, {262, 1}},
		"compression JPEG 2000 within TIFF":                   {{258, 8}, {259, 34712}, {262, 1}},
		"TIFF of CMYK is not supported: convert it to PNG":    {{258, 8}, {259, 1}, {262, 5}, {277, 4}},
		"TIFF of YCbCr is not supported":                      {{258, 8}, {259, 1}, {262, 6}, {277, 3}},
		"TIFF of CIE L*a*b* is not supported":                 {{258, 8}, {259, 1}, {262, 8}, {277, 3}},
		"TIFF of grey with 1 more channels is not supported":  {{258, 8}, {259, 1}, {262, 1}, {277, 2}, {338, 2}},
		"TIFF of signed or floating-point values":             {{258, 32}, {259, 1}, {262, 1}, {339, 3}},
		"TIFF of 12 bits is not supported":                    {{258, 12}, {259, 1}, {262, 1}},
		"TIFF of grey of 16 bits whose white is 0":            {{258, 16}, {259, 1}, {262, 0}},
	} {
		if !slices.ContainsFunc(tags, func(t [2]uint16) bool { return t[0] == 277 }) {
			tags = append(tags, [2]uint16{277, 1})
		}
		data := tiffOf(0, append(tags, [][2]uint16{{256, 8}, {257, 1}}...)...)
		if strings.Contains(want, "grey with") { // two numbers of bits, as two channels have
			at := bytes.Index(data, []byte{2, 1, 3, 0, 1, 0, 0, 0, 8, 0})
			data[at+4], data[at+10] = 2, 8
		}
		if _, err := decodeImage(data); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "damaged") {
			t.Errorf("error %v, want one line with %q, and nothing of damage", err, want)
		}
	}
}

// TestTIFFMemory checks that a file of few bytes, one compressed strip of which may decompress to
// gigabytes, is refused before that, and the same image in small strips is not.
func TestTIFFMemory(t *testing.T) {
	t.Parallel()
	const side = 11_000
	tags := [][2]uint16{{256, side}, {257, side}, {258, 8}, {259, 8}, {262, 1}, {277, 1}}
	_, err := decodeImage(tiffOf(1<<14, tags...))
	if err == nil || !strings.Contains(err.Error(), "decoding may take 3872000000 bytes") {
		t.Errorf("one strip: error %v", err)
	}
	if err := checkTIFFMemory(tiffTags(tiffOf(1<<14, append(tags, [2]uint16{278, 64})...)), image.Config{Width: side, Height: side}); err != nil {
		t.Errorf("strips of 64 rows: %v", err)
	}
}

// TestTIFFOf16Bits checks that colours of 16 bits have their high bytes, as PIL reads them, and
// that grey values keep their 16 bits.
func TestTIFFOf16Bits(t *testing.T) {
	t.Parallel()
	colour := image.NewNRGBA64(image.Rect(0, 0, 2, 1))
	colour.SetNRGBA64(0, 0, color.NRGBA64{0x12FF, 0x3480, 0xFFFF, 0xFFFF})
	colour.SetNRGBA64(1, 0, color.NRGBA64{0x00FF, 0x0100, 0x7F80, 0x8000})
	grey := image.NewGray16(image.Rect(0, 0, 2, 1))
	grey.SetGray16(0, 0, color.Gray16{0x12FF})
	grey.SetGray16(1, 0, color.Gray16{0x3400})
	for name, c := range map[string]struct {
		image image.Image
		want  []float32
	}{
		"colour": {colour, []float32{0x12 / 255., 0, 0x34 / 255., 1 / 255., 1, 0x7F / 255.}},
		"grey":   {grey, []float32{0x12FF / 65535., 0x3400 / 65535.}},
	} {
		var b bytes.Buffer
		if err := tiff.Encode(&b, c.image, nil); err != nil {
			t.Fatal(err)
		}
		img, err := decodeImage(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (Frame{}).Image(img); err != nil || !slices.Equal(got.Data, c.want) {
			t.Errorf("%s: %v, error %v; want %v", name, got.Data, err, c.want)
		}
	}
}
