package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// Flip mirrors an image: left to right or, with Vertical, top to bottom.
type Flip struct {
	Vertical bool
}

func (t Flip) Draw(*rand.Rand) Op     { return t }
func (t Flip) Random() bool           { return false }
func (t Flip) OnMaps() bool           { return true }
func (t Flip) Permutes(h, w int) bool { return true }

func (t Flip) Apply(dst, src tensor.Tensor) {
	_, h, w := dims(dst, src)
	if t.Vertical {
		strided{start: (h - 1) * w, down: -w, right: 1}.copyTo(dst, src)
		return
	}
	strided{start: w - 1, down: w, right: -1}.copyTo(dst, src)
}

// A strided is the order in which a permutation reads a plane: from start by right for each column
// and by down for each row.
type strided struct{ start, down, right int }

func (k strided) copyTo(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	for plane := range c {
		s, d := src.Data[plane*h*w:], dst.Data[plane*h*w:]
		for i := range h {
			row := d[i*w : (i+1)*w]
			at := k.start + i*k.down
			if k.right == 1 {
				copy(row, s[at:at+w])
				continue
			}
			for j := range row {
				row[j] = s[at]
				at += k.right
			}
		}
	}
}
