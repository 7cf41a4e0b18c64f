// Package output decodes outputs of models whose values belong to positions in the image: class
// maps, boxes with keypoints, keypoints of heat maps, and maps of values such as depth or normals.
//
// Find recognises the layout of a model's outputs from their names, types and shapes, or gets it
// from a Setting. It returns a Decoder, which adds nodes to the model's graph that convert the
// outputs to one float32 tensor with a fixed shape for each sample:
//
//	class map   2 x h x w         the class of each position, and its probability; 1 x h x w if the
//	                              model computes no probability
//	boxes       n x (6 + 3 k)     left, top, right, bottom as fractions of the image; score; class;
//	                              then x, y and visibility of each of k keypoints
//	keypoints   k x 3             x and y as fractions of the image, and the value of the heat map there
//	values      c x h x w         as the model computes them
//
// Boxes are in descending order of score. A row whose score is negative ends them. Complete removes
// boxes with low scores and, unless the model does so, suppresses boxes that overlap a stronger box
// of their class:
//
//	d, err := output.Find(about, output.Setting{Boxes: "yolov8"})
//	row := d.Build(b)               // batch x n x 6, in a graph under construction
//	d.Format.Complete(values)       // after a run, for each sample
//	boxes, finite := d.Format.Boxes(nil, values)
package output

import (
	"strconv"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Kind tells what a decoded output consists of.
type Kind string

// The kinds, in the order of the table above.
const (
	ClassMap  Kind = "class-map"
	BoxList   Kind = "boxes"
	PointList Kind = "keypoints"
	ValueMap  Kind = "values"
)

// Vectors tells whether the first two channels of a map of values are components of vectors along
// the axes of the image. Such vectors have to be rotated if the image is.
type Vectors string

// The directions in which the two components are positive.
const (
	NoVectors Vectors = ""
	YDown     Vectors = "right, down"
	YUp       Vectors = "right, up"
)

// A Format describes the decoded output of one sample.
type Format struct {
	Kind    Kind
	Layout  string   // in which form the ONNX file has its outputs, such as "detr" or "logits"
	Outputs []string // names of the file's outputs that are decoded
	// Height and Width are the size of a map, or, for boxes and keypoints, of the model's image in
	// pixels.
	Height, Width int
	Channels      int      // of a map
	Vectors       Vectors  // of a map of values
	Candidates    int      // number of rows for boxes
	Keypoints     int      // number of keypoints, of each box or of the image
	Classes       int      // number of classes; 0: unknown
	Names         []string // of the classes; nil: unknown
	// Confidence is the least score of boxes: others are removed. Of keypoints it is the least
	// value of the heat map for the keypoint to be visible; 0: all are visible.
	Confidence float64
	// Suppress is the intersection over union above which the weaker of two boxes of a class is
	// removed; 1: none is removed.
	Suppress float64
	Most     int // largest number of boxes that remain
}

// Shape returns the shape of the decoded output of one sample.
func (f *Format) Shape() []int {
	switch f.Kind {
	case BoxList:
		return []int{f.Candidates, f.Columns()}
	case PointList:
		return []int{f.Keypoints, 3}
	}
	return []int{f.Channels, f.Height, f.Width}
}

// Columns returns the number of columns of a box.
func (f *Format) Columns() int { return boxColumns + 3*f.Keypoints }

// boxColumns is the number of columns of a box before its keypoints: corners, score and class.
const boxColumns = 6

// assumedClasses is the number of classes if neither the file nor the settings state it.
const assumedClasses = 256

// ClassLimit returns the number of classes that a decoded output may contain: Classes, or 256 if
// that is unknown.
func (f *Format) ClassLimit() int {
	if f.Classes > 0 {
		return f.Classes
	}
	return assumedClasses
}

// ClassName returns the name of a class, or its number.
func (f *Format) ClassName(k int) string {
	if k >= 0 && k < len(f.Names) {
		return f.Names[k]
	}
	return strconv.Itoa(k)
}

// A Setting states how a model's outputs are decoded. The zero Setting infers everything. At most
// one of ClassMap, Boxes, Keypoints and Values is set.
type Setting struct {
	ClassMap   string   // "logits", "probabilities" or "labels"
	Boxes      string   // name of a layout of boxes, such as "detr"; see boxLayouts
	Keypoints  string   // "heat-maps"
	Values     string   // what a map holds: "depth", "normals", "normals-y-up", "image" or "map"
	Outputs    []string // names of the outputs, in the order of the layout; empty: inferred
	Classes    int      // number of classes, if the file does not state it; 0: inferred
	Confidence float64  // see Format; 0: 0.01 for boxes, none for keypoints
	Suppress   float64  // see Format; 0: 0.7 if the model does not suppress boxes, else 1
	Most       int      // see Format; 0: 300
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
}

// About describes a model for Find.
type About struct {
	Ports         []Port
	Height, Width int                     // of its image, in pixels
	Channels      int                     // of its image
	Scored        bool                    // whether an output may be class scores of the whole image
	Metadata      func(key string) string // of the file
	Names         []string                // of its classes, from another file; may be nil
}

// A Decoder adds the decoding of a model's outputs to its graph.
type Decoder struct {
	Format Format
	// Unbatched reports whether the outputs have no batch axis, so that a run takes one image.
	Unbatched bool
	// Guessed reports whether the layout was inferred.
	Guessed bool
	boxes   int // number of boxes of an image in the file's outputs; -1: free
	build   func(b *onnx.Builder) onnx.Value
}

// Build adds nodes to a graph that has the model's outputs as tensors. The result is batch x
// Format.Shape().
func (d *Decoder) Build(b *onnx.Builder) onnx.Value { return d.build(b) }
