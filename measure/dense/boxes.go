package dense

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/paired"
)

// This file compares the boxes of f(Tx) with tau f(x), the moved boxes of f(x).

// The columns of a pair of lists of boxes: statistics of the single sample, then sums over boxes.
// From boxSums on there are two (boxes in pairs, all boxes) for each size, confidence and class.
const (
	sampleMatched = iota
	sampleIoU
	sampleFlips    // fraction of the pairs whose classes differ
	sampleChange   // mean change of the confidence score in a pair
	sampleDistance // mean distance of the keypoints in a pair
	inPairs        // number of boxes of both images that are in pairs
	allBoxes       // number of boxes of both images that count
	pairCount      // number of pairs
	iouSum         // over pairs
	flipSum        // number of pairs whose classes differ
	changeSum      // of the scores, over pairs
	distanceSum    // over keypoints of pairs
	distanceCount  // number of these keypoints
	boxSums        // number of the columns above
)

// sizes are COCO's classes of object area, in pixels of the model's image: see sizeOf.
var sizes = []string{"small", "medium", "large"}

func sizeOf(b decoded.Box, h, w int) int {
	switch area := b.Area() * float64(h) * float64(w); {
	case area < 32*32:
		return 0
	case area < 96*96:
		return 1
	}
	return 2
}

// confidenceSteps counts the least scores, 0.1 to 0.9, for which matched is computed.
const confidenceSteps = 9

func confidenceOf(step int) float64 { return float64(step+1) / 10 }

func confidenceFactor(step int) string { return fmt.Sprintf("confidence=%.1f", confidenceOf(step)) }

func addBoxes(spec *paired.Spec, f *decoded.Format, s Settings) {
	columns := make([]paired.Column, boxSums)
	for c, name := range map[int]string{sampleMatched: "matched", sampleIoU: "iou", sampleFlips: "class-flips", sampleChange: "confidence-change"} {
		columns[c] = paired.Column{Sample: name, Transformed: true}
	}
	if f.Keypoints > 0 {
		columns[sampleDistance] = paired.Column{Sample: "keypoint-distance", Transformed: true}
	}
	none := fmt.Sprintf("no image has a box of a score of at least %g that counts: set a lower confidence, or check preprocess and output", s.Confidence)
	const noPair = "no box is matched"
	const all = "" // the factor of scores over all boxes
	spec.Derived = []paired.Derived{
		proportion(ratio("matched", all, inPairs, allBoxes, none)),
		ratio("iou", all, iouSum, pairCount, noPair),
		proportion(ratio("class-flips", all, flipSum, pairCount, noPair)),
		ratio("confidence-change", all, changeSum, pairCount, noPair),
	}
	if f.Keypoints > 0 {
		spec.Derived = append(spec.Derived, ratio("keypoint-distance", all, distanceSum, distanceCount, "no keypoint of a pair is visible"))
	}
	addMatched := func(factor string) { // adds the two columns and the statistic matched of a factor
		at := len(columns)
		columns = append(columns, paired.Column{}, paired.Column{})
		spec.Derived = append(spec.Derived, proportion(ratio("matched", factor, at, at+1, "")))
	}
	for _, size := range sizes {
		addMatched("size=" + size)
	}
	for step := range confidenceSteps {
		addMatched(confidenceFactor(step))
	}
	for k := range f.ClassLimit() {
		addMatched("class=" + f.ClassName(k))
	}
	spec.Columns = columns
	spec.Action = func(measure.Site) (paired.Action, error) { return &boxAction{format: f, settings: s}, nil }
}

// A boxAction compares boxes. A row of tau f(x) holds the moved boxes, then for each box 1 if it
// counts and 0 if not, then x and y of the four corners of the moved image.
type boxAction struct {
	format   *decoded.Format
	settings Settings
}

func (a *boxAction) Len() int {
	return a.format.Candidates*a.format.Columns() + a.format.Candidates + 8
}

func (a *boxAction) split(row []float32) (boxes, counts, outline []float32) {
	n := a.format.Candidates * a.format.Columns()
	return row[:n], row[n : n+a.format.Candidates], row[n+a.format.Candidates:]
}

func (a *boxAction) Act(dst []float32, _ []float64, z []float32, move measure.Motion) error {
	f := a.format
	m, err := newMotion(move, f.Height, f.Width)
	if err != nil {
		return err
	}
	boxes, err := a.read(z, "clean")
	if err != nil {
		return err
	}
	boxes = distinct(boxes)
	rows, counts, outline := a.split(dst)
	clear(counts)
	for i := range boxes {
		var visible float64
		boxes[i], visible = m.box(boxes[i], a.settings.Extent == "ellipse")
		if visible >= a.settings.Visible {
			counts[i] = 1
		}
	}
	f.SetBoxes(rows, boxes)
	for i, p := range m.outline() {
		outline[2*i], outline[2*i+1] = float32(p.x), float32(p.y)
	}
	return nil
}

// read returns the boxes of a row, or an error for values that are not finite or classes out of
// range.
func (a *boxAction) read(row []float32, view string) ([]decoded.Box, error) {
	boxes, finite := a.format.Boxes(nil, row) // nil: no memory to reuse
	if !finite {
		return nil, &measure.NonFinite{View: view}
	}
	for _, b := range boxes {
		if b.Class < 0 || b.Class >= a.format.ClassLimit() {
			return nil, classError(b.Class, a.format)
		}
	}
	return boxes, nil
}

