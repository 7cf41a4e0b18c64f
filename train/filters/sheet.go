package filters

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// Sheet lays filters, c x h x w with 1 or 3 channels, side by side in rows of columns, each pixel drawn scale pixels wide. Each filter is
// normalised by itself: 0 is mid-grey, and its largest magnitude black or white.
func Sheet(filters []tensor.Tensor, columns, scale int) (image.Image, error) {
	if len(filters) == 0 || columns < 1 || scale < 1 {
		return nil, errors.New("a sheet has one filter or more, in columns of one pixel or more")
	}
	shape := filters[0].Shape
	if len(shape) != 3 || shape[0] != 1 && shape[0] != 3 {
		return nil, fmt.Errorf("filters on a sheet are 1 or 3 x h x w, not %v", shape)
	}
	const gap = 2
	h, w := shape[1]*scale, shape[2]*scale
	rows := (len(filters) + columns - 1) / columns
	columns = min(columns, len(filters))
	img := image.NewRGBA(image.Rect(0, 0, columns*(w+gap)+gap, rows*(h+gap)+gap))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for i, f := range filters {
		if !slices.Equal(f.Shape, shape) {
			return nil, fmt.Errorf("filters on a sheet have one shape; filter %d has %v, the first %v", i+1, f.Shape, shape)
		}
		draw(img, f, gap+i%columns*(w+gap), gap+i/columns*(h+gap), scale)
	}
	return img, nil
}

func draw(img *image.RGBA, f tensor.Tensor, left, top, scale int) {
	var most float64
	for _, v := range f.Data {
		most = max(most, math.Abs(float64(v)))
	}
	h, w := f.Shape[1], f.Shape[2]
	level := func(c, y, x int) uint8 {
		v := float64(f.Data[(min(c, f.Shape[0]-1)*h+y)*w+x])
		if most > 0 {
			v /= most
		}
		return uint8(math.Round(127.5 + 127.5*v))
	}
	for y := range h * scale {
		for x := range w * scale {
			i, j := y/scale, x/scale
			img.SetRGBA(left+x, top+y, color.RGBA{level(0, i, j), level(1, i, j), level(2, i, j), 255})
		}
	}
}
