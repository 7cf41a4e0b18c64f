package dense

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
)

// Accuracy returns the measure dense-accuracy: how accurate a model's boxes or class maps (the
// class of each pixel) are, on x and on T(x), where the labels move as the image does.
//
//   - clean-map and moved-map are COCO's mean average precision of boxes on x and T(x), as
//     pycocotools computes it. A labelled box of which less than half lies in the image T(x) need
//     not be found.
//   - clean-miou and moved-miou are the mean over classes of intersection over union (IoU). Pixels
//     are counted over all samples, and only where the label is a class.
//   - map-drop and miou-drop are clean minus moved.
func Accuracy() measure.Measure { return accuracy{} }

type accuracy struct{}

func (accuracy) Name() string                   { return AccuracyDescriptor().Name }
func (accuracy) Descriptor() measure.Descriptor { return AccuracyDescriptor() }
func (accuracy) Version() int                   { return 3 }
func (accuracy) Settings() any                  { return struct{}{} }

func (accuracy) Needs() measure.Needs {
	return measure.Needs{Decoded: true, Truth: true, Transformed: true, TransformOptional: true}
}

func (accuracy) Skip(s measure.Site) string {
	switch {
	case s.Output == nil || s.Output.Kind != decoded.BoxList && s.Output.Kind != decoded.ClassMap:
		return "the model's output is neither boxes nor a class map"
	case (s.Output.Kind == decoded.ClassMap) != s.Truth.Masks:
		return fmt.Sprintf("the model's output is a %s, and the data are labelled with %s", s.Output.Kind, map[bool]string{true: "masks", false: "boxes"}[s.Truth.Masks])
	}
	return ""
}

// Cost returns the memory in bytes. It assumes at most 300 detections in each image, of 40 bytes,
// whose slices grow.
func (accuracy) Cost(s measure.Site) int64 {
	classes, groups := int64(s.Output.ClassLimit()), int64(s.Layout.Groups)
	if s.Output.Kind == decoded.ClassMap {
		return 2*8*(3*groups+1)*classes + 4096 // regions and squares of the clean and the transformed view; 4096 for small fields
	}
	// Candidates counts the boxes before, Most limits those after non-maximum suppression.
	boxes := int64(min(s.Output.Candidates, s.Output.Most, 300))
	// For both views: the positives, the detections twice, and a slice for each class.
	return 2*(8*classes*(groups*int64(len(areaRanges))+1)+2*40*boxes*int64(s.Layout.N)+48*classes) + 4096
}

func (accuracy) New(s measure.Site) (measure.Accumulator, error) {
	a := &accuracyAccumulator{site: s}
	for v := range a.views {
		a.views[v] = newEvaluation(s)
	}
	return a, nil
}

type evaluation struct {
	regions   []int      // for class maps, numbers of pixels: group x class x (intersection, found, labelled)
	precision *precision // for boxes, what their mean average precision is computed from; else nil
	squares   []float64  // of each class, the sum over samples of the squared number of labelled pixels or boxes
}

func newEvaluation(s measure.Site) evaluation {
	squares := make([]float64, s.Output.ClassLimit())
	if s.Output.Kind == decoded.ClassMap {
		return evaluation{regions: make([]int, s.Layout.Groups*s.Output.ClassLimit()*3), squares: squares}
	}
	return evaluation{precision: newPrecision(s.Output.ClassLimit(), s.Layout.Groups), squares: squares}
}

const (
	cleanView = iota
	movedView
)

type accuracyAccumulator struct {
	site  measure.Site
	n     int           // number of samples so far
	moved bool          // there is a transformed view
	views [2]evaluation // of cleanView and movedView
}

func (a *accuracyAccumulator) Update(b *measure.Batch) error {
	moved := b.Transformed.Len() > 0
	if len(b.Truth) != len(b.Place) {
		return fmt.Errorf("dense-accuracy needs labelled boxes or masks of each sample, but the batch has %d of %d", len(b.Truth), len(b.Place))
	}
	if a.n > 0 && moved != a.moved {
		return errors.New("some samples have a transformed view, and some do not")
	}
	a.moved = moved
	for i, truth := range b.Truth {
		group := a.site.Layout.Group(b.Place[i])
		err := a.add(cleanView, b.Index[i], group, b.Clean.At(i).Data, truth, nil)
		if err == nil && moved && len(b.Motions) != len(b.Place) {
			err = errors.New("how positions move from x to T(x) is not known")
		} else if err == nil && moved {
			err = a.add(movedView, b.Index[i], group, b.Transformed.At(i).Data, truth, b.Motions[i])
		}
		var bad *measure.NonFinite
		switch {
		case errors.As(err, &bad):
			return &measure.NonFinite{View: bad.View, Index: b.Index[i]}
		case err != nil:
			return fmt.Errorf("sample %d: %w", b.Index[i], err)
		}
		a.n++
	}
	return nil
}

