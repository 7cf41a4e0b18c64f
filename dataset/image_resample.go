package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/chroma"
)

// A filter is a resampling kernel. Its unit of length is one pixel of the source, or, if the image
// shrinks, one pixel of the result: it then covers several source pixels.
type filter struct {
	support float64 // the weight is 0 farther from the centre; 0: nearest neighbour
	weight  func(x float64) float64
}

// filterOf returns the kernels of PIL: Image.BILINEAR, Image.BICUBIC (a = -0.5), Image.LANCZOS (a =
// 3) and Image.NEAREST.
func filterOf(name string) (filter, error) {
	switch name {
	case "", "bilinear":
		return filter{1, func(x float64) float64 { return max(0, 1-math.Abs(x)) }}, nil
	case "bicubic":
		return filter{2, cubic}, nil
	case "lanczos":
		return filter{3, lanczos}, nil
	case "nearest":
		return filter{}, nil
	}
	return filter{}, fmt.Errorf("frame: unknown interpolation %q: use bilinear, bicubic, lanczos or nearest", name)
}

// cubic is the cubic convolution kernel of Keys (1981) with its parameter a = -0.5.
func cubic(x float64) float64 {
	const a = -0.5
	x = math.Abs(x)
	switch {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}

// lanczos is the sinc function, windowed by its middle lobe over a width of 3.
func lanczos(x float64) float64 {
	const a = 3
	if x == 0 {
		return 1
	}
	if math.Abs(x) >= a {
		return 0
	}
	x *= math.Pi
	return a * math.Sin(x) * math.Sin(x/a) / (x * x)
}

// taps are the weights of the source pixels of one output pixel. In this file T is the type of a
// pixel's channels and A that of weights and sums: int32 in fixed point if T is uint8, otherwise
// float32.
type taps[A int32 | float32] struct {
	first   int // index of the first source pixel
	weights []A
}

// A span is a range of rows or columns: lo to hi - 1.
type span struct{ lo, hi int }

// tapsFor returns the taps of a range of output pixels on a side that is resized from in to out
// pixels, as PIL's Resample.c computes them. Integer weights are in units of 2^-fractionBits.
func tapsFor[A int32 | float32](in, out int, outputs span, f filter) []taps[A] {
	scale := float64(in) / float64(out)
	stretch := max(scale, 1)
	support := f.support * stretch
	result := make([]taps[A], 0, outputs.hi-outputs.lo)
	for x := outputs.lo; x < outputs.hi; x++ {
		mid := (float64(x) + 0.5) * scale
		first, last := max(0, int(mid-support+0.5)), min(in, int(mid+support+0.5))
		w := make([]float64, last-first)
		sum := 0.0
		for i := range w {
			w[i] = f.weight((float64(i+first) - mid + 0.5) / stretch)
			sum += w[i]
		}
		t := taps[A]{first: first, weights: make([]A, len(w))}
		for i := range w {
			t.weights[i] = quantise[A](w[i] / sum)
		}
		result = append(result, t)
	}
	return result
}

// fractionBits is the number of fractional bits of an integer weight, PIL's PRECISION_BITS. Of the
// 32 bits of a sum, 8 are for the value of a pixel, one is for sums above 255, and one is the sign.
const fractionBits = 32 - 8 - 2

// quantise converts a weight to type A. Integers are rounded in fixed point.
func quantise[A int32 | float32](w float64) A {
	var a A
	if _, fixed := any(a).(int32); fixed {
		return A(math.Trunc(w*(1<<fractionBits) + math.Copysign(0.5, w)))
	}
	return A(w)
}

// nearest returns the index of the nearest source pixel for each output pixel of a range.
// Coordinates are accumulated as in PIL, so that they round the same way.
func nearest(in, out int, outputs span) []int {
	scale := float64(in) / float64(out)
	pixels := make([]int, 0, outputs.hi-outputs.lo)
	position := scale * 0.5
	for x := range outputs.hi {
		if x >= outputs.lo {
			pixels = append(pixels, min(int(position), in-1))
		}
		position += scale
	}
	return pixels
}

// A rounding converts a row of weighted sums to pixels.
type rounding[T uint8 | float32, A int32 | float32] func(dst []T, sums []A)

// round8 converts sums of fixed-point products to 8 bits.
func round8(dst []uint8, sums []int32) {
	for i, s := range sums {
		dst[i] = chroma.Clamp((s + 1<<(fractionBits-1)) >> fractionBits)
	}
}

// keepFloat copies the sums of float32 images.
func keepFloat(dst, sums []float32) { copy(dst, sums) }

// resample resizes an image, given as strips of rows, and returns its part inside the window (the
// crop of the resized image). It changes the width before the height, each only if it differs, and
// computes only the pixels inside the window. It reads all strips.
func resample[T uint8 | float32, A int32 | float32](r strips[T], win window, f filter, round rounding[T, A]) (interleaved[T], error) {
	rows := span{max(0, win.top), min(win.resizedH, win.top+win.height)}
	cols := span{max(0, win.left), min(win.resizedW, win.left+win.width)}
	if f.support == 0 || (win.resizedW == r.w && win.resizedH == r.h) {
		ys, xs := nearest(r.h, win.resizedH, rows), nearest(r.w, win.resizedW, cols)
		return joinStrips(r, len(xs), func(part interleaved[T], at int) interleaved[T] {
			from, _ := slices.BinarySearch(ys, at)
			to, _ := slices.BinarySearch(ys, at+part.h)
			return selectPixels(part, at, ys[from:to], xs)
		})
	}
	var vertical []taps[A]
	read := rows
	if win.resizedH != r.h {
		vertical = tapsFor[A](r.h, win.resizedH, rows, f)
		last := vertical[len(vertical)-1]
		read = span{vertical[0].first, last.first + len(last.weights)}
	}
	var horizontal []taps[A]
	if win.resizedW != r.w {
		horizontal = tapsFor[A](r.w, win.resizedW, cols, f)
	}
	narrow, err := joinStrips(r, cols.hi-cols.lo, func(part interleaved[T], at int) interleaved[T] {
		needed := span{min(max(read.lo-at, 0), part.h), min(max(read.hi-at, 0), part.h)}
		return resampleRows(part, needed, cols, horizontal, round)
	})
	if err != nil || vertical == nil {
		return narrow, err
	}
	return resampleColumns(narrow, read.lo, vertical, round), nil
}

// joinStrips calls f with each strip and the index of its first row, and returns the rows of the
// results, which have the given width, as one image.
func joinStrips[T uint8 | float32](r strips[T], width int, f func(part interleaved[T], first int) interleaved[T]) (interleaved[T], error) {
	out := interleaved[T]{w: width, c: r.c}
	first := 0
	for part, err := range r.rows {
		if err != nil {
			return out, err
		}
		rows := f(part, first)
		first += part.h
		out.h += rows.h
		if out.pix == nil && first == r.h {
			return rows, nil // the image is one strip
		}
		out.pix = append(out.pix, rows.pix...)
	}
	return out, nil
}

// selectPixels returns the given rows and columns of an image. r is a strip of it: row 0 of r is
// row first of the image.
func selectPixels[T uint8 | float32](r interleaved[T], first int, rows, cols []int) interleaved[T] {
	out := newInterleaved[T](len(rows), len(cols), r.c)
	at := 0
	for _, y := range rows {
		row := r.pix[(y-first)*r.w*r.c:]
		for _, x := range cols {
			at += copy(out.pix[at:at+r.c], row[x*r.c:])
		}
	}
	return out
}

// resampleRows changes the width of the given rows of r and returns the given columns of the
// result. horizontal holds the taps of these columns; nil: the width stays.
func resampleRows[T uint8 | float32, A int32 | float32](r interleaved[T], rows, cols span, horizontal []taps[A], round rounding[T, A]) interleaved[T] {
	out := newInterleaved[T](rows.hi-rows.lo, cols.hi-cols.lo, r.c)
	if horizontal == nil {
		for y := range out.h {
			copy(out.pix[y*out.w*r.c:(y+1)*out.w*r.c], r.pix[((y+rows.lo)*r.w+cols.lo)*r.c:])
		}
		return out
	}
	sums := make([]A, out.w*r.c)
	for y := range out.h {
		row := r.pix[(y+rows.lo)*r.w*r.c:][:r.w*r.c]
		if r.c == 3 {
			row3Channels(sums, row, horizontal)
		} else {
			rowAnyChannels(sums, row, horizontal, r.c)
		}
		round(out.pix[y*out.w*r.c:(y+1)*out.w*r.c], sums)
	}
	return out
}

// row3Channels computes the weighted sums of a row of 3 channels. all[x] are the taps of output
// pixel x.
func row3Channels[T uint8 | float32, A int32 | float32](sums []A, row []T, all []taps[A]) {
	for x, t := range all {
		var a, b, c A
		px := row[t.first*3:]
		for i, w := range t.weights {
			p := px[i*3 : i*3+3 : i*3+3]
			a += A(p[0]) * w
			b += A(p[1]) * w
			c += A(p[2]) * w
		}
		sums[x*3], sums[x*3+1], sums[x*3+2] = a, b, c
	}
}

// rowAnyChannels is row3Channels for any number of channels.
func rowAnyChannels[T uint8 | float32, A int32 | float32](sums []A, row []T, all []taps[A], channels int) {
	for x, t := range all {
		for c := range channels {
			var s A
			for i, w := range t.weights {
				s += A(row[(t.first+i)*channels+c]) * w
			}
			sums[x*channels+c] = s
		}
	}
}

// resampleColumns changes the height. vertical holds the taps of the rows of the result. They refer
// to rows of an image of which r is a strip: row 0 of r is row first of the image.
func resampleColumns[T uint8 | float32, A int32 | float32](r interleaved[T], first int, vertical []taps[A], round rounding[T, A]) interleaved[T] {
	out := newInterleaved[T](len(vertical), r.w, r.c)
	n := r.w * r.c
	sums := make([]A, n)
	for y, t := range vertical {
		clear(sums)
		for i, w := range t.weights {
			row := r.pix[(t.first-first+i)*n:][:n]
			for j, p := range row {
				sums[j] += A(p) * w
			}
		}
		round(out.pix[y*n:(y+1)*n], sums)
	}
	return out
}
