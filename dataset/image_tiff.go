package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"

	"golang.org/x/image/tiff"
)

// tiffVersion is increased when decodeTIFF is changed to return other pixels. It is part of the
// fingerprint of folders with TIFF files.
const tiffVersion = 2

// Tags of TIFF files.
const (
	tiffCompression  = 259
	tiffPhotometric  = 262
	tiffFillOrder    = 266
	tiffOrientation  = 274
	tiffPlanar       = 284
	tiffFaxOptions   = 292
	tiffBlackIsZero  = 1
	tiffFaxGroup3    = 3
	tiffFaxGroup4    = 4
	tiffTagsAtMost   = 4096
	tiffBytesOfEntry = 12
)

// decodeTIFF decodes a TIFF file, and returns an error for what package tiff passes over.
func decodeTIFF(data []byte) (image.Image, error) {
	tags := tiffTags(data)
	fax := tags[tiffCompression] == tiffFaxGroup3 || tags[tiffCompression] == tiffFaxGroup4
	switch {
	case tags[tiffFillOrder] > 1 && !fax:
		return nil, fmt.Errorf("bits in reverse order (fill order %d) are not supported without fax compression: convert it to PNG", tags[tiffFillOrder])
	case tags[tiffPlanar] > 1:
		return nil, fmt.Errorf("channels in separate planes (planar configuration %d) are not supported: convert it to PNG", tags[tiffPlanar])
	case tags[tiffCompression] == tiffFaxGroup3 && tags[tiffFaxOptions] != 0:
		return nil, fmt.Errorf("the options %d of its fax compression (group 3) are not supported: convert it to PNG", tags[tiffFaxOptions])
	}
	img, err := tiff.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if grey, ok := img.(*image.Gray); ok && fax && tags[tiffPhotometric] == tiffBlackIsZero {
		for i, v := range grey.Pix { // package tiff takes the white of a fax as 1
			grey.Pix[i] = 255 - v
		}
	}
	if o := tags[tiffOrientation]; o > 1 && o <= 8 {
		return turned{img, o}, nil
	}
	return img, nil
}

// tiffTags returns the first number of each tag of the first image, if it is in the tag itself.
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
		tag := int(order.Uint16(data[e:]))
		switch order.Uint16(data[e+2:]) { // the type
		case 3:
			tags[tag] = int(order.Uint16(data[e+8:]))
		case 4:
			tags[tag] = int(order.Uint32(data[e+8:]))
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
