// Package output decodes outputs of models whose values belong to positions in the image: class
// maps, boxes with keypoints, keypoints of heat maps, and maps of values such as depth or normals.
//
// Find recognises the layout of a model's outputs from their names, types and shapes, or gets it
// from a Setting. It returns a Decoder, which adds nodes to the model's graph that convert the
// outputs to the form of a decoded.Format, one float32 tensor:
//
//	d, err := output.Find(about, output.Setting{Boxes: "yolov8"})
//	row := d.Build(b)               // batch x n x 6, in a graph under construction
//	d.Format.Complete(values)       // after a run, for each sample
//	boxes, finite := d.Format.Boxes(nil, values)
package output

import (
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Setting states how a model's outputs are decoded. The zero Setting infers everything. At most
// one of ClassMap, Boxes, Keypoints and Values is set.
type Setting struct {
	ClassMap   string   // "logits", "probabilities" or "labels"
	Boxes      string   // name of a layout of boxes, such as "detr"; see boxLayouts
	Keypoints  string   // "heat-maps"
	Values     string   // what a map holds: "depth", "normals", "normals-y-up", "image" or "map"
	Outputs    []string // names of the outputs, in the order of the layout; empty: inferred
	Classes    int      // number of classes, if the file does not state it; 0: inferred
	Confidence float64  // see decoded.Format; 0: 0.01 for boxes, none for keypoints
	Suppress   float64  // see decoded.Format; 0: 0.7 if the model does not suppress boxes, else 1
	Most       int      // see decoded.Format; 0: 300
	// Fractions states whether the coordinates of boxes are fractions of the image rather than
	// pixels; nil: as usual for the layout.
	Fractions *bool
}

// IsSet reports whether the setting names a kind of output.
func (s Setting) IsSet() bool {
	return s.ClassMap != "" || s.Boxes != "" || s.Keypoints != "" || s.Values != ""
}

// A Port is an output of a model.
type Port struct {
	Name   string
	Type   onnx.Type
	Sizes  []int       // as declared, with the batch; -1: free. Nil: unknown
	Sample []int       // shape of one sample; nil if the first axis is not the batch
	Axes   tensor.Axes // meaning of the axes, such as "NHWC"; "": unknown
	After  string      // "Softmax", "LogSoftmax" or "Sigmoid" if its values are those of one; else ""
	Probed *Probed     // nil: unknown
}

// Probed is what the values of an output in runs on noise tell.
type Probed struct {
	Low, High float64 // the least and the largest value; NaN: some are not finite
	// Sums is the axis of a sample over which the values sum to 1 and are not negative, as
	// probabilities do; -1: none.
	Sums int
	// Ordered reports whether the rows of four values are corners: in each the third is not below
	// the first, and the fourth not below the second.
	Ordered bool
	// Ranges holds, of a sample with two axes, what the values tell at each index of the first axis,
	// and of the second; nil for an axis of more than MaxRanges.
	Ranges [2][]Range
}

// MaxRanges is the largest size of an axis that Probed.Ranges describes.
const MaxRanges = 4096

// A Range holds the least and the largest of some values, and whether all are whole numbers.
type Range struct {
	Low, High float64
	Whole     bool
}

// within reports whether the values are between two bounds, but for rounding.
func (r Range) within(low, high float64) bool {
	const rounding = 1e-2
	return r.Low >= low-rounding && r.High <= high+rounding
}

// ranges returns what is known at each index of an axis of a sample, or nil.
func (p *Probed) ranges(axis int) []Range {
	if p == nil {
		return nil
	}
	return p.Ranges[axis]
}

// Fractions reports whether all values are known to be between 0 and 1, and not all the same.
func (p *Probed) Fractions() bool {
	const rounding = 1e-2
	return p != nil && p.Low >= -rounding && p.High <= 1+rounding && p.High > p.Low
}

// beyond reports whether values are known not to lie between 0 and 1.
func (p *Probed) beyond() bool { return p != nil && p.High > p.Low && !p.Fractions() }

// sums reports whether the values are known to be probabilities over an axis of a sample.
func (p *Probed) sums(axis int) bool { return p != nil && p.Sums == axis }

// About describes a model for Find.
type About struct {
	Ports         []Port
	Height, Width int                     // of its image, in pixels
	Channels      int                     // of its image
	Scored        bool                    // whether an output may be class scores of the whole image
	Metadata      func(key string) string // of the file
	Names         []string                // of its classes, from another file; may be nil
	Depth         bool                    // whether another file says that it estimates depth
}

// A Decoder adds the decoding of a model's outputs to its graph.
type Decoder struct {
	Format decoded.Format
	// Unbatched reports whether the outputs have no batch axis, so that a run takes one image.
	Unbatched bool
	// Guessed reports whether the layout was inferred.
	Guessed bool
	// Doubt says that only the shape of the output speaks for an inferred layout; "": more does.
	Doubt string
	boxes int // number of boxes of an image in the file's outputs; -1: free
	build func(b *onnx.Builder) onnx.Value
}

// Build adds nodes to a graph that has the model's outputs as tensors. The result is batch x
// Format.Shape().
func (d *Decoder) Build(b *onnx.Builder) onnx.Value { return d.build(b) }
