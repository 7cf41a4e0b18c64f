package chroma

// CMYK converts h rows of w pixels of cyan, magenta, yellow and black, which start stride bytes
// apart, to rows of red, green and blue without gaps. It rounds as PIL does.
func CMYK(pix []uint8, h, w, stride int) []uint8 {
	out := make([]uint8, 3*h*w)
	for y := range h {
		src, dst := pix[y*stride:], out[y*w*3:(y+1)*w*3]
		for x := range w {
			white := 255 - uint32(src[x*4+3])
			for c := range 3 {
				ink := uint32(src[x*4+c])*white + 128
				dst[x*3+c] = uint8(white - (ink+ink>>8)>>8) // white - round(ink x white / 255)
			}
		}
	}
	return out
}
