package output

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// The matrices that convert four coordinates to corners: a row of coordinates is multiplied by the
// matrix.
var (
	// from left, top, right, bottom
	corners = [4][4]float32{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}
	// from top, left, bottom, right
	cornersYFirst = [4][4]float32{{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}}
	// from centre x, centre y, width, height
	centred = [4][4]float32{{1, 0, 1, 0}, {0, 1, 0, 1}, {-.5, 0, .5, 0}, {0, -.5, 0, .5}}
)

// The functions find* search the outputs of a model, its ports, for one layout of boxes, such as
// that of DETR. A query is such a search. They return nil if the outputs have another layout. If
// guess is set, the user has not named the layout, and they return a decoder only if it is unlikely
// that the outputs mean something else. Of a Port, Sizes is the shape with the batch, and Sample
// the shape of one sample, nil if there is no batch axis. A size of -1 is free.

// maxRows is the largest number of boxes of an image that the graph returns: those with the highest
// scores.
const maxRows = 2000

// A boxSource holds tensors that are computed from the outputs of the file: boxes (batch x n x 4),
// scores and classes (batch x n x 1 each) and keypoints (batch x n x 3 k). Coordinates are still
// those of the outputs. In place of scores and classes it may have the scores of all classes (batch
// x n x c): a box is then found once for each class, as COCO's evaluation of such detectors counts.
type boxSource struct {
	boxes, scores, classes, keypoints, all onnx.Value
	keypointColumns                        int
}

// The values of newBoxes's argument fractions.
const (
	inPixels    = false
	inFractions = true
)

// newBoxes returns the decoder of a layout of boxes: it adds nodes to the graph that turn the
// outputs into rows of corners (as fractions of the image), score, class and keypoints. candidates
// is the number of boxes of an image, or -1 if it varies. coordinates is the matrix that converts
// the coordinates of a box to corners. fractions is the default for Setting.Fractions: whether the
// outputs' coordinates are fractions of the image rather than pixels. source adds the nodes that
// compute the boxes to a graph. Of the builder of the graph, Scope sets a prefix for the names of
// nodes, and Fail records an error, which the builder returns in the end.
func (q *query) newBoxes(f decoded.Format, candidates int, coordinates [4][4]float32, fractions bool, source func(b *onnx.Builder) boxSource) *Decoder {
	return q.newBoxesOf(f, candidates, 1, coordinates, fractions, source)
}

// newBoxesOf is newBoxes for a source that has the scores of perBox classes for each box.
func (q *query) newBoxesOf(f decoded.Format, candidates, perBox int, coordinates [4][4]float32, fractions bool, source func(b *onnx.Builder) boxSource) *Decoder {
	if q.setting.Fractions != nil {
		fractions = *q.setting.Fractions
	}
	f.Kind, f.Height, f.Width = decoded.BoxList, q.about.Height, q.about.Width
	f.Candidates = maxRows
	if candidates >= 0 {
		f.Candidates = min(maxRows, candidates*max(perBox, 1))
	}
	f.Suppress = cmp.Or(f.Suppress, 1) // the threshold of non-maximum suppression; 1: none
	scale := [2]float32{1, 1}          // of x and y
	if !fractions {
		scale = [2]float32{1 / float32(f.Width), 1 / float32(f.Height)}
	}
	for i := range coordinates {
		for j := range coordinates[i] {
			coordinates[i][j] *= scale[j%2]
		}
	}
	return &Decoder{Format: f, boxes: candidates, build: func(b *onnx.Builder) onnx.Value {
		b = b.Scope("decoded")
		if b.Opset() < 11 {
			b.Fail("decoding boxes needs opset 11, and the graph uses %d", b.Opset())
			return ""
		}
		s := source(b)
		if s.all != "" {
			s = s.likeliest(b, f.Candidates, perBox)
		}
		parts := []onnx.Value{b.MatMul(s.boxes, b.Const("", matrix(coordinates))), withNaN(b, s.scores), s.classes}
		if f.Keypoints > 0 {
			parts = append(parts, b.Mul(s.keypoints, b.Const("", keypointScale(f.Keypoints, scale))))
		}
		rows := b.Concat(2, parts...)
		if candidates < 0 {
			// With rows of score -1 there are at least as many as strongest returns.
			rows = b.Concat(1, rows, b.Full(-1, 1, f.Candidates, f.Columns()))
		}
		return strongest(b, rows, f)
	}}
}