// distinct returns the boxes, by descending score, without those that a detector has given another
// class before. The average precision counts these; that an object is found at its moved position
// is a matter of the likeliest class.
func distinct(boxes []decoded.Box) []decoded.Box {
	seen := map[[4]float64]bool{}
	return slices.DeleteFunc(boxes, func(b decoded.Box) bool {
		at := [4]float64{b.Left, b.Top, b.Right, b.Bottom}
		known := seen[at]
		seen[at] = true
		return known
	})
}

func classError(class int, f *decoded.Format) error {
	return fmt.Errorf("output %s has class %d, outside of 0 to %d: set output: {..., classes: %d} to their number", f.Outputs[0], class, f.ClassLimit()-1, class+1)
}

func (a *boxAction) Pair(out []float64, acted, transformed []float32) error {
	found, err := a.read(transformed, "transformed")
	if err != nil {
		return err
	}
	found = distinct(found)
	rows, counts, corners := a.split(acted)
	moved, _ := a.format.Boxes(nil, rows) // Act wrote them, so they are finite
	var outline [4]point
	for i := range outline {
		outline[i] = point{float64(corners[2*i]), float64(corners[2*i+1])}
	}
	x, y := imageBoxes{boxes: moved, counts: make([]bool, len(moved))}, imageBoxes{boxes: found, counts: make([]bool, len(found))}
	for i := range moved {
		x.counts[i] = counts[i] != 0
	}
	for i, b := range found {
		// shown returns the fraction of b inside the outline
		y.counts[i] = shown(b, outline) >= a.settings.Visible-1e-6 // the outline is rounded to float32
	}
	a.sums(out, x, y)
	return nil
}

func (a *boxAction) sums(out []float64, x, y imageBoxes) {
	clear(out)
	// By these pairs, compare matches boxes whose scores reach a confidence.
	all := candidates(x.boxes, y.boxes, a.settings.IoU)
	m := compare(x, y, all, a.settings.Confidence)
	for _, p := range m.pairs {
		b, c := x.boxes[p.A], y.boxes[p.B]
		out[pairCount]++
		out[iouSum] += p.IoU
		out[changeSum] += c.Score - b.Score
		if b.Class != c.Class {
			out[flipSum]++
		}
		addDistances(out, b, c, a.format)
	}
	byClass := boxSums + 2*(len(sizes)+confidenceSteps) // first column of the classes
	a.count(x, y, m, func(b, partner decoded.Box, paired bool) {
		add := func(column int, in bool) { // counts a box, also in column if it is in a pair
			out[column+1]++
			if in {
				out[column]++
			}
		}
		add(inPairs, paired)
		add(boxSums+2*sizeOf(b, a.format.Height, a.format.Width), paired)
		add(byClass+2*b.Class, paired && b.Class == partner.Class)
	})
	for step := range confidenceSteps {
		at := boxSums + 2*(len(sizes)+step)
		a.count(x, y, compare(x, y, all, confidenceOf(step)), func(_, _ decoded.Box, paired bool) {
			out[at+1]++
			if paired {
				out[at]++
			}
		})
	}
	quotient := func(c, a, b int) { // sets column c to the ratio of the columns a and b
		if out[c] = math.NaN(); out[b] > 0 {
			out[c] = out[a] / out[b]
		}
	}
	quotient(sampleMatched, inPairs, allBoxes)
	quotient(sampleIoU, iouSum, pairCount)
	quotient(sampleFlips, flipSum, pairCount)
	quotient(sampleChange, changeSum, pairCount)
	quotient(sampleDistance, distanceSum, distanceCount)
}

// count calls f for each box of x and y that counts; paired reports whether it has a partner.
func (a *boxAction) count(x, y imageBoxes, m matching, f func(b, partner decoded.Box, paired bool)) {
	partnerOfX, partnerOfY := map[int]int{}, map[int]int{}
	for _, p := range m.pairs {
		partnerOfX[p.A], partnerOfY[p.B] = p.B, p.A
	}
	visit := func(own, other imageBoxes, counted []bool, partner map[int]int) {
		for i, b := range own.boxes {
			if !counted[i] {
				continue
			}
			if j, ok := partner[i]; ok {
				f(b, other.boxes[j], true)
			} else {
				f(b, decoded.Box{}, false)
			}
		}
	}
	visit(x, y, m.countedA, partnerOfX)
	visit(y, x, m.countedB, partnerOfY)
}

// addDistances adds the number of keypoints visible in both boxes and the sum of their distances,
// in units of the square root of b's area.
func addDistances(out []float64, b, c decoded.Box, f *decoded.Format) {
	h, w := float64(f.Height), float64(f.Width)
	unit := math.Sqrt(b.Area() * h * w)
	for k := range b.Keypoints {
		p, q := b.Keypoints[k], c.Keypoints[k]
		if p.Visible && q.Visible && unit > 0 {
			out[distanceSum] += math.Hypot((p.X-q.X)*w, (p.Y-q.Y)*h) / unit
			out[distanceCount]++
		}
	}
}
