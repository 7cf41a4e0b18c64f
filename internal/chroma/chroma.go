// Package chroma converts decoded JPEG and WebP images from luma and chroma to red, green and blue
// exactly as libjpeg-turbo and libwebp do, which PIL and torchvision use.
package chroma

import "image"

// A Codec says how a library computes RGB from luma (Y) and chroma (Cb, Cr).
type Codec struct {
	// roundRight is the rounding constant of the right one of two interpolated pixels, in 16ths;
	// that of the left one is 8.
	roundRight int32
	// narrow is the largest number of chroma pixels of a row that are repeated, not interpolated.
	narrow int
	// convert converts a row to pixels of 3 bytes.
	convert func(dst, luma, cb, cr []uint8)
}

// The codecs of the libraries that PIL decodes with: libjpeg-turbo and libwebp.
var (
	JPEG = Codec{roundRight: 7, narrow: 2, convert: convertFull}
	WebP = Codec{roundRight: 8, narrow: 0, convert: convertStudio}
)

// RGB returns an image as rows of pixels of 3 bytes. Chroma of half the resolution is interpolated
// with triangle weights ("fancy upsampling"); Go's standard library repeats it instead. At coloured
// edges the two differ by tens of the 256 levels, which can change predictions.
func (c Codec) RGB(img *image.YCbCr) []uint8 {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	pix := make([]uint8, w*h*3)
	cb, cr := make([]uint8, w+1), make([]uint8, w+1)
	rows := c.rows(img)
	for y := range h {
		rows(cb, img.Cb, y)
		rows(cr, img.Cr, y)
		luma := img.Y[img.YOffset(b.Min.X, b.Min.Y+y):][:w]
		c.convert(pix[y*w*3:(y+1)*w*3], luma, cb, cr)
	}
	return pix
}

// convertFull converts a row whose luma spans 0 to 255 (full range), as in JPEG, in 16-bit fixed
// point. The factors are 1.402, -0.34414, -0.71414 and 1.772 times 2^16.
func convertFull(dst, luma, cb, cr []uint8) {
	const half = 1 << 15
	cb, cr = cb[:len(luma)], cr[:len(luma)]
	for x := range luma {
		y, u, v := int32(luma[x]), int32(cb[x])-128, int32(cr[x])-128
		p := dst[x*3 : x*3+3 : x*3+3]
		p[0] = Clamp(y + (91881*v+half)>>16)
		p[1] = Clamp(y + (-22554*u-46802*v+half)>>16)
		p[2] = Clamp(y + (116130*u+half)>>16)
	}
}

// convertStudio converts a row whose luma spans 16 to 235 (studio range), as in lossy WebP, in the
// fixed-point arithmetic of libwebp. The factors are 1.164, 1.596, -0.392, -0.813 and 2.017 times
// 2^14. The sums have 6 bits after the point; their constants subtract the offsets of luma (16) and
// chroma (128) and round.
func convertStudio(dst, luma, cb, cr []uint8) {
	for x := range luma {
		y, u, v := int32(luma[x])*19077>>8, int32(cb[x]), int32(cr[x])
		p := dst[x*3 : x*3+3 : x*3+3]
		p[0] = Clamp((y + v*26149>>8 - 14234) >> 6)
		p[1] = Clamp((y - u*6419>>8 - v*13320>>8 + 8708) >> 6)
		p[2] = Clamp((y + u*33050>>8 - 17685) >> 6)
	}
}

// Clamp limits v to 0..255. The second return, of 0 for a negative v and 255 for a large one, is
// rare, so its branch is faster than two conditional moves.
func Clamp(v int32) uint8 {
	if uint32(v) <= 255 {
		return uint8(v)
	}
	return ^uint8(v >> 31)
}

// rows returns a function that fills row y of a chroma plane at full width. dst must have room for
// one value more than the width.
func (c Codec) rows(img *image.YCbCr) func(dst, plane []uint8, y int) {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	halfW, halfH := (w+1)/2, (h+1)/2
	start := img.COffset(b.Min.X, b.Min.Y)
	ratio := img.SubsampleRatio
	if b.Min.X%2 != 0 || b.Min.Y%2 != 0 || halfW <= c.narrow && ratio != image.YCbCrSubsampleRatio440 {
		ratio = -1 // repeat pixels
	}
	sums := make([]int32, w)
	// interpolateRows sets sums to 4 times the values of row y, interpolated between two rows of the
	// plane.
	interpolateRows := func(plane []uint8, y int) {
		near := y / 2
		far := min(max(0, near-1+2*(y%2)), halfH-1)
		a, b := plane[start+near*img.CStride:], plane[start+far*img.CStride:]
		for i := range sums {
			sums[i] = 3*int32(a[i]) + int32(b[i])
		}
	}
	switch ratio {
	case image.YCbCrSubsampleRatio420:
		sums = sums[:halfW]
		return func(dst, plane []uint8, y int) {
			interpolateRows(plane, y)
			triangle(dst, sums, 8, c.roundRight, 4)
		}
	case image.YCbCrSubsampleRatio422:
		sums = sums[:halfW]
		return func(dst, plane []uint8, y int) {
			for i, v := range plane[start+y*img.CStride:][:halfW] {
				sums[i] = int32(v)
			}
			triangle(dst, sums, 1, 2, 2)
		}
	case image.YCbCrSubsampleRatio440:
		return func(dst, plane []uint8, y int) {
			interpolateRows(plane, y)
			round := int32(1 + y%2)
			for i, s := range sums {
				dst[i] = uint8((s + round) >> 2)
			}
		}
	}
	if img.SubsampleRatio == image.YCbCrSubsampleRatio444 {
		return func(dst, plane []uint8, y int) { copy(dst[:w], plane[start+y*img.CStride:]) }
	}
	return func(dst, plane []uint8, y int) {
		for x := range w {
			dst[x] = plane[img.COffset(b.Min.X+x, b.Min.Y+y)]
		}
	}
}

// triangle doubles the width of a row: each output is 3 times the nearer value plus the farther one
// and a rounding constant, divided by 2^shift. For JPEG left and right outputs have different
// constants, so that rounding errors do not accumulate.
func triangle(dst []uint8, v []int32, roundLeft, roundRight int32, shift uint) {
	last := len(v) - 1
	for i, s := range v {
		left, right := v[max(0, i-1)], v[min(last, i+1)]
		dst[2*i] = uint8((3*s + left + roundLeft) >> shift)
		dst[2*i+1] = uint8((3*s + right + roundRight) >> shift)
	}
}
