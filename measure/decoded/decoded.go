// Package decoded describes outputs of models whose values belong to positions in the image, in the
// one form that measures read, and the labels that they are compared with.
//
// A Format says what the values of one sample are:
//
//	class map   2 x h x w         the class of each position, and its probability; 1 x h x w if the
//	                              model computes no probability
//	boxes       n x (6 + 3 k)     left, top, right, bottom as fractions of the image; score; class;
//	                              then x, y and visibility of each of k keypoints
//	keypoints   k x 3             x and y as fractions of the image, and the value of the heat map there
//	values      c x h x w         as the model computes them
//
// Boxes are in descending order of score. A row whose score is negative ends them. Complete removes
// boxes with low scores, and those that overlap a stronger box of their class:
//
//	f := decoded.Format{Kind: decoded.BoxList, Candidates: 100, Suppress: 0.7, Most: 30}
//	f.Complete(values)                 // of one sample
//	boxes, finite := f.Boxes(nil, values)
package decoded

import (
	"strconv"

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

// Vectors tells whether the first two channels of a map are components of vectors along the image's
// axes, which rotate with the image.
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
	// of a map, or, for boxes and keypoints, of the model's image in pixels
	Height, Width int
	Channels      int      // of a map
	Vectors       Vectors  // of a map of values
	Candidates    int      // number of rows for boxes
	Keypoints     int      // number of keypoints, of each box or of the image
	Classes       int      // number of classes; 0: unknown
	Names         []string // of the classes; nil: unknown
	// Confidence is the least score of boxes. Of keypoints it is the least value of the heat map to
	// be visible; 0: all are.
	Confidence float64
	// Suppress is the IoU above which the weaker of two boxes of a class is removed; 1: none is.
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
func (f *Format) Columns() int { return BoxColumns + 3*f.Keypoints }

// BoxColumns is the number of columns of a box before its keypoints: corners, score and class.
const BoxColumns = 6

const assumedClasses = 256

// ClassLimit returns Classes, or 256 if that is unknown.
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

// A Truth is the annotation of an image: objects with their boxes, or the class of each pixel. The
// framed image is what the model gets after resizing and cropping.
type Truth struct {
	Objects []Object // nil without boxes
	// Area is that of the framed image in pixels of the image file, like Object.Area. It may be 0
	// with a Mask.
	Area float64
	// Cropped reports whether the frame lacks a part of the image, so that objects may be cut off.
	Cropped bool
	// Mask holds the class of each pixel of the framed image, height x width; -1: no class. Without
	// masks it is the zero Tensor.
	Mask tensor.Tensor
}

// An Object is a labelled box.
type Object struct {
	Left, Top, Right, Bottom float64 // fractions of the framed image; outside [0, 1] if cropped off
	Area                     float64 // of the object, in pixels of the image file
	Class                    int     // index into the classes of the data
	Crowd                    bool    // a group of objects: any number of predicted boxes may match
}