// likeliest returns the pairs of a box and a class with the highest scores, in descending order, of
// boxes with scores of several classes.
func (s boxSource) likeliest(b *onnx.Builder, pairs, classes int) boxSource {
	whole := b.Mul(b.ReduceSum(s.all, true, 1, 2), b.Scalar(0)) // NaN if a score is not finite: see withNaN
	top := b.Ops("TopK", 2, onnx.Attrs{"axis": 1}, b.Reshape(s.all, 0, -1), b.Ints(pairs))
	box := b.Div(top[1], b.Ints(classes))
	class := b.Sub(top[1], b.Mul(box, b.Ints(classes)))
	at := func(x onnx.Value, columns int) onnx.Value {
		return b.Op("GatherElements", onnx.Attrs{"axis": 1}, x, b.Expand(b.Unsqueeze(box, 2), b.Ints(1, 1, columns)))
	}
	out := boxSource{boxes: at(s.boxes, 4), scores: b.Add(b.Unsqueeze(top[0], 2), whole), classes: b.Unsqueeze(b.Cast(class, onnx.Float), 2)}
	if s.keypoints != "" {
		out.keypoints = at(s.keypoints, s.keypointColumns)
	}
	return out
}

func matrix(m [4][4]float32) tensor.Tensor {
	t := tensor.New(4, 4)
	for i, row := range m {
		copy(t.Data[4*i:], row[:])
	}
	return t
}

func keypointScale(k int, scale [2]float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{1, 1, 3 * k}, Data: slices.Repeat([]float32{scale[0], scale[1], 1}, k)}
}

// withNaN returns scores that are all NaN for an image if one of them is NaN or infinite. The
// selection of the highest scores would hide it otherwise.
func withNaN(b *onnx.Builder, scores onnx.Value) onnx.Value {
	return b.Add(scores, b.Mul(b.ReduceSum(scores, true, 1, 2), b.Scalar(0)))
}

// strongest returns the rows with the highest scores, in descending order.
func strongest(b *onnx.Builder, rows onnx.Value, f decoded.Format) onnx.Value {
	scores := b.Squeeze(b.Slice(rows, 2, 4, 5, 1), 2) // column 4
	at := b.Ops("TopK", 2, onnx.Attrs{"axis": 1}, scores, b.Ints(f.Candidates))[1]
	index := b.Expand(b.Unsqueeze(at, 2), b.Ints(1, 1, f.Columns()))
	return b.Op("GatherElements", onnx.Attrs{"axis": 1}, rows, index)
}

// column returns the columns from to to - 1 of a tensor of batch x n x c.
func column(b *onnx.Builder, x onnx.Value, from, to int) onnx.Value {
	return b.Slice(x, 2, from, to, 1)
}

// float returns a tensor as float32.
func float(b *onnx.Builder, name string) onnx.Value { return b.Cast(onnx.Value(name), onnx.Float) }

// best returns the highest class score of each row, and its class: batch x n x 1 each.
func best(b *onnx.Builder, scores onnx.Value) (top, class onnx.Value) {
	class = b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 2, "keepdims": 1}, scores), onnx.Float)
	return b.ReduceMax(scores, true, 2), class
}

// personKeypoints is the number of keypoints of a person in COCO.
const personKeypoints = 17

