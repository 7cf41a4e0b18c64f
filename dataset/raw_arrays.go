package dataset

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// An Array describes one of the arrays that a ready-made input (see RawArrays) consists of.
type Array struct {
	Name    string // key in the npz file, which is the name of an input of the model; "": npy file
	Shape   []int  // of one sample
	Integer bool   // whether the values are integers or booleans
}

// Len returns the number of values of one sample.
func (a Array) Len() int { return tensor.Size(a.Shape) }

// Maps returns the shape c x h x w of the array as feature maps, which transformations of maps apply
// to: the last two axes are those of space, such as of the frames of a video. It is nil for integers
// and for arrays of fewer axes than three.
func (a Array) Maps() []int {
	n := len(a.Shape)
	if a.Integer || n < 3 || a.Len() == 0 {
		return nil
	}
	h, w := a.Shape[n-2], a.Shape[n-1]
	return []int{a.Len() / (h * w), h, w}
}

// MapsOf returns Array.Maps of the only array of a sample, or nil if it has several.
func MapsOf(arrays []Array) []int {
	if len(arrays) != 1 {
		return nil
	}
	return arrays[0].Maps()
}

// Equal reports whether two arrays have the same name and shape.
func (a Array) Equal(b Array) bool { return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) }

// ArraysText describes the arrays of a sample, for instance "arrays of input_ids [128] and mask
// [128]". Without arrays it returns "images or audio".
func ArraysText(arrays []Array) string {
	if len(arrays) == 0 {
		return "images or audio"
	}
	texts := make([]string, len(arrays))
	for i, a := range arrays {
		texts[i] = strings.TrimSpace(fmt.Sprintf("%s %v", a.Name, a.Shape))
	}
	return "arrays of " + strings.Join(texts, " and ")
}

// arraysOf returns the arrays of the samples of a source, or nil if it is not a RawArrays.
func arraysOf(src Source) []Array {
	if raw, ok := src.(*RawArrays); ok {
		return raw.described
	}
	return nil
}

// RawArraysOptions are the options of OpenRawArrays.
type RawArraysOptions struct {
	Inputs    string // an .npy file, or an .npz file with an array for each input of the model
	Key       string // the only array of an npz file that is an input; "": all but the labels
	Labels    string // an .npy or .npz file with an integer for each sample; "": an array of Inputs
	LabelsKey string // key of the labels in their npz file; "": "labels", if there is such an array
}

// A RawArrays is a Source of ready-made inputs, such as token ids with an attention mask, which a
// model takes as they are. The Input of a sample is one vector: the values of its arrays, one array
// after the other. Sample.Arrays describes them. The Frame changes nothing.
type RawArrays struct {
	labelledArrays
	arrays    []npyArray // the inputs
	described []Array    // name and shape of each input
	values    int        // number of values of one sample
}

// OpenRawArrays opens arrays whose first axis counts the samples. Their classes are the numbers
// from "0" to the largest label.
func OpenRawArrays(ctx context.Context, o RawArraysOptions) (*RawArrays, error) {
	d := newDigest("raw arrays")
	if err := d.watch(ctx, o.Inputs); err != nil {
		return nil, fmt.Errorf("opening arrays: %w", err)
	}
	file, err := openArchive(ctx, o.Inputs)
	if err != nil {
		return nil, fmt.Errorf("opening arrays: %w", err)
	}
	a := &RawArrays{labelledArrays: labelledArrays{file: file, name: filepath.Base(o.Inputs)}}
	if err := a.open(ctx, o, d); err != nil {
		file.Close()
		return nil, fmt.Errorf("opening arrays: %w", err)
	}
	return a, nil
}

