package dataset

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/tensor"
)

// ArraysOptions are the options of OpenArrays: the NumPy arrays that hold images and labels.
type ArraysOptions struct {
	Images string // an .npy or .npz file of N x H x W x C, N x C x H x W or N x H x W
	// ImagesKey is the array of images in an npz file. If it is "", it is the only array, or the
	// first of images, x, data, test_images and x_test that the file has.
	ImagesKey string
	// Labels is an .npy or .npz file of N integers. If it and LabelsKey are "", labels are read
	// from the file of images, if that has an array such as y_test for x_test.
	Labels    string
	LabelsKey string // the array of labels in an npz file
	// Layout is "NHWC", "NCHW" or "NHW". If it is "", the axis of size 1 or 3 holds the channels,
	// and an array of H x W x 3 is one image.
	Layout string
	Max    float64 // the value of white; 0: 255 for uint8, 1 for other types
	Raw    bool    // accept values outside 0..Max, as of normalised images; else they are an error
}

// An Arrays is a Source of NumPy arrays. Arrays in npy files and in uncompressed npz files stay in
// the file and are read image by image.
type Arrays struct {
	labelledArrays
	images       npyArray
	c, h, w      int // of an image
	channelsLast bool
	max          float64 // the value of white
	raw          bool    // values outside 0..max are accepted
}

// labelledArrays are the open file of a source of arrays, and the labels of its samples.
type labelledArrays struct {
	metadata
	file   archive
	name   string
	labels []int // nil: no labels
}

func (a *labelledArrays) Close() error { return a.file.Close() }

func (a *labelledArrays) Describe(i int) Sample {
	s := Sample{Index: i, Name: fmt.Sprintf("%s#%d", a.name, i), Label: NoLabel}
	if a.labels != nil {
		s.Label = a.labels[i]
	}
	return s
}

// OpenArrays opens images and their labels, if there are any. The classes are the numbers from "0"
// to the largest label.
func OpenArrays(ctx context.Context, o ArraysOptions) (*Arrays, error) {
	a, err := openArraySource(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("opening arrays: %w", err)
	}
	return a, nil
}

