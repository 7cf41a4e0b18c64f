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

// Hue turns the colours of a picture by a part of the colour circle: torchvision's adjust_hue on tensors. 1/3 makes red green, green blue
// and blue red; 0.5 and -0.5 are the same. A picture of other than 3 channels is left as it is.
type Hue struct {
	Shift Law // parts of the circle, in -0.5 to 0.5
}

// Saturation mixes a picture with its own grey g by a factor f, and clips to [0, 1]: f x + (1 - f) g, torchvision's adjust_saturation. A
// negative factor goes on beyond grey, to the complementary colours, as torchvision does on PIL images; on tensors it refuses. Grey is as
// in Grayscale. A picture of other than 3 channels is left as it is.
type Saturation struct {
	Factor Law
}

// JPEG writes a picture as a JPEG of a quality from 0 to 100, rounded, with the colours at half the size (4:2:0), and reads it again. Its
// values are rounded to 8 bits before. Colours are enlarged again as libjpeg does. Qualities 0 and 1 are the same.
type JPEG struct {
	Quality Law
}

// Draw implements Transform.
func (t Hue) Draw(r *rand.Rand) Op { return hueOp{factor{t.Shift.Draw(r)}} }

// Draw implements Transform.
func (t Saturation) Draw(r *rand.Rand) Op { return saturationOp{factor{t.Factor.Draw(r)}} }

// Draw implements Transform.
func (t JPEG) Draw(r *rand.Rand) Op { return jpegOp{factor{t.Quality.Draw(r)}} }

// Random reports whether the shift is drawn.
func (t Hue) Random() bool { return anyDrawn(t.Shift) }

// Random reports whether the factor is drawn.
func (t Saturation) Random() bool { return anyDrawn(t.Factor) }

// Random reports whether the quality is drawn.
func (t JPEG) Random() bool { return anyDrawn(t.Quality) }

type (
	hueOp        struct{ factor }
	saturationOp struct{ factor }
	jpegOp       struct{ factor }
)

// Apply implements Op.
func (o hueOp) Apply(dst, src tensor.Tensor) {
	c, h, w := sides(dst, src)
	if c != 3 {
		copy(dst.Data, src.Data)
		return
	}
	n := h * w
	for i := range n {
		r, g, b := turnHue(src.Data[i], src.Data[n+i], src.Data[2*n+i], o.value)
		dst.Data[i], dst.Data[n+i], dst.Data[2*n+i] = r, g, b
	}
}

// turnHue shifts the hue of one colour, which keeps its largest and smallest value.
func turnHue(r, g, b float32, shift float64) (float32, float32, float32) {
	top, low := max(r, g, b), min(r, g, b)
	span := float64(top - low)
	if span == 0 {
		return r, g, b
	}
	var sextant float64 // 0 to 6: 0 red, 2 green, 4 blue
	switch top {
	case r:
		sextant = float64(g-b) / span
	case g:
		sextant = 2 + float64(b-r)/span
	default:
		sextant = 4 + float64(r-g)/span
	}
	sextant = math.Mod(sextant+6*shift+12, 6)
	whole := math.Floor(sextant)
	part := sextant - whole
	rising, falling := low+float32(span*part), top-float32(span*part)
	switch int(whole) % 6 {
	case 0:
		return top, rising, low
	case 1:
		return falling, top, low
	case 2:
		return low, top, rising
	case 3:
		return low, falling, top
	case 4:
		return rising, low, top
	}
	return top, low, falling
}

// Apply implements Op.
func (o saturationOp) Apply(dst, src tensor.Tensor) {
	c, h, w := sides(dst, src)
	if c != 3 {
		copy(dst.Data, src.Data)
		return
	}
	n := h * w
	f := float32(o.value)
	grey(dst.Data[:n], src.Data, 3)
	for i := range n {
		rest := (1 - f) * dst.Data[i]
		for k := 2; k >= 0; k-- { // the first plane holds the grey
			dst.Data[k*n+i] = clip(f*src.Data[k*n+i] + rest)
		}
	}
}

// Apply implements Op.
func (o jpegOp) Apply(dst, src tensor.Tensor) {
	c, h, w := sides(dst, src)
	quality, n := max(1, int(math.Round(o.value))), h*w
	switch {
	case n == 0:
	case c == 3:
		for i, v := range chroma.JPEG.RGB(viaJPEG(colours(src.Data, h, w), quality).(*image.YCbCr)) {
			dst.Data[i%3*n+i/3] = float32(v) / 255
		}
	default: // each channel is a grey picture of its own
		for k := range c {
			grey := image.NewGray(image.Rect(0, 0, w, h))
			for i, v := range src.Data[k*n : (k+1)*n] {
				grey.Pix[i] = level(v)
			}
			back := viaJPEG(grey, quality).(*image.Gray)
			for i := range n {
				dst.Data[k*n+i] = float32(back.Pix[i/w*back.Stride+i%w]) / 255
			}
		}
	}
}

// colours is a picture of 3 planes with 8 bits a value.
func colours(planes []float32, h, w int) image.Image {
	n := h * w
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range n {
		m.Pix[4*i], m.Pix[4*i+1], m.Pix[4*i+2], m.Pix[4*i+3] = level(planes[i]), level(planes[n+i]), level(planes[2*n+i]), 255
	}
	return m
}

func level(v float32) uint8 { return uint8(math.RoundToEven(float64(clip(v)) * 255)) }

// viaJPEG writes and reads a picture.
func viaJPEG(m image.Image, quality int) image.Image {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: quality}); err != nil {
		panic(err) // a buffer takes all, and the picture is no larger than the format allows
	}
	back, err := jpeg.Decode(&file)
	if err != nil {
		panic(err)
	}
	return back
}
