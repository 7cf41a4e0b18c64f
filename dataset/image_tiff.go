package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"

	"golang.org/x/image/tiff"
)

// tiffVersion is increased when decodeTIFF is changed to return other pixels. It is part of the
// fingerprint of folders with TIFF files.
const tiffVersion = 3

// Tags of TIFF files, and some of their values.
const (
	tiffBits         = 258
	tiffCompression  = 259
	tiffPhotometric  = 262
	tiffFillOrder    = 266
	tiffOrientation  = 274
	tiffSamples      = 277
	tiffRowsPerStrip = 278
	tiffPlanar       = 284
	tiffFaxOptions   = 292
	tiffTileWidth    = 322
	tiffTileHeight   = 323
	tiffFormat       = 339 // of the samples: 3 for floats
	tiffWhiteIsZero  = 0
	tiffBlackIsZero  = 1
	tiffFaxGroup3    = 3
	tiffFaxGroup4    = 4
	tiffTagsAtMost   = 4096
	tiffBytesOfEntry = 12
)

// maxTIFF bounds the memory in bytes for the image and the decompressed data of a part of it.
const maxTIFF = 5 << 29

// checkTIFFMemory returns an error if decoding takes more than maxTIFF. A part of the image, a
// strip or a tile, is decompressed whole: package tiff accepts eight bytes for each of its pixels,
// in a slice that grows and takes up to three times that.
func checkTIFFMemory(tags map[int]int, c image.Config) error {
	const perPixel, perPixelOfPart = 8, 24
	part := c.Width * c.Height
	switch {
	case tags[tiffTileWidth] > 0 && tags[tiffTileHeight] > 0:
		part = min(part, tags[tiffTileWidth]*tags[tiffTileHeight])
	case tags[tiffRowsPerStrip] > 0:
		part = c.Width * min(c.Height, tags[tiffRowsPerStrip])
	}
	if need := perPixel*c.Width*c.Height + perPixelOfPart*part; tags[tiffCompression] > 1 && need > maxTIFF {
		return fmt.Errorf("decoding may take %d bytes, the limit is %d: save it in smaller strips or tiles, or as PNG", need, maxTIFF)
	}
	return nil
}

// refusedTIFF returns an error that names a form of TIFF that package tiff does not read, nil for
// other data.
func refusedTIFF(data []byte) error {
	if !bytes.HasPrefix(data, []byte("II*\x00")) && !bytes.HasPrefix(data, []byte("MM\x00*")) {
		return nil
	}
	tags := tiffTags(data)
	form := ""
	switch tags[tiffPhotometric] {
	case 5:
		form = "CMYK"
	case 6:
		form = "YCbCr"
	case 8, 9:
		form = "CIE L*a*b*"
	case 2:
		if n := tags[tiffSamples]; n > 4 {
			form = fmt.Sprintf("%d channels", n)
		}
	case 0, 1:
		if n := tags[tiffSamples]; n > 1 {
			form = fmt.Sprintf("grey with %d more channels", n-1)
		} else if bits := tags[tiffBits]; bits > 1 {
			form = fmt.Sprintf("%d bits", bits)
		}
	}
	if tags[tiffFormat] > 1 {
		form = "signed or floating-point values"
	}
	if form == "" {
		return nil
	}
	return fmt.Errorf("TIFF of %s is not supported: convert it to PNG", form)
}

// tiffCompressions are the names of compressions that are not read.
var tiffCompressions = map[int]string{
	2: "CCITT (modified Huffman)", 6: "JPEG", 7: "JPEG", 9: "JBIG", 10: "JBIG", 33003: "JPEG 2000", 33005: "JPEG 2000", 34712: "JPEG 2000", 34887: "LERC", 34925: "LZMA",
	50000: "Zstandard", 50001: "WebP", 50002: "JPEG XL", 52546: "JPEG XL",
}

// isFax reports whether an image has a compression of fax.
func isFax(tags map[int]int) bool {
	return tags[tiffCompression] == tiffFaxGroup3 || tags[tiffCompression] == tiffFaxGroup4
}

