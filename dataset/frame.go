package dataset

import (
	"errors"
	"fmt"
	"image"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// A Frame says how an image is brought to the size and the channels that a model takes: the short side is resized,
// then the centre cropped. Of a sound it says the rate and the number of samples. The zero Frame leaves an image or a sound as it is.
//
// Sizes, rounding and values are those of torchvision's Resize, CenterCrop and ToTensor on a PIL image: images of 8 bits
// are resampled in 8 bits, exactly as PIL does; a crop that is larger than the image is padded with zeros. As with
// PIL, transparency is dropped and the orientation that a camera wrote into EXIF is ignored.
type Frame struct {
	Resize        int    // length of the short side after resizing; 0: no resizing before the crop
	Square        bool   // both sides are resized to Resize, whatever the proportions
	Height, Width int    // of the centre crop; 0: as it comes. An image of another size is resized to this if Resize is 0
	Channels      int    // 3: colour, grey is repeated; 1: grey, 0.2989 R + 0.587 G + 0.114 B; 0: as it comes
	Interpolation string // "bilinear" (default; area-weighted when shrinking, as PIL does), "bicubic" or "nearest"

	Rate   int `json:",omitzero"` // of a sound: samples a second that the model takes; 0: as it comes
	Length int `json:",omitzero"` // of a sound: samples that the model takes; 0: as it comes
}

// ForImages reports whether the frame sets a size or channels, which only images have.
func (f Frame) ForImages() bool { return f.Resize > 0 || f.Height > 0 || f.Width > 0 || f.Channels > 0 }

// maxValues bounds what one framed image may hold (1 GiB of float32), so that an image of absurd proportions is an
// error rather than the end of the memory.
const maxValues = 1 << 28

// Check reports a frame that makes no sense.
func (f Frame) Check() error {
	switch {
	case f.Resize < 0 || f.Height < 0 || f.Width < 0:
		return fmt.Errorf("frame: resize %d, height %d, width %d: sizes cannot be negative", f.Resize, f.Height, f.Width)
	case f.Rate < 0 || f.Length < 0:
		return fmt.Errorf("frame: rate %d, length %d: neither can be negative", f.Rate, f.Length)
	case f.ForImages() && (f.Rate > 0 || f.Length > 0):
		return errors.New("frame: rate and length are of sounds, and sizes and channels of images")
	case f.Channels != 0 && f.Channels != 1 && f.Channels != 3:
		return fmt.Errorf("frame: %d channels: images have 1 or 3", f.Channels)
	}
	_, err := filterOf(f.Interpolation)
	return err
}

// Image brings an image to the frame: c x h x w, values in [0, 1]. c is 1 for a grey image and 3 for any other unless
// the frame says. Images of 16 bits a channel keep their precision.
func (f Frame) Image(img image.Image) (tensor.Tensor, error) {
	if deep, ok := from16Bit(img); ok {
		return frameImage(f, deep, exact)
	}
	return frameImage(f, from8Bit(img), round8)
}

// Tensor brings an image that is a tensor already, c x h x w, to the frame. It is resampled in float32, bicubic
// overshoot included. An image of other than 1 or 3 channels cannot be turned to colour or grey.
func (f Frame) Tensor(t tensor.Tensor) (tensor.Tensor, error) {
	if t.Rank() != 3 {
		return tensor.Tensor{}, fmt.Errorf("frame: an image has shape channels x height x width, not %v", t.Shape)
	}
	c, h, w := t.Shape[0], t.Shape[1], t.Shape[2]
	if f.keeps(c, h, w) {
		return t, nil
	}
	return frameImage(f, interleavePlanes(t.Data, c, h, w), exact)
}

// fromBytes frames an image of 8 bits a value in c planes of h x w.
func (f Frame) fromBytes(planes []uint8, c, h, w int) (tensor.Tensor, error) {
	if !f.keeps(c, h, w) {
		return frameImage(f, interleavePlanes(planes, c, h, w), round8)
	}
	t := tensor.New(c, h, w)
	for i, v := range planes[:len(t.Data)] {
		t.Data[i] = unit8[v]
	}
	return t, nil
}

// keeps reports whether the frame leaves an image of that shape untouched.
func (f Frame) keeps(c, h, w int) bool {
	return (f.Channels == 0 || f.Channels == c) && f.window(h, w) == window{h, w, 0, 0, h, w}
}

// A window is the part of a resized image that a frame shows; it may reach beyond the image on all sides.
type window struct {
	resizedH, resizedW int
	top, left          int
	height, width      int
}

func (f Frame) window(h, w int) window {
	rh, rw := f.resized(h, w)
	win := window{resizedH: rh, resizedW: rw, height: rh, width: rw}
	if f.Height > 0 {
		win.height, win.top = f.Height, centre(rh, f.Height)
	}
	if f.Width > 0 {
		win.width, win.left = f.Width, centre(rw, f.Width)
	}
	return win
}

// resized is the size before the crop; the long side is truncated to an integer, as torchvision does.
func (f Frame) resized(h, w int) (int, int) {
	short := float64(min(h, w))
	switch {
	case f.Resize == 0:
		if f.Height > 0 {
			h = f.Height
		}
		if f.Width > 0 {
			w = f.Width
		}
		return h, w
	case f.Square:
		return f.Resize, f.Resize
	case w <= h:
		return int(float64(f.Resize) * float64(h) / short), f.Resize
	default:
		return f.Resize, int(float64(f.Resize) * float64(w) / short)
	}
}

// centre is where a crop of the given size starts on a side: halves round to even as Python's round does; a crop
// larger than the side has the odd pixel of padding at the end.
func centre(side, crop int) int {
	if crop > side {
		return -((crop - side) / 2)
	}
	return int(math.RoundToEven(float64(side-crop) / 2))
}

// frameImage resizes, crops, and changes channels.
func frameImage[T uint8 | float32, A int32 | float32](f Frame, r interleaved[T], round rounding[T, A]) (tensor.Tensor, error) {
	if err := f.Check(); err != nil {
		return tensor.Tensor{}, err
	}
	if r.w == 0 || r.h == 0 {
		return tensor.Tensor{}, fmt.Errorf("frame: the image is empty (%d x %d)", r.w, r.h)
	}
	if f.Channels != 0 && f.Channels != r.c && r.c != 1 && r.c != 3 {
		return tensor.Tensor{}, fmt.Errorf("frame: an image of %d channels cannot be turned to %d", r.c, f.Channels)
	}
	win := f.window(r.h, r.w)
	if c := max(r.c, f.Channels); win.height > maxValues/c/win.width {
		return tensor.Tensor{}, fmt.Errorf("frame: an image of %d x %d would become %d x %d: too large; crop it", r.w, r.h, win.width, win.height)
	}
	fl, err := filterOf(f.Interpolation)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return channels(toPlanes(resample(r, win, fl, round), win), f.Channels), nil
}

// toPlanes lays the visible part of an image into its window as planes, values in [0, 1], zero around it.
func toPlanes[T uint8 | float32](r interleaved[T], win window) tensor.Tensor {
	t := tensor.New(r.c, win.height, win.width)
	top, left := max(0, -win.top), max(0, -win.left)
	for y := range r.h {
		row := r.pix[y*r.w*r.c : (y+1)*r.w*r.c]
		at := (y+top)*win.width + left
		for c := range r.c {
			plane := t.Data[c*win.height*win.width+at:][:r.w]
			unit(plane, row[c:], r.c)
		}
	}
	return t
}

// channels turns grey to colour by repeating it, and colour to grey.
func channels(t tensor.Tensor, want int) tensor.Tensor {
	have, n := t.Shape[0], t.Shape[1]*t.Shape[2]
	if want == 0 || want == have {
		return t
	}
	out := tensor.New(want, t.Shape[1], t.Shape[2])
	if have == 1 {
		for c := range want {
			copy(out.Data[c*n:], t.Data)
		}
		return out
	}
	red, green, blue := t.Data[:n], t.Data[n:2*n], t.Data[2*n:]
	for i := range n {
		out.Data[i] = 0.2989*red[i] + 0.587*green[i] + 0.114*blue[i]
	}
	return out
}
