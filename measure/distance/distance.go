// Package distance measures how far a layer's activations move when the input is transformed.
//
// Write z for the activations of one layer on x and z' for those on T(x), each flattened to one vector. The statistics
// are means over samples:
//
//	cosine       1 - z.z' / (|z| |z'|)                      a distance, not a similarity: 0 same direction, 2 opposite
//	l1           sum |z_i - z'_i|
//	l2           |z - z'|
//	relative-l2  |z - z'| / sqrt((|z|^2 + |z'|^2) / 2)      0 to 2; sqrt 2 for vectors of equal length at right angles
//
// l1 and l2 are in the units of the layer, so they compare models only where layers have the same scale; cosine ignores
// the length of both vectors, and relative-l2 is l2 freed of the layer's scale. (The denominator takes both lengths, so
// that a sample which leaves a layer silent does not give infinity.) Two zero vectors are at distance 0; a zero
// vector is at cosine distance 1 from any other.
//
// The null is the same mean over shuffled pairs, x of one sample with T(x) of another. Read a distance against it: after a
// ReLU all activations point into the same corner of space, so that unrelated images may lie only 0.2 apart.
//
// Zero distance means invariance. A large one does not mean that information is lost: feature maps that turn with the
// image are far from where they were. That is what measure/seis tells apart.
package distance

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/paired"
	"github.com/noether-ml/noether/tensor"
)

// Settings are those of the measure.
type Settings struct {
	PerClass bool `key:"per-class" json:"per-class" default:"false" doc:"also give the scores of each class of labels"`
}

// New returns the measure distance: cosine, l1, l2, relative-l2; the same are its per-sample values.
func New(s Settings) measure.Measure {
	column := func(name string, most float64) paired.Column {
		return paired.Column{Statistic: name, Sample: name, Max: most, Null: true, Moved: true}
	}
	inf := math.Inf(1)
	return &family{settings: s, spec: paired.Spec{
		Kind: "distance", Version: 1, Pair: pair, PerClass: s.PerClass,
		Columns: []paired.Column{column("cosine", 2), column("l1", inf), column("l2", inf), column("relative-l2", 2)},
	}}
}

// pair fills the columns of New.
func pair(out []float64, _ int, clean, moved []float32) error {
	m := momentsOf(clean, moved)
	// Squares of finite float32 values do not overflow a float64.
	if !finite(m.aa) {
		return &measure.NonFinite{View: "clean"}
	}
	if !finite(m.bb) {
		return &measure.NonFinite{View: "moved"}
	}
	d := m.distances()
	copy(out, []float64{d.Cosine, d.L1, d.L2, d.RelativeL2})
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

type family struct {
	spec     paired.Spec
	settings Settings
}

func (f *family) Name() string                 { return f.spec.Kind }
func (*family) Descriptor() measure.Descriptor { return Descriptor() }
func (f *family) Version() int                 { return f.spec.Version }
func (f *family) Settings() any                { return f.settings }
func (f *family) Needs() measure.Needs         { return measure.Needs{Moved: true} }
func (f *family) Skip(measure.Site) string     { return "" }

// Cost is two vectors of the layer, for the null, and a few numbers.
func (f *family) Cost(s measure.Site) int64 { return f.spec.Cost(s, tensor.Size(s.Layer.Shape)) }

func (f *family) New(s measure.Site) (measure.Accumulator, error) {
	return paired.New(&f.spec, s, tensor.Size(s.Layer.Shape)), nil
}
