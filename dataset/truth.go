package dataset

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/tensor"
)

// A Truth is the annotation of an image: objects with their boxes, or the class of each pixel.
type Truth = decoded.Truth

// An Object is a labelled box.
type Object = decoded.Object

// A TruthClass is a class of objects or pixels.
type TruthClass struct {
	ID   int // in the annotation file
	Name string
}

// TruthClasses returns the classes of a source whose samples have a Truth. ok is false if they have
// none. The first class of masks is the background. There are no classes for masks whose pixel
// values are the model's classes.
func TruthClasses(src Source) (classes []TruthClass, ok bool) {
	if s, ok := find[interface{ truthClasses() []TruthClass }](src); ok {
		return s.truthClasses(), true
	}
	return nil, false
}

// fractions converts a point of an image of h x w pixels to fractions of the width and the height
// of the framed image.
func (f Frame) fractions(x, y float64, h, w int) (fx, fy float64) {
	win := f.window(h, w)
	return (x*float64(win.resizedW)/float64(w) - float64(win.left)) / float64(win.width),
		(y*float64(win.resizedH)/float64(h) - float64(win.top)) / float64(win.height)
}

// area returns how many pixels of an image of h x w pixels the framed image covers.
func (f Frame) area(h, w int) float64 {
	win := f.window(h, w)
	return float64(win.height) * float64(h) / float64(win.resizedH) * float64(win.width) * float64(w) / float64(win.resizedW)
}

// crops reports whether a part of an image of h x w pixels is outside of the frame.
func (f Frame) crops(h, w int) bool {
	win := f.window(h, w)
	return win.top > 0 || win.left > 0 || win.top+win.height < win.resizedH || win.left+win.width < win.resizedW
}

// MasksOptions are the options of WithMasks.
type MasksOptions struct {
	Dir    string // folder of the masks: a PNG for each image, with its name
	Ignore int    // value of pixels that have no class; -1: all have one
}

// WithMasks returns the images of folder f with the class of each pixel, from a folder of masks:
// PNG files of 8 or 16 bits, grey or with a palette, of the size of the image. The value of a
// pixel, or its index in the palette, is its class. Names, labels and factors stay those of f. An
// image without a mask is an error.
func WithMasks(ctx context.Context, f *Folder, o MasksOptions) (Source, error) {
	d := newDigest("masks")
	d.add(f.Fingerprint(), o.Ignore)
	masks := fileList{dir: o.Dir}
	for i := range f.Len() {
		name := maskName(f.files[i].name)
		info, err := os.Stat(filepath.Join(o.Dir, name))
		if err != nil {
			return nil, fmt.Errorf("the mask of %s: %w", f.files[i].name, err)
		}
		masks.files = append(masks.files, fileEntry{name: name, size: info.Size(), label: NoLabel})
	}
	if err := masks.hash(ctx, d); err != nil {
		return nil, fmt.Errorf("reading the masks in %s: %w", o.Dir, err)
	}
	return masked{f, o, d.String(), d.files}, nil
}

// maskName returns the name of the mask of an image.
func maskName(image string) string { return strings.TrimSuffix(image, path.Ext(image)) + ".png" }

// A masked source adds masks to the images of a folder.
type masked struct {
	*Folder
	options     MasksOptions
	fingerprint string
	masks       *watched
}

func (m masked) Fingerprint() string        { return m.fingerprint }
func (m masked) truthClasses() []TruthClass { return nil }

func (m masked) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := m.Folder.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	return m.masks.read(ctx, i, func() (Sample, error) {
		mask, err := m.read(s.Name, f)
		if err != nil {
			return s, asBadSample(ctx, s.Name, fmt.Errorf("mask %s: %w", maskName(s.Name), err))
		}
		s.Truth = &Truth{Mask: mask}
		return s, nil
	})
}

// read reads the mask of the image with the given name, and brings it to a frame.
func (m masked) read(name string, f Frame) (tensor.Tensor, error) {
	h, w, err := imageSize(filepath.Join(m.dir, name))
	if err != nil {
		return tensor.Tensor{}, err
	}
	file, err := filesys.Open(filepath.Join(m.options.Dir, maskName(name)))
	if err != nil {
		return tensor.Tensor{}, errors.Unwrap(err)
	}
	defer file.Close()
	img, err := readImage(file)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if b := img.Bounds(); b.Dx() != w || b.Dy() != h {
		return tensor.Tensor{}, fmt.Errorf("it has %d x %d pixels and the image %d x %d: a mask has the size of its image", b.Dx(), b.Dy(), w, h)
	}
	classes, err := pixelClasses(img)
	if err != nil {
		return tensor.Tensor{}, err
	}
	for i, v := range classes.Data {
		if int(v) == m.options.Ignore {
			classes.Data[i] = -1
		}
	}
	return f.mask(classes)
}

// mask brings the classes of the pixels of an image, 1 x h x w, to the frame and returns them as
// height x width. What a crop adds around the image has no class, -1. mask changes its argument.
func (f Frame) mask(classes tensor.Tensor) (tensor.Tensor, error) {
	for i := range classes.Data { // raised by 1, since the frame pads with 0, which then becomes -1
		classes.Data[i]++
	}
	f.Channels, f.Interpolation, f.Fill = 0, "nearest", 0
	framed, err := f.Tensor(classes)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := tensor.New(framed.Shape[1:]...)
	for i, v := range framed.Data {
		out.Data[i] = v - 1
	}
	return out, nil
}

// pixelClasses returns the values of the pixels of a grey image, or their indices in the palette: 1
// x h x w.
func pixelClasses(img image.Image) (tensor.Tensor, error) {
	b := img.Bounds()
	out := tensor.New(1, b.Dy(), b.Dx())
	for y := range b.Dy() {
		for x := range b.Dx() {
			var v uint16
			switch img := img.(type) {
			case *image.Paletted:
				v = uint16(img.ColorIndexAt(b.Min.X+x, b.Min.Y+y))
			case *image.Gray:
				v = uint16(img.GrayAt(b.Min.X+x, b.Min.Y+y).Y)
			case *image.Gray16:
				v = img.Gray16At(b.Min.X+x, b.Min.Y+y).Y
			default:
				return out, fmt.Errorf("its pixels are of the kind %v: classes are the values of a grey image, or indices of a palette", modelName(img.ColorModel()))
			}
			out.Data[y*b.Dx()+x] = float32(v)
		}
	}
	return out, nil
}

// modelName returns a word for a colour model that masks cannot have.
func modelName(m color.Model) string {
	switch m {
	case color.RGBAModel, color.NRGBAModel, color.RGBA64Model, color.NRGBA64Model, color.YCbCrModel:
		return "colour"
	}
	return "unknown"
}

// imageSize returns the height and the width of an image file.
func imageSize(path string) (h, w int, err error) {
	file, err := filesys.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	c, _, err := image.DecodeConfig(file)
	if err != nil {
		return 0, 0, fmt.Errorf("unknown image format: %w", err)
	}
	return c.Height, c.Width, nil
}
