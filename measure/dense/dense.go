// Package dense measures whether a model finds the same objects at the transformed positions:
// whether its class maps, boxes, keypoints or maps of values move as the input does.
//
// Let f(x) be the output of a model, decoded into one of these (see package internal/model/output),
// and tau f(x) the same moved by the transformation T: each position of tau f(x) is read from the
// position of f(x) that T moves to it. For class maps, over the positions that tau reads from
// inside the map,
//
//	pixel-agreement   fraction of positions with the same class in f(Tx) and tau f(x)
//	miou              mean over classes of intersection / union of the regions of the class
//
// Both are ratios of sums over all samples. For boxes, those of a score of at least
// Settings.Confidence are matched one to one, by descending IoU of at least Settings.IoU, those of
// the same class first:
//
//	matched           2 pairs / (boxes of tau f(x) + boxes of f(Tx))    (an F1 score)
//	iou               mean IoU of the pairs
//	class-flips       fraction of the pairs whose classes differ
//	confidence-change mean over the pairs of the score in f(Tx) minus that in tau f(x)
//	keypoint-distance mean distance of the keypoints of the pairs, in units of the square root of the box's area
//
// A moved box is the smallest upright box around the moved corners, cut at the border of the image.
// Boxes near the border need not be found, since a detector may find half an object or not. So a
// moved box counts only if at least the fraction Settings.Visible of its area is inside the image.
// A box of f(Tx) counts only if at least this fraction of it shows the image x, not the fill around
// x. A box that does not count is matched after the others, and its partner then does not count
// either.
//
// For the keypoints of heat maps, keypoint-distance is in units of the square root of the image's
// area. A keypoint counts if it is visible in both and tau f(x) has it inside the image.
//
// For maps of values, such as depth,
//
//	relative-error    |f(Tx) - tau f(x)| / |tau f(x)|, as in package equivariance; a mean over samples
//	psnr              10 log10(Settings.Peak^2 / mean squared difference), in dB
//	angle             surface normals only: the mean angle between f(Tx) and tau f(x), in degrees
//
// For translations and rotations of images, psnr is EQ-T and EQ-R of Karras et al. 2021
// (StyleGAN3). tau turns normals in the plane of the image by the rotation or reflection that is
// nearest to the matrix of T.
//
// The null, the score by chance, pairs tau f(x) with f(Tx) of another sample. In the source, x is
// the untransformed sample, its clean view, and T(x) its transformed view.
package dense

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/measure/resample"
)

// Settings configure the measure.
type Settings struct {
	Confidence float64 `key:"confidence" json:"confidence" default:"0.5" min:"0" max:"1" doc:"boxes: the least score of boxes that are compared"`
	IoU        float64 `key:"iou" json:"iou" default:"0.5" min:"0.01" max:"1" doc:"boxes: the least intersection over union of a pair"`
	Visible    float64 `key:"visible" json:"visible" default:"0.5" min:"0" max:"1" doc:"boxes: the part of a box that must lie in the image before and after the transformation, for it to count"`
	Extent     string  `key:"extent" json:"extent" default:"corners" enum:"corners|ellipse" doc:"boxes: the moved box is drawn around its moved corners, or around the ellipse inside them, which is closer to round objects that are rotated"`
	Margin     float64 `key:"margin" json:"margin" default:"0" min:"0" max:"0.45" doc:"maps: fraction of the sides that is left out at the border"`
	Peak       float64 `key:"peak" json:"peak" default:"1" min:"0.000001" doc:"maps of values: the range of the values, for psnr"`
}

// New returns the measure dense-equivariance.
func New(s Settings) measure.Measure { return method{s} }

type method struct{ settings Settings }

func (m method) Name() string                   { return Descriptor().Name }
func (m method) Descriptor() measure.Descriptor { return Descriptor() }
func (m method) Version() int                   { return 2 }
func (m method) Settings() any                  { return m.settings }
func (m method) Needs() measure.Needs           { return measure.Needs{Decoded: true, Transformed: true} }

func (m method) Skip(s measure.Site) string {
	switch {
	case s.Output == nil:
		return "no output of the model is decoded"
	case s.Motion == nil:
		return "how positions move from x to T(x) is not known where the data are pairs"
	}
	return ""
}