// findTorchvision finds the outputs of torchvision's detectors for a single image: boxes, labels
// and scores in any order, possibly with keypoints.
func findTorchvision(q *query, _ bool) *Decoder {
	list := func(p *Port, words ...string) bool {
		return len(p.Sizes) == 1 || len(p.Sizes) == 0 && p.named(words...)
	}
	boxes := q.only(func(p *Port) bool {
		return p.isFloat() && (len(p.Sizes) == 2 && p.Sizes[1] == 4 || (len(p.Sizes) == 0 || p.unbatched(2, 4)) && p.named("box"))
	})
	labels := q.only(func(p *Port) bool { return p.Type == onnx.Int64 && list(p, "label") })
	scores := q.only(func(p *Port) bool { return p.isFloat() && list(p, "score") && !p.named("keypoint") })
	if boxes == nil || labels == nil || scores == nil {
		return nil
	}
	keypoints := q.only(func(p *Port) bool { return p.isFloat() && len(p.Sizes) == 3 && p.Sizes[2] == 3 })
	f := decoded.Format{Outputs: []string{boxes.Name, labels.Name, scores.Name}}
	if keypoints != nil {
		if f.Keypoints = keypoints.Sizes[1]; f.Keypoints < 0 {
			f.Keypoints = personKeypoints // the number is lost in exports of torchvision
		}
		f.Outputs = append(f.Outputs, keypoints.Name)
	}
	d := q.newBoxes(f, -1, corners, inPixels, func(b *onnx.Builder) boxSource {
		s := boxSource{
			boxes:   b.Unsqueeze(float(b, boxes.Name), 0),
			scores:  b.Unsqueeze(float(b, scores.Name), 0, 2),
			classes: b.Unsqueeze(float(b, labels.Name), 0, 2),
		}
		if keypoints != nil {
			s.keypoints = b.ReshapeTo(float(b, keypoints.Name), b.Ints(1, -1, 3*f.Keypoints))
		}
		return s
	})
	d.Unbatched = true
	return d
}

// findEfficientNMS finds the outputs of TensorRT's EfficientNMS: the number of valid boxes, and
// boxes, scores and classes. TensorFlow's detectors have the same by other names, with the boxes as
// top, left, bottom and right in fractions of the image.
func findEfficientNMS(q *query, _ bool) *Decoder {
	// find considers the outputs with rank axes per sample, the last of size last (0: any). It
	// returns the only one that has one of the words in its name, or else the only one.
	find := func(rank, last int, integer bool, words ...string) *Port {
		fits := func(p *Port) bool {
			return len(p.Sample) == rank && (last == 0 || p.Sample[rank-1] == last) && (p.isInteger() == integer || integer && p.named("num"))
		}
		if p := q.only(func(p *Port) bool { return fits(p) && p.named(words...) }); p != nil {
			return p
		}
		return q.only(fits)
	}
	count, boxes := find(1, 1, true, "num"), find(2, 4, false, "box")
	scores, classes := find(1, 0, false, "score"), q.only(func(p *Port) bool { return len(p.Sample) == 1 && p.named("class", "label") })
	if count == nil || boxes == nil || scores == nil || classes == nil || count == classes {
		return nil
	}
	n := boxes.Sample[0]
	if scores.Sample[0] != n || classes.Sample[0] != n {
		return nil
	}
	f := decoded.Format{Outputs: []string{count.Name, boxes.Name, scores.Name, classes.Name}}
	coordinates, fractions := corners, inPixels
	if boxes.named("detection_boxes") {
		coordinates, fractions = cornersYFirst, inFractions
	}
	return q.newBoxes(f, n, coordinates, fractions, func(b *onnx.Builder) boxSource {
		numbers := tensor.New(1, n)
		for i := range n {
			numbers.Data[i] = float32(i)
		}
		valid := b.Op("Less", nil, b.Const("", numbers), float(b, count.Name))
		return boxSource{
			boxes:   float(b, boxes.Name),
			scores:  b.Unsqueeze(b.Where(valid, float(b, scores.Name), b.Scalar(-1)), 2),
			classes: b.Unsqueeze(float(b, classes.Name), 2),
		}
	})
}

