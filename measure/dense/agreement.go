package dense

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/paired"
)

// Agreement returns the measure dense-agreement: how far two models find the same boxes, or give
// positions the same class, on the same inputs. No labels are needed.
//
//   - agreement of boxes is 2 pairs / (boxes of both models), an F1 score, as matched of
//     dense-equivariance with a confidence and an IoU of 0.5. Only pairs of the same class count.
//   - agreement of class maps is the fraction of positions with the same class.
//   - miou is the mean over classes of the intersection over union of the two models' regions.
//   - iou, class-flips and confidence-change are those of dense-equivariance, over all pairs.
//
// The outputs of both models have the form Site.Output.
func Agreement() measure.Measure { return agreement{} }

// agreementSettings are the defaults of dense-equivariance. No box moves, so all are visible.
var agreementSettings = Settings{Confidence: 0.5, IoU: 0.5}

type agreement struct{}

func (agreement) Name() string                   { return AgreementDescriptor().Name }
func (agreement) Descriptor() measure.Descriptor { return AgreementDescriptor() }
func (agreement) Version() int                   { return 1 }
func (agreement) Settings() any                  { return struct{}{} }
func (agreement) Needs() measure.Needs           { return measure.Needs{Decoded: true, OtherModel: true} }

func (agreement) Skip(s measure.Site) string {
	if s.Output.Kind != decoded.BoxList && s.Output.Kind != decoded.ClassMap {
		return fmt.Sprintf("of decoded outputs, boxes and class maps are compared, and these are %s", s.Output.Kind)
	}
	return ""
}

func (m agreement) Cost(s measure.Site) int64 { return paired.New(m.spec(s)).Cost(s) }

func (m agreement) Borrowed(s measure.Site) int64 {
	return paired.New(m.spec(s)).(measure.Borrower).Borrowed(s)
}

func (m agreement) New(s measure.Site) (measure.Accumulator, error) {
	return paired.New(m.spec(s)).New(s)
}

const agreementName = "agreement"

func (m agreement) spec(s measure.Site) paired.Spec {
	spec := paired.Spec{Descriptor: AgreementDescriptor(), Version: m.Version(), StateVersion: 1, Settings: m.Settings(), Needs: m.Needs()}
	from := "matched"
	if s.Output.Kind == decoded.ClassMap {
		from = "pixel-agreement"
		addClassMap(&spec, s.Output, agreementSettings)
	} else {
		addBoxes(&spec, s.Output, agreementSettings)
		spec.Action = func(measure.Site) (paired.Action, error) {
			return &sameClass{boxAction{format: s.Output, settings: agreementSettings}}, nil
		}
	}
	spec.Derived = slices.DeleteFunc(spec.Derived, func(d paired.Derived) bool {
		return d.Factor != "" && !strings.HasPrefix(d.Factor, "class=") || d.Statistic == "keypoint-distance"
	})
	for i := range spec.Derived {
		d := &spec.Derived[i]
		if d.Statistic != from {
			d.Optional = true // without pairs there is none
			continue
		}
		d.Statistic = agreementName
		if of := d.Of; from == "matched" && d.Factor == "" {
			same := *d
			same.Undefined = fmt.Sprintf("neither model has a box of a score of at least %g: check preprocess and output", agreementSettings.Confidence)
			same.Of = func(m []float64) float64 {
				if m[allBoxes] == 0 {
					return of(m)
				}
				return (m[inPairs] - 2*m[flipSum]) / m[allBoxes]
			}
			*d = proportion(same)
		}
	}
	for i := range spec.Columns {
		if spec.Columns[i].Sample == from {
			spec.Columns[i].Sample = agreementName
		}
	}
	return spec
}

// A sameClass compares boxes that did not move. Its value of a sample counts pairs of the same class.
type sameClass struct{ boxAction }

func (a *sameClass) Act(dst []float32, _ []float64, z []float32, _ measure.Motion) error {
	boxes, err := a.read(z, "clean")
	if err != nil {
		return err
	}
	rows, counts, outline := a.split(dst)
	a.format.SetBoxes(rows, distinct(boxes))
	for i := range counts {
		counts[i] = 1
	}
	for i, p := range unitSquare {
		outline[2*i], outline[2*i+1] = float32(p.x), float32(p.y)
	}
	return nil
}

func (a *sameClass) Pair(out []float64, acted, transformed []float32) error {
	if err := a.boxAction.Pair(out, acted, transformed); err != nil {
		return err
	}
	if !math.IsNaN(out[sampleMatched]) {
		out[sampleMatched] = (out[inPairs] - 2*out[flipSum]) / out[allBoxes]
	}
	return nil
}

// AgreementDescriptor describes the measure dense-agreement.
func AgreementDescriptor() measure.Descriptor {
	d := Descriptor()
	d.Name, d.Title = "dense-agreement", "Agreement of boxes and class maps"
	d.Question = "Do two models find the same things in the same image?"
	d.Reading = "1 means that every pixel has the same class, or every box a partner of its class. The null is the agreement of unrelated images."
	d.Statistics = slices.DeleteFunc(d.Statistics, func(s measure.StatisticDescriptor) bool {
		return !slices.Contains([]string{"miou", "iou", "class-flips", "confidence-change"}, s.Name)
	})
	d.Statistics = append([]measure.StatisticDescriptor{{Name: agreementName, Title: "agreement", About: "Class maps: the fraction of positions with the same class. Boxes: twice the number of pairs of the same class divided by the number of boxes of both models.",
		Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs", PerSample: true}}, d.Statistics...)
	return d
}
