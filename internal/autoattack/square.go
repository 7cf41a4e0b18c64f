package autoattack

import (
	"math"

	"github.com/noether-ml/noether/internal/ball"
)

const (
	queries        = 5000
	queriesPerPart = 100
	firstShare     = 0.8 // part of the image that the first squares cover
)

// square changes squares of the best image so far at random places, and keeps a change that reduces
// the margin. A query that is not finite is not kept.
func (s *search) square(part int) error {
	first, next := s.stripes, s.changeSquareLinf
	if s.Ball.Norm == ball.L2 {
		first, next = s.tiles, s.changeSquareL2
	}
	if part == 0 {
		start := first()
		s.state.Margin = math.Inf(1)
		if err := s.try(start); err != nil {
			return err
		}
		s.state.Image = start
	}
	for i := part * queriesPerPart; i < (part+1)*queriesPerPart; i++ {
		if err := s.try(next(i)); err != nil {
			return err
		}
	}
	return nil
}

// try keeps x as the best image if its margin is smaller.
func (s *search) try(x []float32) error {
	z, err := s.network.Scores(x)
	switch {
	case err != nil:
		return err
	case !finite(z):
		s.result.NonFinite = true
	case s.broken(z):
		return errBroken
	case s.margin(z) < s.state.Margin:
		s.state.Image, s.state.Margin = x, s.margin(z)
	}
	return nil
}

// side returns the side of the squares of a query: the root of a part of the image that is halved
// after 10, 50, 200, 500, 1000, 2000 and 4000 queries.
func (s *search) side(query int) int {
	share := firstShare
	for _, limit := range []int{10, 50, 200, 500, 1000, 2000, 4000} {
		if query > limit {
			share /= 2
		}
	}
	return int(math.RoundToEven(math.Sqrt(share * float64(s.Shape[1]*s.Shape[2]))))
}

// randomSign returns 1 or -1.
func (s *search) randomSign() float32 { return float32(2*s.draw.IntN(2) - 1) }

// corner draws the first row and column of a square. As in the authors' code it is never the last
// possible one.
func (s *search) corner(side int) (row, column int) {
	return s.draw.IntN(max(1, s.Shape[1]-side)), s.draw.IntN(max(1, s.Shape[2]-side))
}

// window calls f with the indices of the pixels of a channel in a square.
func (s *search) window(channel, row, column, side int, f func(at, i, j int)) {
	h, w := s.Shape[1], s.Shape[2]
	for i := range side {
		for j := range side {
			f((channel*h+row+i)*w+column+j, i, j)
		}
	}
}

// stripes changes each column of each channel by the radius, up or down.
func (s *search) stripes() []float32 {
	x := append([]float32{}, s.Image...)
	c, h, w := s.Shape[0], s.Shape[1], s.Shape[2]
	radius := float32(s.Ball.Radius)
	for channel := range c {
		for column := range w {
			change := radius * s.randomSign()
			for row := range h {
				at := (channel*h+row)*w + column
				x[at] = clip(x[at] + change)
			}
		}
	}
	return x
}

// changeSquareLinf moves each channel of a square of the best image by twice the radius, up or
// down, within the ball.
func (s *search) changeSquareLinf(query int) []float32 {
	side := min(max(s.side(query), 1), s.Shape[1], s.Shape[2])
	row, column := s.corner(side)
	x := append([]float32{}, s.state.Image...)
	radius := float32(s.Ball.Radius)
	for channel := range s.Shape[0] {
		change := 2 * radius * s.randomSign()
		s.window(channel, row, column, side, func(at, _, _ int) {
			v := s.Image[at]
			x[at] = clip(min(max(x[at]+change, v-radius), v+radius))
		})
	}
	return x
}

// tiles covers the image by bumps (see bump), five from top to bottom, with random signs for each
// channel, and scales them to the radius.
func (s *search) tiles() []float32 {
	c, h, w := s.Shape[0], s.Shape[1], s.Shape[2]
	delta := make([]float32, len(s.Image))
	size := min(h, w)
	side := max(1, size/5)
	margin := max(0, size-5*side) / 2
	for row := margin; row+side <= h; row += side {
		for column := margin; column+side <= w; column += side {
			b := s.bump(side)
			for channel := range c {
				sign := s.randomSign()
				s.window(channel, row, column, side, func(at, i, j int) { delta[at] += sign * b[i*side+j] })
			}
		}
	}
	return s.moved(delta)
}

