// Package contactsheet draws several images side by side on one sheet.
package contactsheet

import (
	"image"
	"image/color"
	"image/draw"

	"github.com/noether-ml/noether/tensor"
)

// Blank returns a white sheet.
func Blank(width, height int) *image.NRGBA {
	sheet := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(sheet, sheet.Bounds(), image.White, image.Point{}, draw.Src)
	return sheet
}

// Zoom returns the largest integer factor by which an h x w image can be enlarged if its shorter
// side may then have at most side pixels. It is 1 for images that are larger already.
func Zoom(h, w, side int) int { return max(1, side/max(1, min(h, w))) }

// Paint draws an image, c x h x w with values in [0, 1], enlarged by zoom, with its upper left
// corner at (left, top), in pixels of the sheet. With fewer than three channels, the last is
// repeated for the missing colours; channels after the third are not drawn.
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
