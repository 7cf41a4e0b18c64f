// Package chroma turns the luma and chroma of decoded JPEG and WebP pictures to red, green and blue as libjpeg does, which PIL
// reads with.
package chroma

import "image"

// RGB is a picture as rows of pixels of 3 bytes. Chroma of half the resolution is interpolated with triangle weights ("fancy
// upsampling"), where the standard library would repeat it. At coloured edges the two differ by tens of levels, which is
// enough to turn predictions.
func RGB(img *image.YCbCr, convert Conversion) []uint8 {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	pix := make([]uint8, w*h*3)
	cb, cr := make([]uint8, w+1), make([]uint8, w+1)
	rows := chromaRows(img)
	for y := range h {
		rows(cb, img.Cb, y)
		rows(cr, img.Cr, y)
		luma := img.Y[img.YOffset(b.Min.X, b.Min.Y+y):][:w]
		convert(pix[y*w*3:(y+1)*w*3], luma, cb, cr)
	}
	return pix
}

// A Conversion writes a row of red, green and blue.
type Conversion func(dst, luma, cb, cr []uint8)

// JFIF is the conversion of JPEG, in 16-bit fixed point: luma spans 0 to 255.
func JFIF(dst, luma, cb, cr []uint8) {
	const half = 1 << 15
	cb, cr = cb[:len(luma)], cr[:len(luma)]
	for x := range luma {
		y, u, v := int32(luma[x]), int32(cb[x])-128, int32(cr[x])-128
		p := dst[x*3 : x*3+3 : x*3+3]
		p[0] = clamp(y + (91881*v+half)>>16)
		p[1] = clamp(y + (-22554*u-46802*v+half)>>16)
		p[2] = clamp(y + (116130*u+half)>>16)
	}
}

// Studio is the conversion of lossy WebP, in the fixed point of libwebp: luma spans 16 to 235.
func Studio(dst, luma, cb, cr []uint8) {
	for x := range luma {
		y, u, v := int32(luma[x])*19077>>8, int32(cb[x]), int32(cr[x])
		p := dst[x*3 : x*3+3 : x*3+3]
		p[0] = clamp((y + v*26149>>8 - 14234) >> 6)
		p[1] = clamp((y - u*6419>>8 - v*13320>>8 + 8708) >> 6)
		p[2] = clamp((y + u*33050>>8 - 17685) >> 6)
	}
}

// clamp bounds v to 0..255; it branches, rarely, because that is faster than two conditional moves.
func clamp(v int32) uint8 {
	if uint32(v) <= 255 {
		return uint8(v)
	}
	return ^uint8(v >> 31)
}

// chromaRows returns a function that fills row y of a chroma plane at full width. Its dst has room for one value more
// than the width.
func chromaRows(img *image.YCbCr) func(dst, plane []uint8, y int) {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	halfW, halfH := (w+1)/2, (h+1)/2
	aligned := b.Min.X%2 == 0 && b.Min.Y%2 == 0
	start := img.COffset(b.Min.X, b.Min.Y)
	switch {
	case img.SubsampleRatio == image.YCbCrSubsampleRatio420 && aligned && halfW > 2:
		sums := make([]int32, halfW)
		return func(dst, plane []uint8, y int) {
			near := y / 2
			far := min(max(0, near-1+2*(y%2)), halfH-1)
			a, b := plane[start+near*img.CStride:], plane[start+far*img.CStride:]
			for i := range sums {
				sums[i] = 3*int32(a[i]) + int32(b[i])
			}
			triangle(dst, sums, 8, 7, 4)
		}
	case img.SubsampleRatio == image.YCbCrSubsampleRatio422 && aligned && halfW > 2:
		values := make([]int32, halfW)
		return func(dst, plane []uint8, y int) {
			for i, v := range plane[start+y*img.CStride:][:halfW] {
				values[i] = int32(v)
			}
			triangle(dst, values, 1, 2, 2)
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

// triangle doubles a row: each output is 3/4 of the nearer value and 1/4 of the farther one, scaled down by 2^shift.
// Left outputs round with one constant and right ones with another, so that rounding does not drift.
func triangle(dst []uint8, v []int32, roundLeft, roundRight int32, shift uint) {
	last := len(v) - 1
	for i, s := range v {
		left, right := v[max(0, i-1)], v[min(last, i+1)]
		dst[2*i] = uint8((3*s + left + roundLeft) >> shift)
		dst[2*i+1] = uint8((3*s + right + roundRight) >> shift)
	}
}