func (m method) Cost(s measure.Site) int64 { return paired.New(m.spec(s)).Cost(s) }

func (m method) Borrowed(s measure.Site) int64 {
	return paired.New(m.spec(s)).(measure.Borrower).Borrowed(s)
}

func (m method) New(s measure.Site) (measure.Accumulator, error) {
	return paired.New(m.spec(s)).New(s)
}

func (m method) spec(s measure.Site) paired.Spec {
	spec := paired.Spec{Descriptor: Descriptor(), Version: 2, StateVersion: 2, Settings: m.settings, Needs: m.Needs(),
		LeftOut: "no position lies inside the image before and after the transformation"}
	switch s.Output.Kind {
	case decoded.ClassMap:
		addClassMap(&spec, s.Output, m.settings)
	case decoded.BoxList:
		addBoxes(&spec, s.Output, m.settings)
	case decoded.PointList:
		addPoints(&spec, s.Output)
	default:
		addValues(&spec, s.Output, m.settings, &action.Cache{})
	}
	return spec
}

// ratio returns the ratio of the means of columns a and b. Where the latter is 0 it is undefined,
// with the warning undefined. With a factor, such as a class, an undefined statistic is left out.
func ratio(statistic, factor string, a, b int, undefined string) paired.Derived {
	of := func(m []float64) float64 {
		if m[b] == 0 {
			return math.NaN()
		}
		return m[a] / m[b]
	}
	return paired.Derived{Statistic: statistic, Factor: factor, Optional: factor != "", Shuffled: true, Of: of, Undefined: undefined}
}

// proportion returns d with Wilson's interval where its value is 0 or 1: the jackknife of equal
// samples has width 0.
func proportion(d paired.Derived) paired.Derived {
	of := d.Of
	d.Extreme = func(m []float64, n int) (low, high float64) {
		v := of(m)
		if v == 0 || v == 1 {
			return resample.Wilson(v, n)
		}
		return v, v
	}
	return d
}

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	const null = "shuffled pairs"
	return measure.Descriptor{
		Name: "dense-equivariance", Title: "Equivariance of class maps, boxes and maps", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Does the model find the same things, at the moved positions, in the transformed image?",
		Reading:  "The output of the transformed image is compared with the transformed output of the clean image, without labels. 1 means that every pixel keeps its class, or every box is found again. The null is the agreement of unrelated images: with a large background it can be high.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "pixel-agreement", Title: "pixel agreement", About: "Class maps: the fraction of positions whose class is the same. With a factor confidence: of the positions with at least that probability on the clean image.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "miou", Title: "mean IoU", About: "Class maps: the mean over classes of the intersection over union of their regions. With a factor class: that of the class.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "matched", Title: "matched boxes", About: "Boxes: twice the number of pairs divided by the number of boxes of both images. With a factor: of the boxes of that class, size or least confidence.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "iou", Title: "IoU of pairs", About: "Boxes: the mean intersection over union of the pairs.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "class-flips", Title: "class flips", About: "Boxes: the fraction of the pairs whose classes differ.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "confidence-change", Title: "change of confidence", About: "Boxes: the mean over the pairs of the score in the transformed image minus that in the clean one.", Range: measure.MinusOneToOne, Null: null, PerSample: true},
			{Name: "keypoint-distance", Title: "distance of keypoints", About: "Keypoints: the mean distance of those of the pairs, in units of the square root of the area of the object's box; of heat maps, in units of the square root of the area of the image. With a factor keypoint: that of the keypoint.", Range: measure.NotNegative, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "relative-error", Title: "relative error", About: "Maps of values: the norm of the difference divided by that of the transformed map.", Range: measure.NotNegative, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "psnr", Title: "PSNR", About: "Maps of values: the peak signal-to-noise ratio, from the mean squared difference over all samples.", Range: measure.AnyNumber, Unit: "dB", Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "angle", Title: "angle", About: "Normals: the mean angle between the two vectors of a position.", Range: measure.NotNegative, Unit: "degrees", Direction: measure.Lower, Null: null, PerSample: true},
		},
	}
}
