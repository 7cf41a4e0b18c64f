package similarity

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// The names of the statistics of one representation, of the measure geometry.
const (
	Magnitude          = "magnitude"
	Concentricity      = "concentricity"
	Uniformity         = "uniformity"
	IntrinsicDimension = "intrinsic-dimension"
	EffectiveRank      = "effective-rank"
	RankMe             = "rankme"
	AlphaReQ           = "alpha-req"
)

// geometryStatistics returns the statistics of one representation, the first of the pair. wideBelow
// gives a warning, cost counts multiplications, columns: samples x variables are in memory;
// unpaired: no null.
func geometryStatistics() []statistic {
	out := []statistic{
		{name: Magnitude, minSamples: 2, cost: perPair, compute: func(v *subsetPair) (float64, error) { return magnitude(v, v.x) }},
		{name: Concentricity, minSamples: 2, cost: perPair, compute: func(v *subsetPair) (float64, error) { return concentricity(v, v.x) }},
		{name: Uniformity, minSamples: 2, cost: perPair, compute: func(v *subsetPair) (float64, error) { return uniformity(v, v.x) }},
		{name: IntrinsicDimension, minSamples: 3, wideBelow: wideForAll, cost: perPair, compute: func(v *subsetPair) (float64, error) { return intrinsicDimension(v, v.x) }},
		{name: EffectiveRank, minSamples: 2, wideBelow: wideForFew, cost: perAxis, columns: true, compute: func(v *subsetPair) (float64, error) { return rankOf(v, v.x) }},
		{name: RankMe, minSamples: 2, wideBelow: wideForFew, cost: perAxis, columns: true, compute: rankMe},
		{name: AlphaReQ, minSamples: 3, cost: perAxis, columns: true, compute: alphaReQ},
	}
	for i := range out {
		// With difference set, a constant representation does not get the fixed value of a similarity.
		out[i].input, out[i].difference, out[i].unpaired = pairwiseInput, true, true
	}
	return out
}

// GeometrySettings configure the measure geometry.
type GeometrySettings struct {
	Pool    string `key:"pool" json:"pool" default:"none" enum:"none|mean|class|patch" doc:"variables of a layer: none, every channel at every position; mean, the mean of each channel over positions; class, those of the class token; patch, the mean over the tokens of patches"`
	Samples int    `key:"samples" json:"samples" default:"4096" min:"4" max:"32768" doc:"largest number of samples, taken in random order; memory grows with the square"`
}

// Moved is the Variant of the scores of the measure geometry on transformed inputs.
const Moved = "moved"

// NewGeometry returns the measure geometry. Settings out of range are an error.
func NewGeometry(s GeometrySettings) (measure.Measure, error) {
	settings := Defaults()
	settings.Pool, settings.Samples = s.Pool, s.Samples
	if err := settings.check(); err != nil {
		return nil, err
	}
	settings.Statistics = nil
	for _, k := range geometryStatistics() {
		settings.Statistics = append(settings.Statistics, k.name)
	}
	return &geometry{s, &comparison{settings}}, nil
}

type geometry struct {
	settings   GeometrySettings
	comparison *comparison
}

func (*geometry) Name() string { return "geometry" }

func (*geometry) Descriptor() measure.Descriptor { return GeometryDescriptor() }

func (*geometry) Version() int { return 2 }

func (m *geometry) Settings() any { return m.settings }

func (*geometry) Needs() measure.Needs {
	return measure.Needs{Transformed: true, TransformOptional: true}
}

func (m *geometry) Skip(s measure.Site) string { return m.comparison.Skip(gridOf(s)) }

// Pooling implements measure.Pooler.
func (m *geometry) Pooling(l tensor.Layer) string { return m.comparison.Pooling(l) }

func (m *geometry) Cost(s measure.Site) int64 { return 2 * m.comparison.Cost(gridOf(s)) }

func (m *geometry) New(s measure.Site) (measure.Accumulator, error) {
	out := &geometryAccumulator{site: s}
	for i := range out.views {
		g, err := m.comparison.New(gridOf(s))
		if err != nil {
			return nil, err
		}
		out.views[i] = g.(*accumulator)
	}
	return out, nil
}

// gridOf compares a layer with itself, in half of the memory: x and T(x) each have a grid.
func gridOf(s measure.Site) measure.Grid {
	layers := []tensor.Layer{s.Layer}
	return measure.Grid{A: layers, B: layers, Pairs: [][2]int{{0, 0}}, Layout: s.Layout, Self: true, Budget: s.Budget / 2, Key: s.Key}
}

// A geometryAccumulator holds x and T(x), each as a layer compared with itself.
type geometryAccumulator struct {
	site  measure.Site
	views [2]*accumulator // the views of a sample are x and T(x)
}

// Update names the view in errors, where a comparison names its side.
func (a *geometryAccumulator) Update(b *measure.Batch) error {
	for i, z := range []tensor.Tensor{b.Clean, b.Transformed} {
		if z.Len() == 0 && i == 1 {
			continue // there is no transformation
		}
		p := &measure.PairBatch{Place: b.Place, Index: b.Index, Label: b.Label, A: []tensor.Tensor{z}, B: []tensor.Tensor{z}}
		if err := a.views[i].Update(p); err != nil {
			if n, ok := err.(*measure.NonFiniteIn); ok {
				return &measure.NonFinite{View: [2]string{"clean", "transformed"}[i], Index: n.Index}
			}
			return err
		}
	}
	return nil
}

