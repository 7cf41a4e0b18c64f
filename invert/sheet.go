package invert

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// Sheet lays pictures out for the eye: each of x beside its partner of y, as many pairs side by side as make the whole about
// square. Both are n x c x h x w with values in [0, 1]; small pictures are enlarged, pixel by pixel.
func Sheet(x, y tensor.Tensor) *image.NRGBA {
	n, h, w := x.Shape[0], x.Shape[2], x.Shape[3]
	const (
		least = 96 // pixels that a side should have
		gap   = 2
		space = 10 // between pairs
	)
	zoom := max(1, least/max(1, min(h, w)))
	tileW, tileH := 2*w*zoom+gap+space, h*zoom+space
	columns := max(1, min(n, int(math.Round(math.Sqrt(float64(n*tileH)/float64(tileW))))))
	rows := (n + columns - 1) / columns
	sheet := image.NewNRGBA(image.Rect(0, 0, columns*tileW+space, rows*tileH+space))
	draw.Draw(sheet, sheet.Bounds(), image.White, image.Point{}, draw.Src)
	for i := range n {
		left, top := space+i%columns*tileW, space+i/columns*tileH
		paint(sheet, left, top, zoom, x.At(i))
		paint(sheet, left+w*zoom+gap, top, zoom, y.At(i))
	}
	return sheet
}

// paint puts a picture, c x h x w, at a place of the sheet.
func paint(sheet *image.NRGBA, left, top, zoom int, p tensor.Tensor) {
	c, h, w := p.Shape[0], p.Shape[1], p.Shape[2]
	at := func(channel, y, x int) uint8 {
		v := p.Data[(min(channel, c-1)*h+y)*w+x]
		return uint8(min(max(v, 0), 1)*255 + 0.5)
	}
	for y := range h * zoom {
		for x := range w * zoom {
			sy, sx := y/zoom, x/zoom
			sheet.SetNRGBA(left+x, top+y, color.NRGBA{at(0, sy, sx), at(1, sy, sx), at(2, sy, sx), 255})
		}
	}
}
