package output

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// findYOLOv10 finds rows after suppression, or the anchors (see findYOLOv8) of a network that needs
// no suppression.
func findYOLOv10(q *query, guess bool) *Decoder {
	if guess {
		return nil
	}
	if d := findSuppressed(q, guess); d != nil {
		return d
	}
	d := findYOLOv8(q, guess)
	if d != nil {
		d.Format.Suppress = 1
	}
	return d
}

// defaultSuppress is the default of Format.Suppress for layouts without suppression.
const defaultSuppress = 0.7

// A table is an output of a YOLO network with the same columns for each of n anchors.
type table struct {
	*Port
	n, columns int
	first      bool // whether the axis of columns comes first
	further    int  // the last columns, which are no scores: see query.further
}

// ranges returns what is known of the values of each column, or nil.
func (t *table) ranges() []Range {
	if t.first {
		return t.Probed.ranges(0)
	}
	return t.Probed.ranges(1)
}

// anchors returns the table of a YOLO network, or nil. If guess is set, it also returns nil unless
// perCell is not 0 for the number of anchors, or the metadata of the file have classes and strides;
// if the boxes are rotated; and if there is a further output with a row for each anchor.
func (q *query) anchors(guess bool) *table {
	p := q.only(func(p *Port) bool { return p.isFloat() && len(p.Sample) == 2 && min(p.Sample[0], p.Sample[1]) > 4 })
	if p == nil {
		return nil
	}
	t := &table{Port: p, first: p.Sample[0] < p.Sample[1]}
	if cells := q.perCell(p.Sample[1]); (cells > 0) != (q.perCell(p.Sample[0]) > 0) {
		t.first = cells > 0
	}
	t.n, t.columns = p.Sample[0], p.Sample[1]
	if t.first {
		t.n, t.columns = t.columns, t.n
	}
	t.further = q.further()
	rest := t.columns - len(q.names())
	if unexplained := rest != yolov8Start && rest != yolov5Start || q.metadata("task") == rotated; t.further > t.columns-yolov5Start || !unexplained {
		t.further = 0
	}
	if guess && (q.perCell(t.n) == 0 && (q.metadata("names") == "" || q.metadata("stride") == "") || q.metadata("task") == rotated) {
		return nil
	}
	// A detector with its boxes in another output has another layout.
	split := func(o Port) bool {
		return o.Name != p.Name && o.isFloat() && len(o.Sample) == 2 && slices.Contains(o.Sample, t.n)
	}
	if guess && slices.ContainsFunc(q.ports, split) {
		return nil
	}
	return t
}

// rotated is the task of detectors of rotated boxes in the metadata that Ultralytics writes.
const rotated = "obb"

// further returns the number of columns that follow the scores of classes: keypoints, the angle of
// rotated boxes, or coefficients of masks, one for each channel of a map of prototypes in another
// output, which is smaller than the image.
func (q *query) further() int {
	if k, size := keypointsOf(q.metadata("kpt_shape")); k > 0 {
		return k * size
	}
	if q.metadata("task") == rotated {
		return 1
	}
	prototypes := q.only(func(p *Port) bool {
		return p.isFloat() && len(p.Sample) == 3 && min(p.Sample[1], p.Sample[2]) > 1 && p.Sample[1] < q.about.Height
	})
	if prototypes == nil {
		return 0
	}
	return prototypes.Sample[0]
}

// perCell returns how many anchors each cell has, 1 or 3, if an image has n anchors in all, or 0 if
// neither gives n. A stride of s pixels divides the image into cells of s x s pixels. The cells are
// those of the strides 8, 16 and 32, or those of 8, 16, 32 and 64.
func (q *query) perCell(n int) int {
	cells := 0
	for _, stride := range []int{8, 16, 32, 64} {
		cells += (q.about.Height / stride) * (q.about.Width / stride)
		if stride >= 32 && cells > 0 {
			for _, each := range []int{1, 3} {
				if n == each*cells {
					return each
				}
			}
		}
	}
	return 0
}

