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
// boxes, scores and classes.
func findEfficientNMS(q *query, _ bool) *Decoder {
	// find considers the outputs with rank axes per sample, the last of size last (0: any). It
	// returns the only one that has one of the words in its name, or else the only one.
	find := func(rank, last int, integer bool, words ...string) *Port {
		fits := func(p *Port) bool {
			return len(p.Sample) == rank && (last == 0 || p.Sample[rank-1] == last) && p.isInteger() == integer
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
	return q.newBoxes(f, n, corners, inPixels, func(b *onnx.Builder) boxSource {
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

// detrPorts returns the logits and the boxes of a transformer's queries, or nil.
func detrPorts(q *query) (logits, boxes *Port) {
	boxes = q.only(func(p *Port) bool {
		return p.isFloat() && len(p.Sample) == 2 && p.Sample[1] == 4 && (p.named("box") || !p.named("logit", "class", "score"))
	})
	if boxes == nil {
		return nil, nil
	}
	fits := func(p *Port) bool {
		return p != boxes && p.isFloat() && len(p.Sample) == 2 && p.Sample[0] == boxes.Sample[0] && p.Sample[1] >= 1
	}
	if logits = q.only(func(p *Port) bool { return fits(p) && p.named("logit", "class", "score", "label") }); logits == nil {
		logits = q.only(fits)
	}
	return logits, boxes
}

// sigmoidQueries is the number of queries from which on the class scores of a transformer are
// assumed to be sigmoids: DETR has 100 queries and a softmax; Deformable DETR, RT-DETR and DINO
// have 300 or more.
const sigmoidQueries = 300

// findDETR finds the outputs of DETR: the softmax over the classes and a further class for no
// object.
func findDETR(q *query, guess bool) *Decoder {
	logits, boxes := detrPorts(q)
	if logits == nil || logits.Sample[1] < 2 || guess && (boxes.Sample[0] >= sigmoidQueries || boxes.Probed.beyond() || logits.Probed.Fractions()) {
		return nil
	}
	f := decoded.Format{Outputs: []string{logits.Name, boxes.Name}, Classes: logits.Sample[1] - 1}
	return q.newBoxes(f, boxes.Sample[0], centred, inFractions, func(b *onnx.Builder) boxSource {
		z := float(b, logits.Name)
		e := b.Exp(b.Sub(z, b.ReduceMax(z, true, 2)))
		p := b.Div(column(b, e, 0, f.Classes), b.ReduceSum(e, true, 2))
		s := boxSource{boxes: float(b, boxes.Name)}
		s.scores, s.classes = best(b, p)
		return s
	})
}

// findDeformableDETR finds the outputs of transformers whose class scores are sigmoids, or the
// logits of these. Boxes that are not fractions are those of other detectors, such as offsets from
// anchors, and a softmax is one with a class for the background.
func findDeformableDETR(q *query, guess bool) *Decoder {
	logits, boxes := detrPorts(q)
	if logits == nil || guess && (boxes.Probed.beyond() || boxes.Probed != nil && boxes.Probed.Ordered || logits.Probed.sums(1)) {
		return nil
	}
	f := decoded.Format{Outputs: []string{logits.Name, boxes.Name}, Classes: logits.Sample[1]}
	return q.newBoxesOf(f, boxes.Sample[0], f.Classes, centred, inFractions, func(b *onnx.Builder) boxSource {
		all := float(b, logits.Name)
		if !logits.Probed.Fractions() {
			all = b.Sigmoid(all)
		}
		return boxSource{boxes: float(b, boxes.Name), all: all}
	})
}

// findCorners finds the corners of boxes and probabilities of their classes, as YOLO-NAS has them,
// in pixels unless the values are fractions.
func findCorners(q *query, guess bool) *Decoder {
	scores, boxes := detrPorts(q)
	if scores == nil || guess && !(boxes.Probed != nil && boxes.Probed.Ordered && scores.Probed.Fractions() && !scores.Probed.sums(1)) {
		return nil
	}
	f := decoded.Format{Outputs: []string{scores.Name, boxes.Name}, Suppress: defaultSuppress, Classes: scores.Sample[1]}
	return q.newBoxesOf(f, boxes.Sample[0], f.Classes, corners, boxes.Probed.Fractions(), func(b *onnx.Builder) boxSource {
		return boxSource{boxes: float(b, boxes.Name), all: float(b, scores.Name)}
	})
}

// findSuppressed finds rows of boxes after non-maximum suppression: corners, score and class, or
// the index of the image, corners, class and score.
func findSuppressed(q *query, guess bool) *Decoder {
	fits := func(p *Port) bool {
		if !p.isFloat() {
			return false
		}
		if len(p.Sample) == 2 && p.Sample[1] == decoded.BoxColumns && len(p.Sizes) == 3 {
			return !guess || len(q.ports) == 1 && p.Sample[0] <= 1000 // suppression leaves few rows
		}
		return len(p.Sizes) == 2 && (p.Sizes[1] == 6 || p.Sizes[1] == 7) && p.Sizes[0] < 0 && (!guess || p.Sizes[1] == 7 || q.metadata("names") != "")
	}
	p := q.only(fits)
	if p == nil {
		return nil
	}
	f := decoded.Format{Outputs: []string{p.Name}}
	if len(p.Sizes) == 3 {
		return q.newBoxes(f, p.Sample[0], corners, inPixels, func(b *onnx.Builder) boxSource {
			x := float(b, p.Name)
			return boxSource{boxes: column(b, x, 0, 4), scores: column(b, x, 4, 5), classes: column(b, x, 5, 6)}
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