func (a *geometryAccumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*geometryAccumulator)
	if !ok {
		return fmt.Errorf("geometry: merging a state of %T", other)
	}
	for i, v := range a.views {
		if err := v.Merge(o.views[i]); err != nil {
			return err
		}
	}
	return nil
}

// Scores returns the statistics on x and, with the variant Moved, on T(x).
func (a *geometryAccumulator) Scores() ([]measure.Score, error) {
	var out []measure.Score
	for i, v := range a.views {
		if i == 1 && v.n == 0 && len(v.pending.places) == 0 { // no sample was transformed
			break
		}
		found, err := v.Scores()
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if i == 1 {
				s.Variant = Moved
			}
			out = append(out, s.Score)
		}
	}
	return out, nil
}

func (a *geometryAccumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal("geometry", 1, a.Code)
}

func (a *geometryAccumulator) UnmarshalBinary(data []byte) error {
	return state.Unmarshal(data, "geometry", 1, a.Code)
}

func (a *geometryAccumulator) Code(c *state.Codec) {
	for _, v := range a.views {
		var raw []byte
		if !c.Reads() {
			r, err := v.MarshalBinary()
			c.Fail(err)
			raw = r
		}
		if c.Values(&raw); c.Reads() && !c.Failed() {
			c.Fail(v.UnmarshalBinary(raw))
		}
	}
}

// magnitude returns the length of the mean representation (Klabunde et al. 2025), about 0 (raw), in
// units of the activations.
func magnitude(v *subsetPair, s *subset) (float64, error) {
	k, err := s.gram(v.ctx, raw)
	if err != nil {
		return 0, err
	}
	return s.unit() * sqrt(floats.Sum(k.data)) / float64(v.n()), nil
}

// concentricity returns the mean over samples of the cosine between the sample and the mean sample.
func concentricity(v *subsetPair, s *subset) (float64, error) {
	k, err := s.gram(v.ctx, raw)
	if err != nil {
		return 0, err
	}
	return k.concentricity(), nil
}

// uniformity returns log mean exp(-2 d^2) over pairs, self included (Wang and Isola 2020).
func uniformity(v *subsetPair, s *subset) (float64, error) {
	d, err := s.distances(v.ctx, true) // in units of the activations
	if err != nil {
		return 0, err
	}
	n, sum := float64(v.n()), d.kernelSum()
	if sum < 1.01*n { // the sum over each sample with itself is n
		v.warn("distances are far above 1, so that almost only the pairs of a sample with itself contribute: divide the activations by a constant")
	}
	return math.Log(sum) - 2*math.Log(n), nil
}

// intrinsicDimension is twoNN (Facco et al. 2017).
func intrinsicDimension(v *subsetPair, s *subset) (float64, error) {
	d, err := s.distances(v.ctx, false) // up to a factor, which leaves ratios unchanged
	if err != nil {
		return 0, err
	}
	dimension := d.twoNN()
	if math.IsNaN(dimension) {
		return v.undefined("the intrinsic dimension is undefined: too few samples are at different distances")
	}
	return dimension, nil
}

// rankOf returns the effective rank (RankMe, Garrido et al. 2023).
func rankOf(v *subsetPair, s *subset) (float64, error) {
	c, err := s.coordinates(v.ctx, raw)
	if err != nil {
		return 0, err
	}
	return effectiveRank(c.s), nil
}

// rankMe returns the effective rank with the 1e-7 that Garrido et al. 2023 add to s / sum s, for
// all min(n, p) singular values s.
func rankMe(v *subsetPair) (float64, error) {
	c, err := v.x.coordinates(v.ctx, raw)
	if err != nil {
		return 0, err
	}
	const epsilon = 1e-7
	var entropy float64
	total := floats.Sum(c.s)
	for i := range min(v.n(), c.p) {
		p := epsilon
		if i < len(c.s) {
			p += c.s[i] / total
		}
		entropy -= p * math.Log(p)
	}
	return math.Exp(entropy), nil
}

// The eigenvalues to which alphaReQ fits a power law, counted from 1, as in the authors' program.
const firstFitted, lastFitted = 6, 100

// alphaReQ returns the decay of the eigenvalues of the covariance (Agrawal et al. 2022): minus the
// slope of their logarithms against those of their indices j, by least squares with weights 1 / j.
func alphaReQ(v *subsetPair) (float64, error) {
	c, err := v.x.coordinates(v.ctx, centred)
	if err != nil {
		return 0, err
	}
	last := min(lastFitted, len(c.s))
	if last-firstFitted < 2 {
		return v.undefined("the decay of the spectrum is undefined: of %d samples of %d variables there are %d principal components, and a fit needs eight", v.n(), v.x.of.p, len(c.s))
	}
	var x, y, w []float64
	for j := firstFitted; j <= last; j++ {
		x, y, w = append(x, math.Log(float64(j))), append(y, 2*math.Log(c.s[j-1])), append(w, 1/float64(j))
	}
	_, slope := stat.LinearRegression(x, y, w, false)
	return -slope, nil
}

func differenceOf(property func(*subsetPair, *subset) (float64, error)) func(*subsetPair) (float64, error) {
	return func(v *subsetPair) (float64, error) {
		a, err := property(v, v.x)
		if err != nil || math.IsNaN(a) {
			return a, err
		}
		b, err := property(v, v.y)
		v.warnings = slices.Compact(v.warnings) // both representations may have the same warning
		return math.Abs(a - b), err
	}
}
