package invert

import (
	"image"
	"math"

	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/tensor"
)

// ContactSheet returns a contact sheet of the pairs x[i], y[i], on a grid that is about square.
// Both are n x c x h x w with values in [0, 1]. Small images are enlarged.
func ContactSheet(x, y tensor.Tensor) *image.NRGBA {
	n, h, w := x.Shape[0], x.Shape[2], x.Shape[3]
	const (
		enlargedSide = 96 // pixels that the shorter side of an enlarged image has at most
		gap          = 2  // pixels between the images of a pair
		margin       = 10 // pixels around each pair
	)
	zoom := contactsheet.Zoom(h, w, enlargedSide)
	tileW, tileH := 2*w*zoom+gap+margin, h*zoom+margin
	columns := max(1, min(n, int(math.Round(math.Sqrt(float64(n*tileH)/float64(tileW))))))
	rows := (n + columns - 1) / columns
	out := contactsheet.Blank(columns*tileW+margin, rows*tileH+margin)
	for i := range n {
		left, top := margin+i%columns*tileW, margin+i/columns*tileH
		contactsheet.Paint(out, left, top, zoom, x.At(i))
		contactsheet.Paint(out, left+w*zoom+gap, top, zoom, y.At(i))
	}
	return out
}
