package transform

import (
	"math"

	"github.com/noether-ml/noether/tensor"
)

// Sampling says how an image is read between and beyond its pixels. The zero Sampling is bilinear with zeros outside,
// which is what torchvision does with fill=None.
type Sampling struct {
	Nearest bool // the nearest pixel in place of bilinear interpolation
	Outside Outside
	Fill    float64 // with Filled
}

// Outside says what lies beyond the border of an image.
type Outside int

const (
	// Zeros: the image goes on as zeros.
	Zeros Outside = iota
	// Filled: torchvision's fill. Where m is the part of the interpolation's weight that lies inside, and v what it
	// gives with zeros outside, the result is m v + (1 - m) Fill. (Inside and outside are both blended, and v has been
	// weighted by m before: at the border the result is darker than if the image went on as Fill. That is
	// torchvision's rule, and Fill = 0 differs in this from Zeros.)
	Filled
	// Reflection: the image goes on as its mirror image, the border pixel repeated: c b a | a b c | c b a.
	Reflection
)

// OnMaps is true: what resamples an image moves feature maps as well.
func (s Sampling) OnMaps() bool { return true }

// A tap is where one pixel of the result comes from: four places of a plane and their weights, and a constant. It is
// computed once and serves all channels.
type tap struct {
	at     [4]int32
	weight [4]float32
	bias   float32
}

// warp fills dst with src read at the places that m gives.
func (s Sampling) warp(dst, src tensor.Tensor, m matrix) {
	_, h, w := dims(dst, src)
	cx, cy := float64(w-1)/2, float64(h-1)/2
	resample(dst, src, func(taps []tap, i int) {
		y := float64(i) - cy
		x0, y0 := m.b*y+m.c+cx, m.e*y+m.f+cy // what does not change along the row
		for j := range taps {
			x := float64(j) - cx
			s.tap(&taps[j], m.a*x+x0, m.d*x+y0, h, w)
		}
	})
}

// resample fills dst row by row, with the taps that rowTaps computes for row i.
func resample(dst, src tensor.Tensor, rowTaps func(taps []tap, i int)) {
	c, h, w := dims(dst, src)
	taps := make([]tap, w)
	for i := range h {
		rowTaps(taps, i)
		for plane := range c {
			row := dst.Data[(plane*h+i)*w:][:w]
			gather(row, src.Data[plane*h*w:(plane+1)*h*w], taps)
		}
	}
}

func gather(row, plane []float32, taps []tap) {
	taps = taps[:len(row)]
	for j := range row {
		t := &taps[j]
		row[j] = t.weight[0]*plane[t.at[0]] + t.weight[1]*plane[t.at[1]] +
			t.weight[2]*plane[t.at[2]] + t.weight[3]*plane[t.at[3]] + t.bias
	}
}

// tap computes how an h x w plane is read at (x, y), in pixels from the centre of its first one.
func (s *Sampling) tap(t *tap, x, y float64, h, w int) {
	if s.Nearest || !(x >= 0 && x < float64(w-1) && y >= 0 && y < float64(h-1)) {
		s.border(t, x, y, h, w)
		return
	}
	ix, iy := int(x), int(y)
	fx, fy := float32(x-float64(ix)), float32(y-float64(iy))
	at := int32(iy*w + ix)
	t.at = [4]int32{at, at + 1, at + int32(w), at + int32(w) + 1}
	t.weight = [4]float32{(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy}
	t.bias = 0
}

// border is tap where not all four places need lie inside the plane.
func (s *Sampling) border(t *tap, x, y float64, h, w int) {
	if s.Outside == Reflection {
		x, y = mirror(x, w), mirror(y, h)
	}
	if s.Nearest {
		x, y = math.RoundToEven(x), math.RoundToEven(y)
	}
	*t = tap{}
	// Written so that NaN, from absurd parameters, is outside.
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
		t.at[k], t.weight[k] = int32(py*w+px), weight
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

// lerp is the weight of the lower (0) or upper (1) of two neighbours at fraction f between them.
func lerp(upper int, f float32) float32 {
	if upper == 1 {
		return f
	}
	return 1 - f
}

// mirror folds a coordinate beyond the outer edges of n pixels, -1/2 and n - 1/2, back between the centres of the first
// and the last.
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
