package transform

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/chroma"
	"github.com/noether-ml/noether/tensor"
)

// JPEG encodes an image as JPEG, with chroma subsampling of 4:2:0, and decodes it. Before that,
// values are clipped to [0, 1] and rounded to 8 bits. Chroma is interpolated as libjpeg does. If
// there are not three channels, each is encoded as a grey image.
type JPEG struct {
	Quality Distribution // 0 to 100, rounded to an integer; 0 is the same as 1
}

func (t JPEG) Draw(r *rand.Rand) Op { return jpegOp{parameter{t.Quality.Draw(r)}} }
func (t JPEG) Random() bool         { return anyRandom(t.Quality) }

type jpegOp struct{ parameter } // parameter.value is the quality

func (o jpegOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	jpegRoundTrip(dst.Data, src.Data, c, h, w, o.value)
}

// dst may be src; both are c x h x w.
func jpegRoundTrip(dst, src []float32, c, h, w int, quality float64) {
	rounded, n := max(1, int(math.Round(quality))), h*w
	switch {
	case n == 0:
	case c == 3:
		for i, v := range chroma.JPEG.RGB(encodeDecode(toRGBA(src, h, w), rounded).(*image.YCbCr)) {
			dst[i%3*n+i/3] = float32(v) / 255
		}
	default:
		for k := range c {
			grey := image.NewGray(image.Rect(0, 0, w, h))
			for i, v := range src[k*n : (k+1)*n] {
				grey.Pix[i] = toByte(v)
			}
			decoded := encodeDecode(grey, rounded).(*image.Gray)
			for i := range n {
				dst[k*n+i] = float32(decoded.Pix[i/w*decoded.Stride+i%w]) / 255
			}
		}
	}
}

func toRGBA(planes []float32, h, w int) image.Image {
	n := h * w
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range n {
		m.Pix[4*i], m.Pix[4*i+1], m.Pix[4*i+2], m.Pix[4*i+3] = toByte(planes[i]), toByte(planes[n+i]), toByte(planes[2*n+i]), 255
	}
	return m
}

func toByte(v float32) uint8 { return uint8(math.RoundToEven(float64(clip(v)) * 255)) }

func encodeDecode(m image.Image, quality int) image.Image {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: quality}); err != nil {
		panic(err) // images are within the limits of the format
	}
	decoded, err := jpeg.Decode(&file)
	if err != nil {
		panic(err)
	}
	return decoded
}