// checkTIFF returns an error for what package tiff passes over, or reads otherwise than PIL.
func checkTIFF(tags map[int]int, c image.Config) error {
	switch {
	case tags[tiffFillOrder] > 1 && !isFax(tags):
		return fmt.Errorf("bits in reverse order (fill order %d) are not supported without fax compression: convert it to PNG", tags[tiffFillOrder])
	case tags[tiffPlanar] > 1:
		return fmt.Errorf("channels in separate planes (planar configuration %d) are not supported: convert it to PNG", tags[tiffPlanar])
	case tags[tiffCompression] == tiffFaxGroup3 && tags[tiffFaxOptions] != 0:
		return fmt.Errorf("the options %d of its fax compression (group 3) are not supported: convert it to PNG", tags[tiffFaxOptions])
	case tiffCompressions[tags[tiffCompression]] != "":
		return fmt.Errorf("compression %s within TIFF is not supported: convert it to PNG", tiffCompressions[tags[tiffCompression]])
	case tags[tiffBits] == 16 && tags[tiffSamples] <= 1 && tags[tiffPhotometric] == tiffWhiteIsZero:
		return errors.New("TIFF of grey of 16 bits whose white is 0 is not supported, since programs differ about it: convert it to PNG")
	}
	return checkTIFFMemory(tags, c)
}

// decodeTIFF decodes a TIFF file that checkTIFF accepts. As PIL, it gives colours 8 bits.
func decodeTIFF(data []byte, tags map[int]int) (image.Image, error) {
	img, err := tiff.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if grey, ok := img.(*image.Gray); ok && isFax(tags) && tags[tiffPhotometric] == tiffBlackIsZero {
		for i, v := range grey.Pix { // package tiff takes the white of a fax as 1
			grey.Pix[i] = 255 - v
		}
	}
	img = eightBits(img)
	if o := tags[tiffOrientation]; o > 1 && o <= 8 {
		return turned{img, o}, nil
	}
	return img, nil
}

// eightBits returns the high bytes of an image of colours of 16 bits, and other images as they are.
func eightBits(img image.Image) image.Image {
	var pix []uint8 // big-endian
	premultiplied := false
	switch img := img.(type) {
	case *image.NRGBA64:
		pix = img.Pix
	case *image.RGBA64:
		pix, premultiplied = img.Pix, true
	default:
		return img
	}
	high := make([]uint8, len(pix)/2)
	for i := range high {
		high[i] = pix[2*i]
	}
	if premultiplied {
		return &image.RGBA{Pix: high, Stride: 4 * img.Bounds().Dx(), Rect: img.Bounds()}
	}
	return &image.NRGBA{Pix: high, Stride: 4 * img.Bounds().Dx(), Rect: img.Bounds()}
}

// tiffTags returns the first number of each tag of the first image that has short numbers, or one
// long one.
func tiffTags(data []byte) map[int]int {
	tags := map[int]int{}
	if len(data) < 8 {
		return tags
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return tags
	}
	n := min(int(order.Uint16(data[at:])), tiffTagsAtMost)
	for e := at + 2; n > 0 && e+tiffBytesOfEntry <= int64(len(data)); e, n = e+tiffBytesOfEntry, n-1 {
		tag, count := int(order.Uint16(data[e:])), order.Uint32(data[e+4:])
		switch kind := order.Uint16(data[e+2:]); {
		case kind == 3 && count <= 2:
			tags[tag] = int(order.Uint16(data[e+8:]))
		case kind == 4 && count == 1:
			tags[tag] = int(order.Uint32(data[e+8:]))
		case kind == 3: // elsewhere in the file
			if at := int64(order.Uint32(data[e+8:])); at+2 <= int64(len(data)) {
				tags[tag] = int(order.Uint16(data[at:]))
			}
		}
	}
	return tags
}

// A turned image is shown in one of the orientations 2 to 8 of TIFF and Exif.
type turned struct {
	image.Image
	orientation int
}

// Bounds returns the size as the image is shown. From orientation 5 on, rows become columns.
func (t turned) Bounds() image.Rectangle {
	b := t.Image.Bounds()
	if t.orientation >= 5 {
		return image.Rect(0, 0, b.Dy(), b.Dx())
	}
	return image.Rect(0, 0, b.Dx(), b.Dy())
}

// At returns a pixel of the image as it is shown.
func (t turned) At(x, y int) color.Color {
	b := t.Image.Bounds()
	if t.orientation >= 5 {
		x, y = y, x
	}
	switch t.orientation {
	case 2, 3, 7, 8:
		x = b.Dx() - 1 - x
	}
	switch t.orientation {
	case 3, 4, 6, 7:
		y = b.Dy() - 1 - y
	}
	return t.Image.At(b.Min.X+x, b.Min.Y+y)
}