// The column of the first class score: after centre and size, and in YOLO v5 after the probability
// of an object too.
const (
	yolov8Start = 4
	yolov5Start = 5
)

// boxClasses are the numbers of classes of the data sets that most detectors are trained on: Pascal
// VOC, COCO, Objects365, Open Images and LVIS.
var boxClasses = []int{20, 80, 365, 601, 1203}

// start returns the column of the first class score in a table whose layout is not set, or 0 if its
// values are not those of boxes and scores. It follows from the number of classes that have names;
// else from three anchors for each cell, which networks with a probability of an object have; else
// from a column of ones, which is such a probability too; else from a usual number of classes. If
// nothing tells, it is a guess by the order of the axes, and doubt says so.
func (q *query) start(t *table) (start int, doubt string) {
	scored := t.columns - t.further
	ranges := t.ranges()
	names := len(q.names())
	common8, common5 := slices.Contains(boxClasses, scored-yolov8Start), slices.Contains(boxClasses, scored-yolov5Start)
	switch {
	case names > 0 && scored-names == yolov8Start:
		start = yolov8Start
	case names > 0 && scored-names == yolov5Start:
		start = yolov5Start
	case names > 0 || scored <= yolov5Start && q.perCell(t.n) == 3:
		return 0, ""
	case q.perCell(t.n) == 3, ranges != nil && scored > yolov5Start && ranges[yolov8Start].within(1, 1):
		start = yolov5Start
	case common8 != common5:
		start = yolov8Start
		if common5 {
			start = yolov5Start
		}
	default:
		start = yolov5Start
		if t.first || scored <= yolov5Start {
			start = yolov8Start
		}
		if scored > yolov5Start {
			doubt = fmt.Sprintf("output %q has %d columns, which may be boxes with %d classes (yolov8) or with %d classes and the probability of an object (yolov5), and is taken for the %s: set output: {boxes: yolov8} or {boxes: yolov5}",
				t.Name, scored, scored-yolov8Start, scored-yolov5Start, map[int]string{yolov8Start: "former", yolov5Start: "latter"}[start])
		}
	}
	if ranges != nil && (min(ranges[2].Low, ranges[3].Low) < -1 || !areScores(ranges[yolov8Start:scored])) {
		return 0, "" // widths and heights are not negative, and scores are probabilities
	}
	return start, doubt
}

// areScores reports whether all values are probabilities.
func areScores(columns []Range) bool {
	return !slices.ContainsFunc(columns, func(r Range) bool { return !r.within(0, 1) })
}

// findYOLOv8 finds columns of centre, size and class scores for each anchor, possibly with
// keypoints or mask coefficients.
func findYOLOv8(q *query, guess bool) *Decoder { return q.findYOLO(guess, yolov8Start) }

// findYOLOv5 finds the columns of findYOLOv8 with a column for the probability of an object before
// the class scores.
func findYOLOv5(q *query, guess bool) *Decoder { return q.findYOLO(guess, yolov5Start) }

func (q *query) findYOLO(guess bool, start int) *Decoder {
	t := q.anchors(guess)
	if t == nil || t.columns <= start {
		return nil
	}
	doubt := ""
	if guess {
		likely := 0
		if likely, doubt = q.start(t); likely != start {
			return nil
		}
	}
	d := q.newYOLO(t, start)
	d.Doubt = doubt
	return d
}