// moved returns the image moved by delta, which is scaled to the radius, and clipped.
func (s *search) moved(delta []float32) []float32 {
	x := make([]float32, len(delta))
	scale := float32(s.Ball.Radius / (norm2(delta) + tiny))
	for i, v := range s.Image {
		x[i] = clip(v + float32(delta[i]*scale))
	}
	return x
}

// changeSquareL2 takes the change of one square of the best image away, and gives what this frees
// of the radius, and what was left, to another square: in each channel a bump with a random sign is
// added to the direction of its change.
func (s *search) changeSquareL2(query int) []float32 {
	side := max(s.side(query), 3)
	side = min(side+1-side%2, s.Shape[1], s.Shape[2])
	row, column := s.corner(side)
	fromRow, fromColumn := s.corner(side)
	delta := make([]float32, len(s.Image))
	for i, v := range s.state.Image {
		delta[i] = v - s.Image[i]
	}
	length := norm2(delta)
	left := max(s.Ball.Radius*s.Ball.Radius-length*length, 0) / float64(s.Shape[0])
	b := s.bump(side)
	for channel := range s.Shape[0] {
		freed, own := 0.0, 0.0 // squared norms, in the union of the squares and in the new one
		s.window(channel, fromRow, fromColumn, side, func(at, _, _ int) {
			freed += float64(delta[at]) * float64(delta[at])
		})
		s.window(channel, row, column, side, func(at, i, j int) {
			square := float64(delta[at]) * float64(delta[at])
			own += square
			if i+row < fromRow || i+row >= fromRow+side || j+column < fromColumn || j+column >= fromColumn+side {
				freed += square
			}
		})
		sign, unit := s.randomSign(), float32(1/(tiny+math.Sqrt(own)))
		next := make([]float32, side*side)
		s.window(channel, row, column, side, func(at, i, j int) {
			next[i*side+j] = sign*b[i*side+j] + float32(delta[at]*unit)
		})
		scale := float32(math.Sqrt(left+freed) / (tiny + norm2(next)))
		s.window(channel, fromRow, fromColumn, side, func(at, _, _ int) { delta[at] = 0 })
		s.window(channel, row, column, side, func(at, i, j int) { delta[at] = next[i*side+j] * scale })
	}
	return s.moved(delta)
}

// bump returns side x side values of norm 1: a positive bump in the first half of the rows, and a
// negative one in the second. With a probability of 1/2 rows and columns change places.
func (s *search) bump(side int) []float32 {
	b := make([]float64, side*side)
	half := side / 2
	fillBump(b[:half*side], half, side, 1)
	fillBump(b[half*side:], side-half, side, -1)
	transposed := s.draw.IntN(2) == 1
	out := make([]float32, len(b))
	for i := range side {
		for j := range side {
			at := i*side + j
			if transposed {
				at = j*side + i
			}
			out[at] = float32(b[i*side+j] / math.Sqrt2)
		}
	}
	if half == 0 { // a single bump
		out[0] = -1
	}
	return out
}

// fillBump writes rows x columns values of norm 1 that decrease from the middle:
//
//	sum over k from m to K of 1 / (k + 1)^2,
//
// where m is the distance from the middle, in the maximum norm, and K the largest one.
func fillBump(b []float64, rows, columns int, sign float64) {
	if rows == 0 {
		return
	}
	far := max(rows, columns) / 2
	sums := make([]float64, far+2) // from m to far
	for k := far; k >= 0; k-- {
		sums[k] = sums[k+1] + 1/float64((k+1)*(k+1))
	}
	total := 0.0
	for i := range rows {
		for j := range columns {
			v := sums[max(max(i-rows/2, rows/2-i), max(j-columns/2, columns/2-j))]
			b[i*columns+j] = v
			total += v * v
		}
	}
	for i := range b {
		b[i] *= sign / math.Sqrt(total)
	}
}
