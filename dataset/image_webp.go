package dataset

import (
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
)

// A webpFrame is the first frame of an animated WebP file.
type webpFrame struct {
	still []byte          // a file of this frame alone
	place image.Rectangle // on the canvas
}

// firstWebPFrame returns the first frame of an animated file. ok is false for a file without
// animation.
func firstWebPFrame(data []byte) (frame webpFrame, ok bool, err error) {
	const header, animated = 30, 2 // bytes up to the end of the chunk VP8X, and its flag
	if len(data) < header || string(data[12:16]) != "VP8X" || data[20]&animated == 0 {
		return webpFrame{}, false, nil
	}
	le24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	for at := header; at+8 <= len(data); {
		size := int(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+8:]
		if size > len(body) {
			break
		}
		if body = body[:size]; string(data[at:at+4]) == "ANMF" && size > 16 {
			x, y, w, h := 2*le24(body), 2*le24(body[3:]), le24(body[6:])+1, le24(body[9:])+1
			still := append([]byte("RIFF\x00\x00\x00\x00WEBP"), data[12:header]...)
			still[20] &^= animated
			copy(still[24:], body[6:12]) // the size, as in VP8X
			still = append(still, body[16:]...)
			if string(body[16:20]) == "VP8L" { // the decoder reads it without VP8X only
				still = append([]byte("RIFF\x00\x00\x00\x00WEBP"), body[16:]...)
			}
			binary.LittleEndian.PutUint32(still[4:], uint32(len(still)-8))
			return webpFrame{still, image.Rect(x, y, x+w, y+h)}, true, nil
		}
		at += 8 + size + size%2
	}
	return webpFrame{}, true, errors.New("the animation has no whole frame")
}

// onCanvas returns a decoded frame on its canvas of the given size, which is black elsewhere.
func (f webpFrame) onCanvas(img image.Image, width, height int) (image.Image, error) {
	canvas := image.Rect(0, 0, width, height)
	switch {
	case img.Bounds().Size() != f.place.Size() || !f.place.In(canvas):
		return nil, errors.New("the first frame does not fit the canvas")
	case f.place == canvas:
		return img, nil
	}
	whole := image.NewNRGBA(canvas)
	draw.Draw(whole, canvas, image.NewUniform(color.Black), image.Point{}, draw.Src)
	pixels := from8Bit(img)
	for y := range pixels.h {
		for x := range pixels.w {
			p := pixels.pix[(y*pixels.w+x)*3:]
			whole.SetNRGBA(f.place.Min.X+x, f.place.Min.Y+y, color.NRGBA{p[0], p[1], p[2], 255})
		}
	}
	return whole, nil
}