func openArraySource(ctx context.Context, o ArraysOptions) (*Arrays, error) {
	d := newDigest("arrays")
	if err := d.watch(ctx, o.Images); err != nil {
		return nil, err
	}
	file, err := openArchive(ctx, o.Images)
	if err != nil {
		return nil, err
	}
	a := &Arrays{labelledArrays: labelledArrays{file: file, name: filepath.Base(o.Images)}, raw: o.Raw, max: o.Max}
	if err := a.open(ctx, o, d); err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

func (a *Arrays) open(ctx context.Context, o ArraysOptions, d digest) error {
	key := o.ImagesKey
	var err error
	if key == "" {
		if key, err = a.file.imagesKey(); err != nil {
			return err
		}
	}
	if a.images, err = a.file.open(ctx, key); err != nil {
		return err
	}
	if err := a.setLayout(o.Layout); err != nil {
		return fmt.Errorf("%s: %w", o.Images, err)
	}
	if a.max == 0 {
		a.max = 1
		if a.images.kind == 'u' && a.images.bytes == 1 { // uint8
			a.max = 255
		}
	}
	if !(a.max > 0) {
		return fmt.Errorf("%s: max is %v: set it to the value of white, above 0", o.Images, a.max)
	}
	if err := a.readLabels(ctx, o.Labels, o.LabelsKey, key, a.Len()); err != nil {
		return err
	}
	d.add(a.name, key, a.c, a.h, a.w, a.channelsLast, a.max, a.raw, a.labels)
	err = d.addFile(ctx, o.Images)
	a.setFingerprint(d)
	return err
}

// setLayout sets the channels, height and width of an image from the axes in layout; "": the layout
// is detected.
func (a *Arrays) setLayout(layout string) error {
	s := a.images.shape
	if layout == "" && len(s) == 3 && s[2] == 3 && s[1] > 3 { // one image, not images of width 3
		s = append([]int{1}, s...)
		a.images.shape = s
	}
	if layout == "" {
		var err error
		if layout, err = layoutOf(s); err != nil {
			return err
		}
	}
	if len(layout) != len(s) {
		return fmt.Errorf("layout %s does not fit shape %v", layout, s)
	}
	switch layout {
	case "NHW":
		a.c, a.h, a.w = 1, s[1], s[2]
	case "NHWC":
		a.h, a.w, a.c, a.channelsLast = s[1], s[2], s[3], true
	case "NCHW":
		a.c, a.h, a.w = s[1], s[2], s[3]
	default:
		return fmt.Errorf("unknown layout %q: use NHWC, NCHW or NHW", layout)
	}
	if a.images.rowLen() > maxValues { // more than 2^28 values in one image
		return fmt.Errorf("images of shape %v are too large", s[1:])
	}
	return nil
}

// layoutOf returns the layout whose channel axis has 1 or 3 entries.
func layoutOf(shape []int) (string, error) {
	image := func(c int) bool { return c == 1 || c == 3 }
	switch {
	case len(shape) == 3:
		return "NHW", nil
	case len(shape) != 4:
		return "", fmt.Errorf("an array of shape %v does not hold images, which are N x H x W x C, N x C x H x W or N x H x W: set layout: raw if the model takes the array as it is", shape)
	case image(shape[1]) && !image(shape[3]):
		return "NCHW", nil
	case image(shape[3]) && !image(shape[1]):
		return "NHWC", nil
	}
	return "", fmt.Errorf("the channel axis of shape %v is ambiguous: set the layout, NHWC or NCHW", shape)
}

// readLabels reads the labels of n samples, if there are any, from the file labels, or, if that is
// "", from the file of the images.
func (a *labelledArrays) readLabels(ctx context.Context, labels, key, imagesKey string, n int) error {
	file := a.file
	if labels != "" {
		var err error
		if file, err = openArchive(ctx, labels); err != nil {
			return err
		}
		defer file.Close()
		if key == "" && len(file.keys) == 1 {
			key = file.keys[0]
		}
		if key == "" && file.members != nil {
			key = file.labelsKey(imagesKey)
		}
	} else if key == "" {
		if key = file.labelsKey(imagesKey); key == "" {
			return nil
		}
	}
	array, err := file.open(ctx, key)
	if err != nil {
		return err
	}
	if a.labels, err = array.integers(n); err != nil {
		return fmt.Errorf("%s: labels: %w", file.path, err)
	}
	a.classes = numberNames(slices.Max(a.labels))
	return nil
}

// maxLabel bounds integer labels, since each number from 0 to the largest is a class.
const maxLabel = 1 << 20

// integers reads n labels from an array of shape n or n x 1. A label of -1 is NoLabel.
func (a *npyArray) integers(n int) ([]int, error) {
	if len(a.shape) == 0 || a.shape[0] != n || a.rowLen() != 1 {
		return nil, fmt.Errorf("shape %v does not match %d images", a.shape, n)
	}
	raw, err := a.read(0, n)
	if err != nil {
		return nil, err
	}
	labels := make([]int, n)
	for i := range labels {
		v := a.value(raw[i*a.bytes:])
		if v != math.Trunc(v) || v < NoLabel || v > maxLabel {
			return nil, fmt.Errorf("label %d is %v: labels are whole numbers from 0 to %d, or -1 for none", i, v, maxLabel)
		}
		labels[i] = int(v)
	}
	return labels, nil
}

// numberNames returns the names "0" to highest, or nil if highest is NoLabel.
func numberNames(highest int) []string {
	var names []string
	for i := range highest + 1 {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

func (a *Arrays) Len() int { return a.images.shape[0] }

// At reads image i and brings it to the frame. An image of uint8 with white at 255 is resampled in
// 8 bits, as PIL does, and others in float32. If a value is not finite or out of range, the error
// is a *BadSample.
func (a *Arrays) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "arrays", i, a.Len()); err != nil {
		return Sample{}, err
	}
	return a.watched.read(ctx, 0, func() (Sample, error) { return a.at(i, frame) })
}

func (a *Arrays) at(i int, frame Frame) (Sample, error) {
	s := a.Describe(i)
	n := a.c * a.h * a.w
	raw, err := a.images.read(i*n, n)
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	if a.images.kind == 'u' && a.images.bytes == 1 && a.max == 255 {
		s.Input, err = frame.fromBytes(planes(raw, a.c, a.h, a.w, a.channelsLast), a.c, a.h, a.w)
		return s, err
	}
	t := tensor.New(a.c, a.h, a.w)
	if err := a.decode(t.Data, raw); err != nil {
		return s, &BadSample{Name: s.Name, Err: err}
	}
	t.Data = planes(t.Data, a.c, a.h, a.w, a.channelsLast)
	s.Input, err = frame.Tensor(t)
	return s, err
}

// decode converts the bytes of an image to values, divided by the value of white.
func (a *Arrays) decode(dst []float32, raw []byte) error {
	for i := range dst {
		v := a.images.value(raw[i*a.images.bytes:])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("value %d is %v", i, v)
		}
		if !a.raw && (v < 0 || v > a.max) {
			return fmt.Errorf("value %d is %v, outside 0 to %v: set max to the value of white, or use images that are not normalised", i, v, a.max)
		}
		dst[i] = float32(v / a.max)
	}
	return nil
}

// planes converts values to c x h x w if the channels are the last axis.
func planes[T uint8 | float32](v []T, c, h, w int, channelsLast bool) []T {
	if !channelsLast || c == 1 {
		return v
	}
	out := make([]T, len(v))
	for j := range c {
		plane := out[j*h*w : (j+1)*h*w]
		for i := range plane {
			plane[i] = v[i*c+j]
		}
	}
	return out
}