func (a *accuracyAccumulator) add(view, index, group int, row []float32, truth *decoded.Truth, move measure.Motion) error {
	name := map[int]string{cleanView: "clean", movedView: "transformed"}[view]
	if truth == nil {
		return errors.New("it has no labelled boxes or masks")
	}
	labels := make([]int, a.site.Output.ClassLimit()) // of each class, the pixels or boxes of this sample
	defer func() {
		for k, n := range labels {
			a.views[view].squares[k] += float64(n) * float64(n)
		}
	}()
	if a.views[view].precision == nil {
		return a.addMap(a.views[view].regions[group*a.site.Output.ClassLimit()*3:], labels, row, truth, move, name)
	}
	boxes := &boxAction{format: a.site.Output}
	found, err := boxes.read(row, name)
	if err != nil {
		return err
	}
	labelled, err := a.labelled(truth, move)
	if err != nil {
		return err
	}
	for _, o := range labelled {
		if !o.Crowd && !o.Ignored {
			labels[o.Class]++
		}
	}
	a.views[view].precision.add(index, group, found, labelled, truth.Area)
	return nil
}

func (a *accuracyAccumulator) class(k int) int {
	switch to := a.site.Truth.Classes; {
	case to == nil && k < a.site.Output.ClassLimit():
		return k
	case k >= 0 && k < len(to):
		return to[k]
	}
	return -1
}

func (a *accuracyAccumulator) labelled(truth *decoded.Truth, move measure.Motion) ([]labelledBox, error) {
	m, err := newMotion(move, a.site.Output.Height, a.site.Output.Width)
	if err != nil {
		return nil, err
	}
	var out []labelledBox
	for _, o := range truth.Objects {
		b := decoded.Box{Left: o.Left, Top: o.Top, Right: o.Right, Bottom: o.Bottom, Class: a.class(o.Class)}
		const ellipse = false // labelled boxes are drawn around their moved corners
		if !truth.Cropped && m.outline() == unitSquare && m.apply(point{0.5, 0.25}) == (point{0.5, 0.25}) {
			// A label that extends beyond the whole image stays as it is, as in COCO's evaluation.
			if b.Class >= 0 {
				out = append(out, labelledBox{Box: b, Area: o.Area, Crowd: o.Crowd})
			}
			continue
		}
		moved, visible := m.box(b, ellipse)
		if b.Class < 0 || visible == 0 && b.Area() > 0 {
			continue
		}
		out = append(out, labelledBox{Box: moved, Area: o.Area, Crowd: o.Crowd, Ignored: visible < 0.5})
	}
	return out, nil
}

// addMap counts the predicted class, the labelled class and their agreement at each pixel of the
// mask, moved as the image is. labels counts those of this sample.
func (a *accuracyAccumulator) addMap(regions, labels []int, row []float32, truth *decoded.Truth, move measure.Motion, view string) error {
	mask := truth.Mask
	if mask.Rank() != 2 {
		return errors.New("it has no mask")
	}
	h, w := mask.Shape[0], mask.Shape[1]
	maps := &mapAction{format: &decoded.Format{Height: h, Width: w}}
	p, ok := measure.PointMapOf(move, h, w)
	if !ok {
		return errors.New("how T moves positions is not known")
	}
	maps.findSources(p) // for each pixel of T(x), the pixel of x that it shows, or -1
	f := a.site.Output
	for at, from := range maps.sources {
		if from < 0 || mask.Data[from] < 0 {
			continue
		}
		want := a.class(int(mask.Data[from]))
		if want < 0 && a.site.Truth.Classes != nil {
			continue
		}
		if want < 0 {
			return fmt.Errorf("the mask has class %d, outside of the model's 0 to %d: set ignore, or classes of the data", int(mask.Data[from]), f.ClassLimit()-1)
		}
		// the position of the output that contains the centre of the mask's pixel
		i, j := (2*(at/w)+1)*f.Height/(2*h), (2*(at%w)+1)*f.Width/(2*w)
		v := row[i*f.Width+j]
		if !(v >= 0 && v < float32(f.ClassLimit())) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return &measure.NonFinite{View: view}
			}
			return classError(int(v), f)
		}
		regions[3*int(v)+1]++
		regions[3*want+2]++
		labels[want]++
		if int(v) == want {
			regions[3*want]++
		}
	}
	return nil
}