// findYOLOX finds the columns of findYOLOv5 whose first four are not in pixels but relative to the
// cell of the anchor: the offset of the centre, in cells, and the logarithms of the sizes. Values
// of noise tell them from pixels.
func findYOLOX(q *query, guess bool) *Decoder {
	t := q.anchors(guess)
	if t == nil || t.first || t.columns <= yolov5Start || q.perCell(t.n) != 1 {
		return nil
	}
	pixels := float64(min(q.about.Height, q.about.Width)) / 2 // half of the anchors lie beyond
	ranges := t.ranges()
	if guess && (ranges == nil || t.Probed.High >= pixels || !t.Probed.beyond() || ranges[yolov8Start].within(1, 1) || !areScores(ranges[yolov8Start:])) {
		return nil
	}
	if names := len(q.names()); guess && names > 0 && names != t.columns-yolov5Start {
		return nil
	}
	f := decoded.Format{Outputs: []string{t.Name}, Suppress: defaultSuppress, Classes: t.columns - yolov5Start}
	return q.newBoxesOf(f, t.n, f.Classes, centred, inPixels, func(b *onnx.Builder) boxSource {
		x := float(b, t.Name)
		corners, strides := q.cells(t.n)
		stride := b.Const("", strides)
		centre := b.Mul(b.Add(column(b, x, 0, 2), b.Const("", corners)), stride)
		size := b.Mul(b.Exp(column(b, x, 2, 4)), stride)
		return boxSource{boxes: b.Concat(2, centre, size), all: b.Mul(column(b, x, yolov5Start, t.columns), column(b, x, 4, 5))}
	})
}

// cells returns the columns and rows of the n cells of perCell in an image, 1 x n x 2, and their
// strides, 1 x n x 1.
func (q *query) cells(n int) (corners, strides tensor.Tensor) {
	corners, strides = tensor.New(1, n, 2), tensor.New(1, n, 1)
	at := 0
	for stride := 8; at < n; stride *= 2 {
		for y := range q.about.Height / stride {
			for x := range q.about.Width / stride {
				corners.Data[2*at], corners.Data[2*at+1], strides.Data[at] = float32(x), float32(y), float32(stride)
				at++
			}
		}
	}
	return corners, strides
}

// newYOLO returns the decoder of a table. start is the column of the first class score.
func (q *query) newYOLO(t *table, start int) *Decoder {
	f := decoded.Format{Outputs: []string{t.Name}, Suppress: defaultSuppress, Classes: t.columns - t.further - start}
	// Other columns may follow the classes too.
	if len(q.ports) > 1 || q.metadata("kpt_shape") != "" {
		if known := max(q.setting.Classes, len(q.names())); known > 0 && known <= f.Classes {
			f.Classes = known
		}
	}
	if k, size := keypointsOf(q.metadata("kpt_shape")); size == 3 && f.Classes+3*k == t.columns-start {
		f.Keypoints = k
	}
	fractions := boxFractions(t.Probed, t.ranges())
	if fractions && q.perCell(t.n) == 0 {
		f.Suppress = 0 // the queries of a transformer, such as RT-DETR, which suppresses by itself
	}
	return q.newBoxesOf(f, t.n, f.Classes, centred, fractions, func(b *onnx.Builder) boxSource {
		x := float(b, t.Name)
		if t.first {
			x = b.Transpose(x, 0, 2, 1)
		}
		end := start + f.Classes
		s := boxSource{boxes: column(b, x, 0, 4), all: column(b, x, start, end), keypointColumns: 3 * f.Keypoints}
		if start == yolov5Start {
			s.all = b.Mul(s.all, column(b, x, 4, 5))
		}
		if f.Keypoints > 0 {
			s.keypoints = column(b, x, end, end+3*f.Keypoints)
		}
		return s
	})
}

// boxFractions reports whether the first four columns of a table are known to be fractions of the
// image rather than pixels.
func boxFractions(p *Probed, ranges []Range) bool {
	if len(ranges) < 4 {
		return p.Fractions()
	}
	varies := false
	for _, r := range ranges[:4] {
		if !r.within(0, 1) {
			return false
		}
		varies = varies || r.High > r.Low
	}
	return varies
}

// keypointsOf returns the number of keypoints in the metadata kpt_shape that Ultralytics writes, and
// the number of values of each: of "[17, 3]" 17 keypoints of x, y and visibility. It returns 0 if
// there are none.
func keypointsOf(text string) (n, size int) {
	parts := strings.Split(strings.Trim(text, "[]() "), ",")
	if len(parts) != 2 {
		return 0, 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(parts[0]))
	size, err2 := strconv.Atoi(strings.TrimSpace(parts[1]))
	if err != nil || err2 != nil || n <= 0 || n >= 1000 || size != 2 && size != 3 {
		return 0, 0
	}
	return n, size
}
