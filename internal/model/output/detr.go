package output

import (
	"fmt"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
)

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

// hasNoObject reports whether the scores of a transformer's queries are a softmax whose last class
// is no object, rather than sigmoids. It follows from the number of classes that have names; else
// from the values of noise, which hardly has objects: all are negative, or the last one is above all
// others. If nothing tells, it is a guess by the number of queries, and doubt says so.
func (q *query) hasNoObject(scores *Port) (is bool, doubt string) {
	columns := scores.Sample[1]
	switch len(q.names()) {
	case 0:
	case columns:
		return false, ""
	case columns - 1:
		return true, ""
	}
	if r := scores.Probed.ranges(1); columns > 1 && r != nil {
		others := r[0].High
		for _, o := range r[:columns-1] {
			others = max(others, o.High)
		}
		switch last := r[columns-1]; {
		case max(others, last.High) < 0:
			return false, ""
		case last.Low > others:
			return true, ""
		}
	}
	is = scores.Sample[0] < sigmoidQueries
	read := "sigmoids (deformable-detr)"
	if is {
		read = "a softmax with a last class that is no object (detr)"
	}
	return is, fmt.Sprintf("output %q is taken for %s, as its number of queries is %d: set output: {boxes: detr} or {boxes: deformable-detr}", scores.Name, read, scores.Sample[0])
}

// findDETR finds the outputs of DETR: the softmax over the classes and a further class for no
// object.
func findDETR(q *query, guess bool) *Decoder {
	logits, boxes := detrPorts(q)
	if logits == nil || logits.Sample[1] < 2 || guess && (boxes.Probed.beyond() || logits.Probed.Fractions()) {
		return nil
	}
	doubt := ""
	if guess {
		is := false
		if is, doubt = q.hasNoObject(logits); !is {
			return nil
		}
	}
	f := decoded.Format{Outputs: []string{logits.Name, boxes.Name}, Classes: logits.Sample[1] - 1}
	d := q.newBoxes(f, boxes.Sample[0], centred, inFractions, func(b *onnx.Builder) boxSource {
		z := float(b, logits.Name)
		e := b.Exp(b.Sub(z, b.ReduceMax(z, true, 2)))
		p := b.Div(column(b, e, 0, f.Classes), b.ReduceSum(e, true, 2))
		s := boxSource{boxes: float(b, boxes.Name)}
		s.scores, s.classes = best(b, p)
		return s
	})
	d.Doubt = doubt
	return d
}

// findDeformableDETR finds the outputs of transformers whose class scores are sigmoids, or the
// logits of these. Boxes that are not fractions are those of other detectors, such as offsets from
// anchors, and a softmax is one with a class for the background.
func findDeformableDETR(q *query, guess bool) *Decoder {
	logits, boxes := detrPorts(q)
	if logits == nil || guess && (boxes.Probed.beyond() || boxes.Probed != nil && boxes.Probed.Ordered || logits.Probed.sums(1)) {
		return nil
	}
	doubt := ""
	if guess && logits.Sample[1] > 1 && !logits.Probed.Fractions() {
		is := false
		if is, doubt = q.hasNoObject(logits); is {
			return nil
		}
	}
	f := decoded.Format{Outputs: []string{logits.Name, boxes.Name}, Classes: logits.Sample[1]}
	d := q.newBoxesOf(f, boxes.Sample[0], f.Classes, centred, inFractions, func(b *onnx.Builder) boxSource {
		all := float(b, logits.Name)
		if !logits.Probed.Fractions() {
			all = b.Sigmoid(all)
		}
		return boxSource{boxes: float(b, boxes.Name), all: all}
	})
	d.Doubt = doubt
	return d
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