func (a *RawArrays) open(ctx context.Context, o RawArraysOptions, d digest) error {
	keys := a.inputKeys(o)
	if len(keys) == 0 {
		return fmt.Errorf("%s has no arrays besides the labels", o.Inputs)
	}
	for _, key := range keys {
		one, err := a.file.open(ctx, key)
		if err != nil {
			return err
		}
		if err := a.add(key, one); err != nil {
			return fmt.Errorf("%s: %w", o.Inputs, err)
		}
	}
	// If o names no labels, they are the array "labels": readLabels looks for that if the inputs
	// are called "images".
	if err := a.readLabels(ctx, o.Labels, o.LabelsKey, "images", a.Len()); err != nil {
		return err
	}
	d.add(a.name, a.described, a.labels)
	err := d.addFile(ctx, o.Inputs)
	a.setFingerprint(d)
	return err
}

// inputKeys returns the sorted keys of the inputs: all but the labels.
func (a *RawArrays) inputKeys(o RawArraysOptions) []string {
	switch {
	case o.Key != "":
		return []string{o.Key}
	case a.file.members == nil:
		return []string{""}
	}
	labels := o.LabelsKey
	switch {
	case o.Labels != "":
		labels = ""
	case labels == "":
		labels = a.file.labelsKey("images")
	}
	return slices.DeleteFunc(slices.Sorted(slices.Values(a.file.keys)), func(key string) bool { return key == labels })
}

// add adds an array to the inputs.
func (a *RawArrays) add(key string, one npyArray) error {
	named := "the array"
	if key != "" {
		named = fmt.Sprintf("array %q", key)
	}
	switch {
	case len(one.shape) == 0:
		return fmt.Errorf("%s is a number: its first axis must count the samples", named)
	case len(a.arrays) > 0 && one.shape[0] != a.Len():
		return fmt.Errorf("%s has %d rows, and array %q has %d: save one row for each sample", named, one.shape[0], a.described[0].Name, a.Len())
	case one.rowLen() > maxValues-a.values:
		return fmt.Errorf("%s of shape %v has too many values for a sample: at most %d", named, one.shape, maxValues)
	}
	a.arrays = append(a.arrays, one)
	a.described = append(a.described, Array{Name: key, Shape: slices.Clone(one.shape[1:]), Integer: !one.float()})
	a.values += one.rowLen()
	return nil
}

func (a *RawArrays) Len() int { return a.arrays[0].shape[0] }

func (a *RawArrays) Describe(i int) Sample {
	s := a.labelledArrays.Describe(i)
	s.Arrays = a.described
	return s
}

// At reads sample i. The error is a *BadSample if a value is not finite in float32, or is an
// integer that float32 does not represent exactly.
func (a *RawArrays) At(ctx context.Context, i int, _ Frame) (Sample, error) {
	if err := checkAccess(ctx, "arrays", i, a.Len()); err != nil {
		return Sample{}, err
	}
	return a.watched.read(ctx, 0, func() (Sample, error) { return a.at(i) })
}

func (a *RawArrays) at(i int) (Sample, error) {
	s := a.Describe(i)
	s.Input = tensor.New(a.values)
	from := 0
	for k := range a.arrays {
		one := &a.arrays[k]
		n := one.rowLen()
		raw, err := one.read(i*n, n)
		if err != nil {
			return s, fmt.Errorf("reading %s: %w", s.Name, err)
		}
		if err := one.decodeExact(raw, s.Input.Data[from:from+n]); err != nil {
			if name := a.described[k].Name; name != "" {
				err = fmt.Errorf("array %q: %w", name, err)
			}
			return s, &BadSample{Name: s.Name, Err: err}
		}
		from += n
	}
	return s, nil
}

// maxExact is the largest integer up to which float32 represents all integers.
const maxExact = 1 << 24

// decodeExact converts bytes to float32. It returns an error for values that are not finite in
// float32, and for integers above maxExact in magnitude.
func (a *npyArray) decodeExact(raw []byte, dst []float32) error {
	for i := range dst {
		v := a.value(raw[i*a.bytes:])
		switch {
		case math.IsNaN(v) || math.Abs(v) > math.MaxFloat32:
			return fmt.Errorf("value %d is %v", i, v)
		case !a.float() && math.Abs(v) > maxExact:
			return fmt.Errorf("value %d is %.0f: integers up to %d are supported", i, v, maxExact)
		}
		dst[i] = float32(v)
	}
	return nil
}
