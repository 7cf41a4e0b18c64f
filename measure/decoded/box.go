package decoded

import (
	"math"
	"slices"
)

// A Box is the bounding box of a detected or labelled object.
type Box struct {
	Left, Top, Right, Bottom float64 // fractions of the image
	Score                    float64
	Class                    int
	Keypoints                []Keypoint
}

// A Keypoint is a point of an object, in fractions of the image.
type Keypoint struct {
	X, Y    float64
	Visible bool
}

// Area returns the area as a fraction of the image, 0 if corners are in the wrong order.
func (b Box) Area() float64 { return max(b.Right-b.Left, 0) * max(b.Bottom-b.Top, 0) }

// IoU returns the intersection over union of two boxes.
func IoU(a, b Box) float64 {
	w, h := min(a.Right, b.Right)-max(a.Left, b.Left), min(a.Bottom, b.Bottom)-max(a.Top, b.Top)
	if w <= 0 || h <= 0 {
		return 0
	}
	common := w * h
	return common / (a.Area() + b.Area() - common)
}

// Complete removes boxes from row, the decoded output of one sample, in place. A row lists boxes,
// each as Left, Top, Right, Bottom, Score and Class, followed by x, y and visibility of its
// keypoints. Removed are boxes with a score below Confidence; then, in each class, those whose IoU
// with a remaining box of higher score exceeds Suppress; then all but the best Most. row has
// Candidates boxes by descending score; those that remain move to the front, and the others get the
// score -1. Boxes that are not finite remain, so that Boxes reports them, unless their score is
// below Confidence. Other kinds of output are not changed.
func (f *Format) Complete(row []float32) {
	if f.Kind != BoxList {
		return
	}
	columns := f.Columns()
	var kept []int32
	var boxes []Box
	for i := range f.Candidates {
		r := row[i*columns : (i+1)*columns]
		if !finiteRow(r) {
			if score := r[4]; score >= float32(f.Confidence) || score != score {
				kept, boxes = append(kept, int32(i)), append(boxes, Box{Class: -1})
			}
			continue
		}
		if r[4] < float32(f.Confidence) || len(kept) >= f.Most {
			continue
		}
		b := boxOf(r)
		if f.Suppress < 1 && slices.ContainsFunc(boxes, func(o Box) bool { return o.Class == b.Class && IoU(o, b) > f.Suppress }) {
			continue
		}
		kept, boxes = append(kept, int32(i)), append(boxes, b)
	}
	for to, from := range kept {
		copy(row[to*columns:(to+1)*columns], row[int(from)*columns:(int(from)+1)*columns])
	}
	for i := len(kept); i < f.Candidates; i++ {
		clear(row[i*columns : (i+1)*columns])
		row[i*columns+4] = -1
	}
}

func finiteRow(r []float32) bool {
	for _, v := range r {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return false
		}
	}
	return true
}

func boxOf(r []float32) Box {
	return Box{Left: float64(r[0]), Top: float64(r[1]), Right: float64(r[2]), Bottom: float64(r[3]), Score: float64(r[4]), Class: int(r[5])}
}

// Boxes appends to dst the boxes of a decoded output, after Complete has changed it. It reports
// whether all are finite.
func (f *Format) Boxes(dst []Box, row []float32) (boxes []Box, finite bool) {
	columns := f.Columns()
	for i := range f.Candidates {
		r := row[i*columns : (i+1)*columns]
		if !finiteRow(r) {
			return dst, false
		}
		if r[4] < 0 {
			break
		}
		b := boxOf(r)
		for k := range f.Keypoints {
			p := r[BoxColumns+3*k:]
			b.Keypoints = append(b.Keypoints, Keypoint{X: float64(p[0]), Y: float64(p[1]), Visible: p[2] > 0})
		}
		dst = append(dst, b)
	}
	return dst, true
}

// SetBoxes writes boxes to row, a decoded output, in the form that Complete leaves. It returns the
// number of boxes written, at most Candidates, for which row has room.
func (f *Format) SetBoxes(row []float32, boxes []Box) int {
	columns, n := f.Columns(), min(len(boxes), f.Candidates)
	for i := range f.Candidates {
		r := row[i*columns : (i+1)*columns]
		clear(r)
		if i >= n {
			r[4] = -1
			continue
		}
		b := boxes[i]
		copy(r, []float32{float32(b.Left), float32(b.Top), float32(b.Right), float32(b.Bottom), float32(b.Score), float32(b.Class)})
		for k, p := range b.Keypoints {
			at := r[BoxColumns+3*k:]
			at[0], at[1] = float32(p.X), float32(p.Y)
			if p.Visible {
				at[2] = 1
			}
		}
	}
	return n
}
