package dataset

import (
	"image"
	"image/color"
	"iter"

	"github.com/noether-ml/noether/internal/chroma"
	"github.com/noether-ml/noether/internal/turbojpeg"
)

// An interleaved is an image in the layout of decoders and PIL: rows of pixels, with the channels
// of a pixel next to each other.
type interleaved[T uint8 | float32] struct {
	h, w, c int // height, width, channels
	pix     []T // row-major: h x w x c
}

func newInterleaved[T uint8 | float32](h, w, c int) interleaved[T] {
	return interleaved[T]{h, w, c, make([]T, h*w*c)}
}

// strips is an image of h x w pixels with c channels, given as strips of at least one row, from the
// top.
type strips[T uint8 | float32] struct {
	h, w, c int
	rows    iter.Seq2[interleaved[T], error]
}

// oneStrip returns an image as one strip.
func oneStrip[T uint8 | float32](r interleaved[T]) strips[T] {
	return strips[T]{r.h, r.w, r.c, func(yield func(interleaved[T], error) bool) { yield(r, nil) }}
}

// convertStrips returns the strips of an image of h x w: the first, and those that next returns,
// converted. next returns false after the last strip.
func convertStrips[T uint8 | float32](first interleaved[T], h, w int, next func() (image.Image, error, bool), convert func(image.Image) interleaved[T]) strips[T] {
	return strips[T]{h, w, first.c, func(yield func(interleaved[T], error) bool) {
		if !yield(first, nil) {
			return
		}
		for {
			img, err, ok := next()
			switch {
			case !ok:
				return
			case err != nil:
				yield(interleaved[T]{}, err)
				return
			case !yield(convert(img), nil):
				return
			}
		}
	}}
}

// interleavePlanes returns the interleaved image of c planes of h x w.
func interleavePlanes[T uint8 | float32](planes []T, c, h, w int) interleaved[T] {
	r := newInterleaved[T](h, w, c)
	for i := range c {
		for j, v := range planes[i*h*w : (i+1)*h*w] {
			r.pix[j*c+i] = v
		}
	}
	return r
}

// unit8[v] is v / 255 in float32, as torchvision's ToTensor computes it.
var unit8 = func() (table [256]float32) {
	for i := range table {
		table[i] = float32(i) / 255
	}
	return table
}()

// copyUnit fills dst with every stride-th value of src. It divides bytes by 255.
func copyUnit[T uint8 | float32](dst []float32, src []T, stride int) {
	switch src := any(src).(type) {
	case []uint8:
		for i := range dst {
			dst[i] = unit8[src[i*stride]]
		}
	case []float32:
		for i := range dst {
			dst[i] = src[i*stride]
		}
	}
}

// from16Bit converts an image of 16 bits per channel to values in [0, 1], without its alpha
// channel. It returns false for other images.
func from16Bit(img image.Image) (interleaved[float32], bool) {
	b := img.Bounds()
	switch img := img.(type) {
	case *image.Gray16:
		r := newInterleaved[float32](b.Dy(), b.Dx(), 1)
		for y := range r.h {
			for x := range r.w {
				r.pix[y*r.w+x] = float32(img.Gray16At(b.Min.X+x, b.Min.Y+y).Y) / 0xffff
			}
		}
		return r, true
	case *image.NRGBA64, *image.RGBA64:
		r := newInterleaved[float32](b.Dy(), b.Dx(), 3)
		for y := range r.h {
			for x := range r.w {
				c := color.NRGBA64Model.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA64)
				p := r.pix[(y*r.w+x)*3:]
				p[0], p[1], p[2] = float32(c.R)/0xffff, float32(c.G)/0xffff, float32(c.B)/0xffff
			}
		}
		return r, true
	}
	return interleaved[float32]{}, false
}

// from8Bit converts an image of 8 bits per channel. Grey images stay grey. Others become red, green
// and blue, without their alpha channel.
func from8Bit(img image.Image) interleaved[uint8] {
	b := img.Bounds()
	h, w := b.Dy(), b.Dx()
	switch img := img.(type) {
	case *image.Gray:
		r := newInterleaved[uint8](h, w, 1)
		for y := range h {
			copy(r.pix[y*w:(y+1)*w], img.Pix[img.PixOffset(b.Min.X, b.Min.Y+y):])
		}
		return r
	case *turbojpeg.RGB: // rows of red, green and blue, without gaps
		return interleaved[uint8]{h, w, 3, img.Pix}
	case *image.YCbCr:
		return interleaved[uint8]{h, w, 3, chroma.JPEG.RGB(img)}
	case *image.NYCbCrA:
		return interleaved[uint8]{h, w, 3, chroma.JPEG.RGB(&img.YCbCr)}
	case *image.CMYK:
		return interleaved[uint8]{h, w, 3, chroma.CMYK(img.Pix[img.PixOffset(b.Min.X, b.Min.Y):], h, w, img.Stride)}
	case *image.NRGBA:
		return dropAlpha(h, w, img.Pix[img.PixOffset(b.Min.X, b.Min.Y):], img.Stride)
	case *image.RGBA:
		if img.Opaque() {
			return dropAlpha(h, w, img.Pix[img.PixOffset(b.Min.X, b.Min.Y):], img.Stride)
		}
	case *image.Paletted:
		return fromPaletted(img)
	}
	r := newInterleaved[uint8](h, w, 3)
	for y := range h {
		for x := range w {
			putRGB(r.pix[(y*w+x)*3:], img.At(b.Min.X+x, b.Min.Y+y))
		}
	}
	return r
}

func putRGB(p []uint8, c color.Color) {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	p[0], p[1], p[2] = n.R, n.G, n.B
}

// dropAlpha converts pixels of four bytes, red, green, blue and alpha.
// Rows start stride bytes apart.
func dropAlpha(h, w int, pix []uint8, stride int) interleaved[uint8] {
	r := newInterleaved[uint8](h, w, 3)
	for y := range h {
		src, dst := pix[y*stride:], r.pix[y*w*3:(y+1)*w*3]
		for x := range w {
			copy(dst[x*3:x*3+3], src[x*4:x*4+3])
		}
	}
	return r
}

func fromPaletted(img *image.Paletted) interleaved[uint8] {
	b := img.Bounds()
	var table [256][3]uint8 // an index outside the palette is black
	for i, c := range img.Palette {
		putRGB(table[i][:], c)
	}
	r := newInterleaved[uint8](b.Dy(), b.Dx(), 3)
	for y := range r.h {
		row := img.Pix[img.PixOffset(b.Min.X, b.Min.Y+y):]
		for x := range r.w {
			copy(r.pix[(y*r.w+x)*3:], table[row[x]][:])
		}
	}
	return r
}
