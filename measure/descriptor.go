package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// A Descriptor describes a measure and its statistics for reports, documents and schemas. The
// record of a run contains it, so a report does not need the measure.
type Descriptor struct {
	Name     string `json:"name"`     // in scores and study files (what to measure), such as "seis"
	Title    string `json:"title"`    // a heading
	Question string `json:"question"` // what the measure asks, one sentence with a question mark
	// Between is the question where the measure compares two models on the same input. Empty:
	// Question says it, or the measure does not.
	Between string `json:"between,omitempty"`
	Reading string `json:"reading"` // how to interpret its scores
	Level   Level  `json:"level"`   // what one score describes
	// Resampled is the unit over which intervals account for variation, such as "sample". Empty: no
	// intervals.
	Resampled string `json:"resampled,omitempty"`
	// Chart names the chart that a report shows first, such as "bars" (see package report). Empty:
	// the report chooses.
	Chart string `json:"chart,omitempty"`
	// Probes reports whether variants of scores are kinds of probes, and factors are shown side by
	// side.
	Probes     bool                  `json:"probes,omitempty"`
	Statistics []StatisticDescriptor `json:"statistics"` // in the order in which they are shown
}

// A StatisticDescriptor describes one statistic of a measure.
type StatisticDescriptor struct {
	Name      string    `json:"name"`                // in scores, such as "equivariance"
	Title     string    `json:"title"`               // for use in a sentence, such as "effective invariance"
	About     string    `json:"about"`               // definition, one or two sentences
	Range     Range     `json:"range"`               // of its values
	Unit      string    `json:"unit,omitempty"`      // such as "nats" or ActivationScale; empty: a pure number
	Direction Direction `json:"direction,omitempty"` // which end is better
	// Null describes the null of a score, such as "shuffled pairs". Empty: none.
	Null string `json:"null,omitempty"`
	// Directional reports whether the score of layers or models (a, b) differs from that of (b, a).
	Directional bool `json:"directional,omitempty"`
	// Untransformed reports whether the score is of the untransformed data, the same for every
	// transformation.
	Untransformed bool `json:"untransformed,omitempty"`
	PerSample     bool `json:"per_sample,omitempty"` // a mean over samples, whose terms are stored if the study has "samples: true"
	PerUnit       bool `json:"per_unit,omitempty"`   // units.parquet has its value for each unit (layer value)
}

// Units of statistics that grow with the activations of a layer, or with the values of a factor.
const (
	ActivationScale = "scale of the activations"
	FactorScale     = "scale of the factor"
)

// HasScale reports whether values cannot be compared across layers or factors, whose scales differ.
func (s StatisticDescriptor) HasScale() bool {
	return s.Unit == ActivationScale || s.Unit == FactorScale
}

// A Level is the kind of object that one score of a measure describes.
type Level string

// The levels.
const (
	ModelLevel Level = "model" // a model's predictions
	LayerLevel Level = "layer" // a layer of a model
	PairLevel  Level = "pair"  // two layers, of one model or of two
)

// A Direction is the end of a range that is more invariant, equivariant, similar or accurate.
type Direction string

// The directions.
const (
	Neutral Direction = ""       // neither is better, for example for a rank
	Higher  Direction = "higher" // higher is better
	Lower   Direction = "lower"  // lower is better
)

// A Range is the interval of values of a statistic; a bound may be infinite, null in JSON.
type Range struct{ Low, High float64 }

// Bounded reports whether both ends of the range are finite.
func (r Range) Bounded() bool { return !math.IsInf(r.Low, 0) && !math.IsInf(r.High, 0) }

// MarshalJSON implements json.Marshaler.
func (r Range) MarshalJSON() ([]byte, error) {
	var out [2]*float64
	for i, bound := range []float64{r.Low, r.High} {
		if !math.IsInf(bound, 0) {
			out[i] = &bound
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Range) UnmarshalJSON(data []byte) error {
	var in []*float64
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if len(in) != 2 {
		return fmt.Errorf("a range has two bounds, not %d", len(in))
	}
	*r = Range{Low: math.Inf(-1), High: math.Inf(1)}
	if in[0] != nil {
		r.Low = *in[0]
	}
	if in[1] != nil {
		r.High = *in[1]
	}
	return nil
}

// The ranges that most statistics have.
var (
	ZeroToOne     = Range{Low: 0, High: 1}
	MinusOneToOne = Range{Low: -1, High: 1}
	NotNegative   = Range{Low: 0, High: math.Inf(1)}
	AtMostOne     = Range{Low: math.Inf(-1), High: 1}
	AnyNumber     = Range{Low: math.Inf(-1), High: math.Inf(1)}
)

// Statistic returns the descriptor of the named statistic, and whether there is one.
func (d Descriptor) Statistic(name string) (StatisticDescriptor, bool) {
	for _, s := range d.Statistics {
		if s.Name == name {
			return s, true
		}
	}
	return StatisticDescriptor{}, false
}

// Directional reports whether (a, b) and (b, a) differ in any of the named statistics (none: any).
func (d Descriptor) Directional(names ...string) bool {
	if len(names) == 0 {
		return slices.ContainsFunc(d.Statistics, func(s StatisticDescriptor) bool { return s.Directional })
	}
	return slices.ContainsFunc(names, func(name string) bool { s, _ := d.Statistic(name); return s.Directional })
}