var errOtherSite = errors.New("the state belongs to another model or study: its numbers of classes or groups differ")

func (a *accuracyAccumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*accuracyAccumulator)
	if !ok || o.site.Layout != a.site.Layout || o.n > 0 && a.n > 0 && o.moved != a.moved {
		return errOtherSite
	}
	a.n += o.n
	a.moved = a.moved || o.moved
	for v := range a.views {
		x, y := &a.views[v], &o.views[v]
		if len(x.regions) != len(y.regions) || len(x.squares) != len(y.squares) || (x.precision == nil) != (y.precision == nil) {
			return errOtherSite
		}
		for k, v := range y.squares {
			x.squares[k] += v
		}
		for i, n := range y.regions {
			x.regions[i] += n
		}
		if x.precision == nil {
			continue
		}
		if len(x.precision.positives) != len(y.precision.positives) {
			return errOtherSite
		}
		for i, n := range y.precision.positives {
			x.precision.positives[i] += n
		}
		for k, all := range y.precision.detections {
			x.precision.detections[k] = append(x.precision.detections[k], all...)
		}
	}
	return nil
}

const stateVersion = 2

func (a *accuracyAccumulator) Code(c *state.Codec) {
	c.Len(&a.n, a.site.Layout.N)
	c.Values(&a.moved)
	for _, v := range a.views {
		if c.Values(v.regions, v.squares); v.precision != nil {
			c.Values(v.precision)
		}
	}
}

func (a *accuracyAccumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal("dense-accuracy", stateVersion, a.Code)
}

func (a *accuracyAccumulator) UnmarshalBinary(data []byte) error {
	b := &accuracyAccumulator{site: a.site}
	for v := range b.views {
		b.views[v] = newEvaluation(a.site)
	}
	if err := state.Unmarshal(data, "dense-accuracy", stateVersion, b.Code); err != nil {
		return err
	}
	*a = *b
	return nil
}

// Code writes or reads positives and detections. matched and ignored are sets of bits, one for each
// range of areas and threshold of IoU.
func (p *precision) Code(c *state.Codec) {
	c.Values(p.positives)
	for k, all := range p.detections {
		var scores []float64
		var rest []int
		for _, d := range all {
			scores = append(scores, d.score)
			rest = append(rest, d.order, d.group, int(d.matched), int(d.ignored))
		}
		if c.Values(&scores, &rest); !c.Reads() {
			continue
		}
		if len(rest) != 4*len(scores) {
			c.Fail(errOtherSite)
			return
		}
		for i, score := range scores {
			d := rest[4*i:]
			c.Check(d[1] >= 0 && d[1] < p.groups, "%w", errOtherSite)
			p.detections[k] = append(p.detections[k], detection{score, d[0], d[1], uint64(d[2]), uint64(d[3])})
		}
	}
}

// AccuracyDescriptor describes the measure dense-accuracy.
func AccuracyDescriptor() measure.Descriptor {
	drop := measure.MinusOneToOne
	return measure.Descriptor{
		Name: "dense-accuracy", Title: "Accuracy of boxes and class maps", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Are the model's boxes or class maps right, on x and on T(x)?",
		Reading:  "Mean average precision as COCO computes it, or mean intersection over union. The labels move as the image does. A drop near 0 means that the transformation costs no accuracy.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "moved-map", Title: "mAP on T(x)", About: "Boxes: COCO's mean average precision on the transformed images, whose labels are moved.", Range: measure.ZeroToOne, Direction: measure.Higher},
			{Name: "map-drop", Title: "loss of mAP", About: "clean-map less moved-map.", Range: drop, Direction: measure.Lower},
			{Name: "clean-map", Title: "mAP", About: "Boxes: COCO's mean average precision over classes and thresholds of IoU from 0.50 to 0.95. With a factor: of a class, a size, or a threshold.", Range: measure.ZeroToOne, Direction: measure.Higher, Untransformed: true},
			{Name: "moved-miou", Title: "mean IoU on T(x)", About: "Class maps: the mean over classes of the intersection over union with the labels, on the transformed images, whose masks are moved.", Range: measure.ZeroToOne, Direction: measure.Higher},
			{Name: "miou-drop", Title: "loss of mean IoU", About: "clean-miou less moved-miou.", Range: drop, Direction: measure.Lower},
			{Name: "clean-miou", Title: "mean IoU", About: "Class maps: the mean over classes of the intersection over union with the labels. With a factor: that of a class.", Range: measure.ZeroToOne, Direction: measure.Higher, Untransformed: true},
		},
	}
}
