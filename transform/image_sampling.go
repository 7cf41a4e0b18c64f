package transform

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Sampling is about values between pixels and beyond the border; zero: bilinear, zeros outside,
// like torchvision with fill=None.
type Sampling struct {
	Nearest bool // nearest-neighbour instead of bilinear interpolation
	Outside Outside
	Fill    float64 // the value outside, for Filled; otherwise unused
}

// Outside selects the values beyond the border of an image.
type Outside int

const (
	// Zeros pads the image with 0.
	Zeros Outside = iota
	// Filled is torchvision's fill. The result is m v + (1 - m) Fill, m the weights inside and v
	// interpolated with zeros outside. v is already reduced at the border, so Fill = 0 is darker
	// than Zeros.
	Filled
	// Reflection pads the image with its mirror image, the border pixel twice: c b a | a b c | c b
	// a.
	Reflection
	// Wrapped repeats the image, so that a translation is a circular shift.
	Wrapped
)

// OnMaps is true: transformations that resample can be applied to feature maps too.
func (s Sampling) OnMaps() bool { return true }

// A stencil computes one pixel, of all channels: four pixels, weights and a constant.
type stencil struct {
	index  [4]int32
	weight [4]float32
	bias   float32 // the constant
}

func (s Sampling) warp(dst, src tensor.Tensor, m measure.Affine) {
	_, h, w := dims(dst, src)
	cx, cy := float64(w-1)/2, float64(h-1)/2
	resample(dst, src, func(row []stencil, i int) {
		y := float64(i) - cy
		x0, y0 := m.B*y+m.C+cx, m.E*y+m.F+cy // constant along the row
		for j := range row {
			x := float64(j) - cx
			s.set(&row[j], m.A*x+x0, m.D*x+y0, h, w)
		}
	})
}

// resample writes dst row by row. rowStencils computes the stencils of row i.
func resample(dst, src tensor.Tensor, rowStencils func(row []stencil, i int)) {
	c, h, w := dims(dst, src)
	stencils := make([]stencil, w)
	for i := range h {
		rowStencils(stencils, i)
		for plane := range c {
			row := dst.Data[(plane*h+i)*w:][:w]
			gather(row, src.Data[plane*h*w:(plane+1)*h*w], stencils)
		}
	}
}

func gather(row, plane []float32, stencils []stencil) {
	stencils = stencils[:len(row)]
	for j := range row {
		t := &stencils[j]
		row[j] = t.weight[0]*plane[t.index[0]] + t.weight[1]*plane[t.index[1]] +
			t.weight[2]*plane[t.index[2]] + t.weight[3]*plane[t.index[3]] + t.bias
	}
}

// set reads an h x w plane at (x, y), in pixels from the first one's centre.
func (s *Sampling) set(t *stencil, x, y float64, h, w int) {
	if s.Nearest || !(x >= 0 && x < float64(w-1) && y >= 0 && y < float64(h-1)) {
		s.setBorder(t, x, y, h, w)
		return
	}
	ix, iy := int(x), int(y)
	fx, fy := float32(x-float64(ix)), float32(y-float64(iy))
	at := int32(iy*w + ix)
	t.index = [4]int32{at, at + 1, at + int32(w), at + int32(w) + 1}
	t.weight = [4]float32{(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy}
	t.bias = 0
}

// setBorder is set for points whose four pixels may lie outside the plane.
func (s *Sampling) setBorder(t *stencil, x, y float64, h, w int) {
	switch s.Outside {
	case Reflection:
		x, y = mirror(x, w), mirror(y, h)
	case Wrapped:
		s.setWrapped(t, wrap(x, w), wrap(y, h), h, w)
		return
	}
	if s.Nearest {
		x, y = math.RoundToEven(x), math.RoundToEven(y)
	}
	*t = stencil{}
	// This condition makes NaN, which extreme parameters give, lie outside.
	if !(x > -1 && x < float64(w) && y > -1 && y < float64(h)) {
		if s.Outside == Filled {
			t.bias = float32(s.Fill)
		}
		return
	}
	ix, iy := int(x+1)-1, int(y+1)-1 // the floor, as x + 1 > 0
	fx, fy := float32(x-float64(ix)), float32(y-float64(iy))
	var inside float32
	for k := range 4 {
		dx, dy := k&1, k>>1
		px, py := ix+dx, iy+dy
		if uint(px) >= uint(w) || uint(py) >= uint(h) {
			continue
		}
		weight := lerp(dx, fx) * lerp(dy, fy)
		t.index[k], t.weight[k] = int32(py*w+px), weight
		inside += weight
	}
	if s.Outside != Filled {
		return
	}
	for k := range t.weight {
		t.weight[k] *= inside
	}
	t.bias = (1 - inside) * float32(s.Fill)
}

// setWrapped is for x in [0, w) and y in [0, h), the first pixel following the last.
func (s *Sampling) setWrapped(t *stencil, x, y float64, h, w int) {
	*t = stencil{}
	if math.IsNaN(x) || math.IsNaN(y) { // extreme parameters
		return
	}
	if s.Nearest {
		x, y = math.RoundToEven(x), math.RoundToEven(y)
	}
	ix, iy := int(x), int(y)
	fx, fy := float32(x-float64(ix)), float32(y-float64(iy))
	for k := range 4 {
		dx, dy := k&1, k>>1
		t.index[k] = int32((iy+dy)%h*w + (ix+dx)%w)
		t.weight[k] = lerp(dx, fx) * lerp(dy, fy)
	}
}

// wrap returns a coordinate modulo n, within [0, n).
func wrap(x float64, n int) float64 {
	x = math.Mod(x, float64(n))
	if x < 0 {
		x += float64(n)
	}
	if x >= float64(n) { // a tiny negative number has been rounded up
		return 0
	}
	return x
}

func lerp(upper int, f float32) float32 {
	if upper == 1 {
		return f
	}
	return 1 - f
}

// mirror reflects at -1/2 and n - 1/2, and clamps to the first and last centre.
func mirror(x float64, n int) float64 {
	last := float64(n) - 1
	if x < -0.5 || x > last+0.5 {
		period := 2 * float64(n)
		x = math.Mod(x+0.5, period)
		if x < 0 {
			x += period
		}
		if x > float64(n) {
			x = period - x
		}
		x -= 0.5
	}
	return min(max(x, 0), last)
}
