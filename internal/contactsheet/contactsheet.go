// Package contactsheet lays images out side by side, for the eye.
package contactsheet

import (
	"image"
	"image/color"
	"image/draw"

	"github.com/noether-ml/noether/tensor"
)

// Blank is a white sheet.
func Blank(width, height int) *image.NRGBA {
	sheet := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(sheet, sheet.Bounds(), image.White, image.Point{}, draw.Src)
	return sheet
}

// Zoom is how many pixels wide a pixel of an h x w image is drawn, so that its shorter side takes at least so many.
func Zoom(h, w, least int) int { return max(1, least/max(1, min(h, w))) }

// Paint puts an image, c x h x w with values in [0, 1], at a place of the sheet, each of its pixels zoom pixels wide. With fewer than
// three channels the last serves for the colours that are missing.
func Paint(sheet *image.NRGBA, left, top, zoom int, p tensor.Tensor) {
	c, h, w := p.Shape[0], p.Shape[1], p.Shape[2]
	level := func(channel, y, x int) uint8 {
		v := p.Data[(min(channel, c-1)*h+y)*w+x]
		return uint8(min(max(v, 0), 1)*255 + 0.5)
	}
	for y := range h * zoom {
		for x := range w * zoom {
			sy, sx := y/zoom, x/zoom
			sheet.SetNRGBA(left+x, top+y, color.NRGBA{level(0, sy, sx), level(1, sy, sx), level(2, sy, sx), 255})
		}
	}
}
