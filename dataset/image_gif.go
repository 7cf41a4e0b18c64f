package dataset

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/gif"
)

// gifVersion is increased when decodeGIF is changed to return other pixels. It is part of the
// fingerprint of folders with GIF files.
const gifVersion = 2

// decodeGIF decodes the first frame of a GIF file, as PIL does in RGB: pixels that are transparent
// have the colour of the palette, and those of the canvas outside the frame that of the transparent
// index, or else of index 0.
func decodeGIF(data []byte) (image.Image, error) {
	frame, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	part, ok := frame.(*image.Paletted)
	if !ok {
		return nil, errors.New("the frame has no palette")
	}
	h, err := parseGIF(data)
	if err != nil {
		return nil, err
	}
	whole := image.NewPaletted(image.Rect(0, 0, h.width, h.height), h.palette)
	if h.transparent > 0 {
		for i := range whole.Pix {
			whole.Pix[i] = h.transparent
		}
	}
	for y := part.Rect.Min.Y; y < part.Rect.Max.Y; y++ {
		n := part.Rect.Dx()
		copy(whole.Pix[whole.PixOffset(part.Rect.Min.X, y):][:n], part.Pix[part.PixOffset(part.Rect.Min.X, y):][:n])
	}
	return whole, nil
}

// A gifHeader is what stands before the pixels of the first frame.
type gifHeader struct {
	width, height int // of the canvas
	transparent   uint8
	palette       color.Palette // opaque
}

// parseGIF reads the header of a file that package gif decodes.
func parseGIF(data []byte) (h gifHeader, err error) {
	defer func() {
		if recover() != nil { // an index beyond the data
			err = errors.New("the file ends before its pixels")
		}
	}()
	le16 := func(at int) int { return int(data[at]) | int(data[at+1])<<8 }
	h.width, h.height = le16(6), le16(8)
	at := 13
	palette := func(flags byte) {
		if flags&0x80 == 0 {
			return
		}
		h.palette = nil
		for range 1 << (flags&7 + 1) {
			h.palette = append(h.palette, color.RGBA{data[at], data[at+1], data[at+2], 255})
			at += 3
		}
	}
	palette(data[10])
	for data[at] == '!' { // extensions: a label and blocks, which start with their length
		if data[at+1] == 0xF9 && data[at+3]&1 != 0 { // the graphic control extension
			h.transparent = data[at+6]
		}
		for at += 2; data[at] != 0; {
			at += 1 + int(data[at])
		}
		at++
	}
	flags := data[at+9] // of the image descriptor
	at += 10
	palette(flags)
	for len(h.palette) < 256 { // indices beyond the palette, as the transparent one may be
		h.palette = append(h.palette, color.RGBA{A: 255})
	}
	return h, nil
}
