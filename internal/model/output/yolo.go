package output

import (
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

// anchors returns the output with the anchors of a YOLO network (see findYOLOv8), the number of
// anchors and of columns, and whether the axis of columns comes first. If guess is set, it returns
// nil unless perCell is not 0 for the number of anchors, or the metadata of the file have classes
// and strides; and if there is a further output with a row for each anchor.
func (q *query) anchors(guess bool) (p *Port, n, columns int, first bool) {
	p = q.only(func(p *Port) bool { return p.isFloat() && len(p.Sample) == 2 && min(p.Sample[0], p.Sample[1]) > 4 })
	if p == nil {
		return nil, 0, 0, false
	}
	first = p.Sample[0] < p.Sample[1]
	if cells := q.perCell(p.Sample[1]); (cells > 0) != (q.perCell(p.Sample[0]) > 0) {
		first = cells > 0
	}
	n, columns = p.Sample[0], p.Sample[1]
	if first {
		n, columns = columns, n
	}
	if guess && q.perCell(n) == 0 && (q.metadata("names") == "" || q.metadata("stride") == "") {
		return nil, 0, 0, false
	}
	// A detector with its boxes in another output has another layout.
	split := func(o Port) bool {
		return o.Name != p.Name && o.isFloat() && len(o.Sample) == 2 && slices.Contains(o.Sample, n)
	}
	if guess && slices.ContainsFunc(q.ports, split) {
		return nil, 0, 0, false
	}
	return p, n, columns, first
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

// findYOLOv8 finds columns of centre, size and class scores for each anchor, possibly with
// keypoints or mask coefficients.
func findYOLOv8(q *query, guess bool) *Decoder {
	p, n, columns, first := q.anchors(guess)
	const start = 4 // after centre and size
	if p == nil || guess && !first && q.namedColumns(columns) != start {
		return nil
	}
	return q.newYOLO(p, n, columns, first, start)
}

// yolov5Start is the column of the first class score in YOLO v5: after centre, size and the
// probability of an object.
const yolov5Start = 5

// findYOLOv5 finds the columns of findYOLOv8 with a column for the probability of an object before
// the class scores.
func findYOLOv5(q *query, guess bool) *Decoder {
	p, n, columns, first := q.anchors(guess)
	if p == nil || columns <= yolov5Start || guess && q.namedColumns(columns) == yolov5Start-1 {
		return nil
	}
	return q.newYOLO(p, n, columns, first, yolov5Start)
}

// findYOLOX finds the columns of findYOLOv5 whose first four are not in pixels but relative to the
// cell of the anchor: the offset of the centre, in cells, and the logarithms of the sizes. Values
// of noise tell them from pixels.
func findYOLOX(q *query, guess bool) *Decoder {
	p, n, columns, first := q.anchors(guess)
	if p == nil || first || columns <= yolov5Start || q.perCell(n) != 1 {
		return nil
	}
	pixels := float64(min(q.about.Height, q.about.Width)) / 2 // half of the anchors lie beyond
	if guess && !(p.Probed != nil && p.Probed.High < pixels && p.Probed.beyond()) {
		return nil
	}
	f := decoded.Format{Outputs: []string{p.Name}, Suppress: defaultSuppress, Classes: columns - yolov5Start}
	return q.newBoxesOf(f, n, f.Classes, centred, inPixels, func(b *onnx.Builder) boxSource {
		x := float(b, p.Name)
		corners, strides := q.cells(n)
		stride := b.Const("", strides)
		centre := b.Mul(b.Add(column(b, x, 0, 2), b.Const("", corners)), stride)
		size := b.Mul(b.Exp(column(b, x, 2, 4)), stride)
		return boxSource{boxes: b.Concat(2, centre, size), all: b.Mul(column(b, x, yolov5Start, columns), column(b, x, 4, 5))}
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

// namedColumns returns how many columns of an output remain beside one for each named class, or 0
// if the classes have no names.
func (q *query) namedColumns(columns int) int {
	if names := len(q.names()); names > 0 {
		return columns - names
	}
	return 0
}

// newYOLO returns the decoder of n anchors. first reports whether the axis of columns comes before
// the axis of anchors. start is the column of the first class score.
func (q *query) newYOLO(p *Port, n, columns int, first bool, start int) *Decoder {
	f := decoded.Format{Outputs: []string{p.Name}, Suppress: defaultSuppress, Classes: columns - start}
	// Mask coefficients or keypoints may follow the classes.
	if len(q.ports) > 1 || q.metadata("kpt_shape") != "" {
		if known := max(q.setting.Classes, len(q.names())); known > 0 && known <= f.Classes {
			f.Classes = known
		}
	}
	if k, ok := keypointsOf(q.metadata("kpt_shape")); ok && f.Classes+3*k == columns-start {
		f.Keypoints = k
	}
	fractions := p.Probed.Fractions()
	if fractions && q.perCell(n) == 0 {
		f.Suppress = 0 // the queries of a transformer, such as RT-DETR, which suppresses by itself
	}
	return q.newBoxesOf(f, n, f.Classes, centred, fractions, func(b *onnx.Builder) boxSource {
		x := float(b, p.Name)
		if first {
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

// keypointsOf returns the number of keypoints in the metadata kpt_shape that Ultralytics writes,
// such as "[17, 3]": 17 keypoints of x, y and visibility. ok is false if there is none, or if the
// keypoints have no visibility.
func keypointsOf(text string) (n int, ok bool) {
	parts := strings.Split(strings.Trim(text, "[] "), ",")
	if len(parts) != 2 || strings.TrimSpace(parts[1]) != "3" {
		return 0, false
	}
	k, err := strconv.Atoi(strings.TrimSpace(parts[0]))
	return k, err == nil && k > 0 && k < 1000
}
