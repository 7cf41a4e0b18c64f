package dataset

import (
	"errors"
	"fmt"
	"image"
	"iter"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// A Frame is the size and the format in which a model takes its inputs. Source.At brings each
// sample to it. "Framed" means brought to the frame.
//
//   - An image gets the channels of the frame. Its short side is resized, then the centre is
//     cropped.
//   - A waveform gets the rate and the length of the frame, if the options of the source permit it.
//
// The zero Frame leaves a sample as it is stored.
//
// Sizes, rounding and values of images are those of torchvision's Resize, CenterCrop and ToTensor
// on a PIL image. 8-bit images are resampled in 8 bits, exactly as PIL does. A crop larger than the
// image is padded with zeros. As with PIL, transparency is dropped and the orientation in EXIF is
// ignored.
type Frame struct {
	Resize int  // length of the short side after resizing, in pixels; 0: see Height
	Square bool // resize both sides to Resize, ignoring the aspect ratio
	// Height and Width are the size of the centre crop, in pixels; 0: unchanged. If Resize is 0,
	// nothing is cropped: the image is resized to this size, ignoring the aspect ratio.
	Height, Width int
	// Letterbox resizes the image to the largest size within Height and Width that keeps its aspect
	// ratio, and pads it on both sides with Fill, as YOLO detectors do. Resize is then 0.
	Letterbox bool    `json:",omitzero"`
	Fill      float32 `json:",omitzero"` // value, from 0 to 1, of what is added around an image
	// FloorCrop rounds the start of a centre crop down, as the library transformers does. Otherwise
	// halves are rounded to even, as torchvision does.
	FloorCrop bool `json:",omitzero"`
	// Channels is 3 for colour (grey is repeated), 1 for grey (0.2989 R + 0.587 G + 0.114 B), or 0
	// for the channels of the image.
	Channels int
	// Interpolation is "bilinear" (the default), "bicubic", "lanczos" or "nearest". Like PIL's, the
	// first three widen their filter when shrinking, so that every pixel counts.
	Interpolation string
	// Frames asks for all frames of a sequence, such as a video, and not only for the first.
	Frames bool `json:",omitzero"`

	Rate   int `json:",omitzero"` // audio: values per second that the model takes; 0: unchanged
	Length int `json:",omitzero"` // audio: number of values that the model takes; 0: unchanged
	// Repeat is how audio that is shorter than Length is repeated before zeros are added: "repeatpad" as
	// often as it fits, "repeat" up to Length, "" not.
	Repeat string `json:",omitzero"`
	Stereo bool   `json:",omitzero"` // audio: both channels, of a recording of one the same twice; else the mean of all
}

// ForImages reports whether the frame sets a size or channels, which only images have.
func (f Frame) ForImages() bool { return f.Resize > 0 || f.Height > 0 || f.Width > 0 || f.Channels > 0 }

// maxValues bounds the number of values of one image in its frame, or of one sample of a data set
// of arrays (1 GiB of float32). So an image of extreme aspect ratio is an error and does not
// exhaust memory.
const maxValues = 1 << 28

// Check returns an error if a field is invalid or two fields contradict each other.
func (f Frame) Check() error {
	switch {
	case f.Resize < 0 || f.Height < 0 || f.Width < 0:
		return fmt.Errorf("frame: resize %d, height %d, width %d: sizes cannot be negative", f.Resize, f.Height, f.Width)
	case f.Rate < 0 || f.Length < 0:
		return fmt.Errorf("frame: rate %d, length %d: neither can be negative", f.Rate, f.Length)
	case f.ForImages() && (f.Rate > 0 || f.Length > 0):
		return errors.New("frame: rate and length are for audio, sizes and channels for images")
	case f.Repeat != "" && f.Repeat != "repeat" && f.Repeat != "repeatpad":
		return fmt.Errorf("frame: unknown repeat %q: use repeat or repeatpad", f.Repeat)
	case f.Letterbox && (f.Height == 0 || f.Width == 0 || f.Resize > 0 || f.Square):
		return errors.New("frame: letterbox needs a height and a width, and no resize")
	case f.Channels != 0 && f.Channels != 1 && f.Channels != 3:
		return fmt.Errorf("frame: %d channels: images have 1 or 3", f.Channels)
	}
	_, err := filterOf(f.Interpolation)
	return err
}

// Image brings an image to the frame and returns it as c x h x w, values in [0, 1]. Unless the
// frame sets it, c is 1 for a grey image and 3 otherwise. Images of 16 bits per channel keep their
// precision: keepFloat leaves resampled values as they are, round8 rounds them to 8 bits.
func (f Frame) Image(img image.Image) (tensor.Tensor, error) {
	if deep, ok := from16Bit(img); ok {
		return frameImage(f, deep, keepFloat)
	}
	return frameImage(f, from8Bit(img), round8)
}

// imageStrips is Image for an image of h x w pixels that is given as strips of rows, from the top,
// so that a large file is not decoded as a whole.
func (f Frame) imageStrips(parts iter.Seq2[image.Image, error], h, w int) (tensor.Tensor, error) {
	next, stop := iter.Pull2(parts)
	defer stop()
	first, err, _ := next()
	if err != nil {
		return tensor.Tensor{}, err
	}
	if deep, ok := from16Bit(first); ok {
		return frameStrips(f, convertStrips(deep, h, w, next, func(img image.Image) interleaved[float32] {
			deep, _ := from16Bit(img)
			return deep
		}), keepFloat)
	}
	return frameStrips(f, convertStrips(from8Bit(first), h, w, next, from8Bit), round8)
}

// Tensor brings an image that is a tensor, c x h x w, to the frame. It is resampled in float32, and
// values that bicubic interpolation takes outside [0, 1] are kept. Only images of 1 or 3 channels
// can be converted to colour or grey.
func (f Frame) Tensor(t tensor.Tensor) (tensor.Tensor, error) {
	if t.Rank() != 3 {
		return tensor.Tensor{}, fmt.Errorf("frame: an image has shape channels x height x width, not %v", t.Shape)
	}
	c, h, w := t.Shape[0], t.Shape[1], t.Shape[2]
	if f.isIdentity(c, h, w) {
		return t, nil
	}
	return frameImage(f, interleavePlanes(t.Data, c, h, w), keepFloat)
}

// fromBytes brings an 8-bit image, given as c planes of h x w, to the frame.
func (f Frame) fromBytes(planes []uint8, c, h, w int) (tensor.Tensor, error) {
	if !f.isIdentity(c, h, w) {
		return frameImage(f, interleavePlanes(planes, c, h, w), round8)
	}
	t := tensor.New(c, h, w)
	for i, v := range planes[:len(t.Data)] {
		t.Data[i] = unit8[v] // v / 255
	}
	return t, nil
}

// isIdentity reports whether the frame leaves an image of the given shape unchanged.
func (f Frame) isIdentity(c, h, w int) bool {
	return (f.Channels == 0 || f.Channels == c) && f.window(h, w) == window{h, w, 0, 0, h, w}
}

// A window is the crop of a resized image, in pixels of the resized image. It may extend beyond
// that image on all sides.
type window struct {
	resizedH, resizedW int // size of the image before the crop
	top, left          int // of the crop; negative: outside the image
	height, width      int // of the crop
}

// window returns the crop of an image of h x w pixels.
func (f Frame) window(h, w int) window {
	rh, rw := f.resized(h, w)
	win := window{resizedH: rh, resizedW: rw, height: rh, width: rw}
	if f.Height > 0 {
		win.height, win.top = f.Height, f.centre(rh, f.Height)
	}
	if f.Width > 0 {
		win.width, win.left = f.Width, f.centre(rw, f.Width)
	}
	return win
}

// resized returns the height and the width to which an image of h x w pixels is resized before the
// crop. The long side is truncated to an integer, as in torchvision.
func (f Frame) resized(h, w int) (int, int) {
	short := float64(min(h, w))
	switch {
	case f.Letterbox:
		scale := min(float64(f.Height)/float64(h), float64(f.Width)/float64(w))
		return max(1, int(math.RoundToEven(scale*float64(h)))), max(1, int(math.RoundToEven(scale*float64(w))))
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

// centre returns the start of a centre crop on a side, in pixels. Unless FloorCrop is set, halves
// round to even, as in Python. If the crop is larger than the side by an odd number, the end gets
// the extra pixel of padding.
func (f Frame) centre(side, crop int) int {
	if crop > side || f.FloorCrop {
		return (side - crop) / 2 // towards zero
	}
	return int(math.RoundToEven(float64(side-crop) / 2))
}

// frameImage brings an image, whose pixels hold their channels side by side (interleaved), to a
// frame: it resizes, crops, and changes channels. T is the type of a pixel's values. A is the type
// of the weighted sums of pixels, which round converts to T.
func frameImage[T uint8 | float32, A int32 | float32](f Frame, r interleaved[T], round rounding[T, A]) (tensor.Tensor, error) {
	return frameStrips(f, oneStrip(r), round)
}

// frameStrips is frameImage for an image in strips.
func frameStrips[T uint8 | float32, A int32 | float32](f Frame, r strips[T], round rounding[T, A]) (tensor.Tensor, error) {
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
	framed, err := resample(r, win, fl, round)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return convertChannels(toPlanes(framed, win, f.Fill), f.Channels), nil
}

// toPlanes converts r, the part of an image inside a window, to planes of values in [0, 1], and
// pads it with a value to the size of the window.
func toPlanes[T uint8 | float32](r interleaved[T], win window, fill float32) tensor.Tensor {
	t := tensor.New(r.c, win.height, win.width)
	if fill != 0 {
		for i := range t.Data {
			t.Data[i] = fill
		}
	}
	top, left := max(0, -win.top), max(0, -win.left)
	for y := range r.h {
		row := r.pix[y*r.w*r.c : (y+1)*r.w*r.c]
		at := (y+top)*win.width + left
		for c := range r.c {
			plane := t.Data[c*win.height*win.width+at:][:r.w]
			copyUnit(plane, row[c:], r.c) // every r.c-th value; bytes are divided by 255
		}
	}
	return t
}

// convertChannels converts an image between grey and colour; want is 1 or 3, or 0 for no change.
func convertChannels(t tensor.Tensor, want int) tensor.Tensor {
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