// findLabelled finds boxes with labels and scores for each image of a batch, as RT-DETR, D-FINE and
// SSD have them after their postprocessing, in fractions or pixels by their values; or boxes whose
// fifth column is the score, as MMDetection has them. Their number may vary, and is then that of
// one image.
func findLabelled(q *query, guess bool) *Decoder {
	boxes := q.only(func(p *Port) bool {
		return p.isFloat() && len(p.Sizes) == 3 && len(p.Sample) == 2 && (p.Sample[1] == 4 || p.Sample[1] == 5) && p.named("box", "det")
	})
	if boxes == nil {
		return nil
	}
	n := boxes.Sample[0]
	list := func(words ...string) *Port {
		return q.only(func(p *Port) bool {
			return p != boxes && len(p.Sizes) == 2 && len(p.Sample) == 1 && p.Sample[0] == n && p.named(words...)
		})
	}
	labels, scores := list("label", "class"), list("score", "conf")
	if labels == nil || (scores == nil) != (boxes.Sample[1] == 5) || scores != nil && !scores.isFloat() {
		return nil
	}
	r := boxes.Probed.ranges(1)
	if guess && r != nil && (r[2].High < r[0].Low || r[3].High < r[1].Low) {
		return nil // no corners
	}
	f := decoded.Format{Outputs: []string{boxes.Name, labels.Name}}
	if scores != nil {
		f.Outputs = append(f.Outputs, scores.Name)
	}
	varies := boxes.Sizes[1] < 0
	if varies {
		n = -1
	}
	d := q.newBoxes(f, n, corners, boxFractions(boxes.Probed, r), func(b *onnx.Builder) boxSource {
		x := float(b, boxes.Name)
		s := boxSource{boxes: x, classes: b.Unsqueeze(float(b, labels.Name), 2)}
		if scores == nil {
			s.boxes, s.scores = column(b, x, 0, 4), column(b, x, 4, 5)
		} else {
			s.scores = b.Unsqueeze(float(b, scores.Name), 2)
		}
		return s
	})
	d.Unbatched = varies
	return d
}

// findSuppressed finds rows of boxes after non-maximum suppression, or of a network that needs none:
// corners, score and class, possibly with keypoints or coefficients of masks, or the index of the
// image, corners, class and score.
func findSuppressed(q *query, guess bool) *Decoder {
	further := q.further()
	fits := func(p *Port) bool {
		if !p.isFloat() {
			return false
		}
		if len(p.Sample) == 2 && len(p.Sizes) == 3 && (p.Sample[1] == decoded.BoxColumns+further || !guess && p.Sample[1] == decoded.BoxColumns) {
			return !guess || (len(q.ports) == 1 || further > 0) && q.looksSuppressed(p)
		}
		return len(p.Sizes) == 2 && (p.Sizes[1] == 6 || p.Sizes[1] == 7) && p.Sizes[0] < 0 && (!guess || p.Sizes[1] == 7 || q.metadata("names") != "")
	}
	p := q.only(fits)
	if p == nil {
		return nil
	}
	f := decoded.Format{Outputs: []string{p.Name}}
	if len(p.Sizes) == 3 {
		if k, size := keypointsOf(q.metadata("kpt_shape")); size == 3 && p.Sample[1] == decoded.BoxColumns+3*k {
			f.Keypoints = k
		}
		return q.newBoxes(f, p.Sample[0], corners, boxFractions(p.Probed, p.Probed.ranges(1)), func(b *onnx.Builder) boxSource {
			x := float(b, p.Name)
			s := boxSource{boxes: column(b, x, 0, 4), scores: column(b, x, 4, 5), classes: column(b, x, 5, 6)}
			if f.Keypoints > 0 {
				s.keypoints = column(b, x, 6, 6+3*f.Keypoints)
			}
			return s
		})
	}
	d := q.newBoxes(f, -1, corners, inPixels, func(b *onnx.Builder) boxSource {
		x := b.Unsqueeze(float(b, p.Name), 0)
		if p.Sizes[1] == 7 { // image, corners, class, score
			return boxSource{boxes: column(b, x, 1, 5), scores: column(b, x, 6, 7), classes: column(b, x, 5, 6)}
		}
		return boxSource{boxes: column(b, x, 0, 4), scores: column(b, x, 4, 5), classes: column(b, x, 5, 6)}
	})
	d.Unbatched = true
	return d
}

// looksSuppressed reports whether an output with rows of the columns of findSuppressed has few
// enough of them, and values that may be scores and numbers of classes. Neither holds for rotated
// boxes, whose last column is an angle, nor for the queries of RT-DETR that score two classes.
func (q *query) looksSuppressed(p *Port) bool {
	const most = 1000
	if p.Sample[0] > most || q.metadata("task") == rotated {
		return false
	}
	r := p.Probed.ranges(1)
	if r == nil {
		return true
	}
	queries := boxFractions(p.Probed, r) && len(q.names()) == len(r)-yolov8Start
	return r[4].within(0, 1) && r[5].Whole && r[5].Low > -2 && !queries // -1: no box
}
