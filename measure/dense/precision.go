package dense

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure/decoded"
)

// The parameters of COCO's evaluation.
const (
	iouThresholds = 10  // thresholds of IoU, 0.50 to 0.95
	recallSteps   = 101 // recalls at which precision is read, 0 to 1
	maxDetections = 100 // boxes of one class in one image
)

// iouThreshold returns a threshold of IoU, rounded as numpy.linspace(0.5, 0.95, 10) does.
func iouThreshold(i int) float64 {
	low, high := 0.5, 0.95
	if i == iouThresholds-1 {
		return high
	}
	return low + float64(i)*((high-low)/(iouThresholds-1))
}

// areaRanges are the ranges of the area of objects: all, small, medium, large, in square pixels.
// 1e10 stands for no bound.
var areaRanges = [][2]float64{{0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}

type labelledBox struct {
	decoded.Box
	Area    float64 // of the object, in square pixels
	Crowd   bool    // the box surrounds a group, which any number of boxes may find
	Ignored bool    // the object need not be found
}

// Bit a * iouThresholds + t of matched and ignored is for range a of areas and threshold t.
// matched: the box finds an object; ignored: it is neither a true nor a false positive.
type detection struct {
	score   float64
	order   int // by image, then by box in the image; orders equal scores
	group   int // jackknife group of the image: a jackknife leaves out the images of each group once
	matched uint64
	ignored uint64
}

// A precision accumulates COCO's average precision, class by class: the mean over IoU thresholds
// 0.50 to 0.95 of the mean over 101 recalls of the largest precision at that recall or a higher
// one, as pycocotools with default parameters.
type precision struct {
	groups     int           // number of jackknife groups
	positives  []int         // class x range x group: objects to be found
	detections [][]detection // of each class
}

func newPrecision(classes, groups int) *precision {
	return &precision{groups, make([]int, classes*len(areaRanges)*groups), make([][]detection, classes)}
}

// add adds the boxes found in an image, by descending score, and the labelled ones. The index of
// the image orders boxes of equal scores. pixels is its area; areas of found boxes are fractions of
// it.
func (p *precision) add(index, group int, found []decoded.Box, labelled []labelledBox, pixels float64) {
	for class := range p.detections {
		var boxes []decoded.Box
		for _, b := range found {
			if b.Class == class && len(boxes) < maxDetections {
				boxes = append(boxes, b)
			}
		}
		var objects []labelledBox
		for _, o := range labelled {
			if o.Class == class {
				objects = append(objects, o)
			}
		}
		if len(boxes)+len(objects) > 0 {
			p.addClass(class, index, group, boxes, objects, pixels)
		}
	}
}

func (p *precision) addClass(class, index, group int, found []decoded.Box, labelled []labelledBox, pixels float64) {
	at := len(p.detections[class])
	for rank, b := range found {
		p.detections[class] = append(p.detections[class], detection{score: b.Score, order: index<<16 | rank, group: group})
	}
	all := p.detections[class][at:]
	iou := make([][]float64, len(found))
	for i, b := range found {
		iou[i] = make([]float64, len(labelled))
		for j, o := range labelled {
			iou[i][j] = boxIoU(b, o)
		}
	}
	for r, limits := range areaRanges {
		outside := func(area float64) bool { return area < limits[0] || area > limits[1] }
		ignored, order := make([]bool, len(labelled)), make([]int, len(labelled))
		for j, o := range labelled {
			ignored[j], order[j] = o.Crowd || o.Ignored || outside(o.Area), j
			if !ignored[j] {
				p.positives[(class*len(areaRanges)+r)*p.groups+group]++
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return boolInt(ignored[a]) - boolInt(ignored[b]) })
		for t := range iouThresholds {
			bit := uint64(1) << (r*iouThresholds + t)
			taken := make([]bool, len(labelled))
			for i, b := range found {
				j := bestObject(iou[i], iouThreshold(t), order, ignored, taken, labelled)
				if j >= 0 {
					taken[j] = true
					all[i].matched |= bit
				}
				if j >= 0 && ignored[j] || j < 0 && outside(b.Area()*pixels) {
					all[i].ignored |= bit
				}
			}
		}
	}
}

// bestObject returns the object of the highest IoU, at least least, that no other box has taken, or
// -1. Ignored objects are considered only if there is no other; order lists them last.
func bestObject(iou []float64, least float64, order []int, ignored, taken []bool, labelled []labelledBox) int {
	best, value := -1, min(least, 1-1e-10) // as pycocotools, so that equal boxes reach a threshold of 1
	for _, j := range order {
		if taken[j] && !labelled[j].Crowd {
			continue
		}
		if best >= 0 && !ignored[best] && ignored[j] {
			break
		}
		if iou[j] >= value {
			best, value = j, iou[j]
		}
	}
	return best
}

// boxIoU returns the IoU of a box and an object; for a crowd, the fraction of the box inside it.
func boxIoU(b decoded.Box, o labelledBox) float64 {
	if !o.Crowd {
		return decoded.IoU(b, o.Box)
	}
	w, h := min(b.Right, o.Right)-max(b.Left, o.Left), min(b.Bottom, o.Bottom)-max(b.Top, o.Top)
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / b.Area()
}

func boolInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

func (p *precision) sort() {
	for _, all := range p.detections {
		slices.SortFunc(all, func(a, b detection) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.order, b.order)) })
	}
}

// average returns the average precision of a class over a range of areas (0: all, 1: small, 2:
// medium, 3: large) at threshold 0 to 9, NaN without such objects. Images of the jackknife group
// without are left out; -1: none.
func (p *precision) average(class, area, threshold, without int) float64 {
	positives := 0
	for g := range p.groups {
		if g != without {
			positives += p.positives[(class*len(areaRanges)+area)*p.groups+g]
		}
	}
	if positives == 0 {
		return math.NaN()
	}
	bit := uint64(1) << (area*iouThresholds + threshold)
	var recalls, precisions []float64
	truePositives, falsePositives := 0., 0.
	for i := range p.detections[class] {
		d := &p.detections[class][i]
		switch {
		case d.group == without || d.ignored&bit != 0:
			continue // pycocotools repeats the point before it, which changes nothing
		case d.matched&bit != 0:
			truePositives++
		default:
			falsePositives++
		}
		recalls, precisions = append(recalls, truePositives/float64(positives)), append(precisions, truePositives/(truePositives+falsePositives+epsilon))
	}
	for i := len(precisions) - 1; i > 0; i-- {
		precisions[i-1] = max(precisions[i-1], precisions[i])
	}
	sum := 0.
	at := 0
	for step := range recallSteps {
		for at < len(recalls) && recalls[at] < recallAt(step) {
			at++
		}
		if at == len(recalls) {
			break
		}
		sum += precisions[at]
	}
	return sum / recallSteps
}

// epsilon is the spacing of floats at 1, as in pycocotools.
const epsilon = 0x1p-52

// recallAt returns a step of recall, rounded as numpy.linspace(0, 1, 101) does.
func recallAt(step int) float64 {
	if step == recallSteps-1 {
		return 1
	}
	return float64(step) * 0.01
}

// mean returns the average precision of a class at a threshold; -1: its mean over all. It is NaN
// without objects.
func (p *precision) mean(class, threshold, area, without int) float64 {
	if threshold >= 0 {
		return p.average(class, area, threshold, without)
	}
	sum := 0.
	for t := range iouThresholds {
		sum += p.average(class, area, t, without)
	}
	return sum / iouThresholds
}
