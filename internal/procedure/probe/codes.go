package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// CodesSettings are the settings of the measure disentanglement-metrics.
type CodesSettings struct {
	Targets
	Bins       int     `key:"bins" json:"bins" default:"20" min:"2" doc:"bins of equal width: of the components for mig, and of factors that are numbers with more different values, for all statistics of classes"`
	Neighbours int     `key:"neighbours" json:"neighbours" default:"10" min:"1" doc:"nearest neighbours of the estimate of mutual information of infom and infoc"`
	Lasso      float64 `key:"lasso" json:"lasso" default:"0.02" min:"0" doc:"penalty of the lasso of the dci statistics"`
	Train      float64 `key:"train" json:"train" default:"0.67" min:"0.1" max:"0.9" doc:"fraction of the samples from which dci and sap are fitted; their errors are of the others"`
	Representation
}

// Codes returns the measure disentanglement-metrics: does each component of a layer's vector hold
// one factor, and each factor lie in one component? Invalid settings are an error.
func Codes(s CodesSettings) (procedure.Procedure, error) {
	switch {
	case s.Bins < 2:
		return nil, fmt.Errorf("bins is %d: it must be at least 2", s.Bins)
	case s.Neighbours < 1:
		return nil, fmt.Errorf("neighbours is %d: it must be at least 1", s.Neighbours)
	case !(s.Lasso > 0) || math.IsInf(s.Lasso, 0):
		return nil, fmt.Errorf("lasso is %v: it must be above 0 and finite", s.Lasso)
	case !(s.Train >= 0.1 && s.Train <= 0.9):
		return nil, fmt.Errorf("train is %v: it must be 0.1 to 0.9", s.Train)
	}
	if err := s.Targets.check(); err != nil {
		return nil, err
	}
	return &codes{s}, nil
}

type codes struct{ settings CodesSettings }

func (*codes) Name() string                   { return "disentanglement-metrics" }
func (*codes) Descriptor() measure.Descriptor { return CodesDescriptor() }
func (*codes) Version() int                   { return 1 }
func (m *codes) Settings() any                { return m.settings }

// maxCodeSamples is the number of samples if the settings do not limit it.
const maxCodeSamples = 2000

// maxCodes bounds the length of vectors: their second moments are in memory, and every component is
// compared with every factor.
const maxCodes = 2048

func (m *codes) Needs() procedure.Needs {
	out := m.settings.needs(false) // false: without a transformation
	if out.Samples == 0 {
		out.Samples = maxCodeSamples
	}
	return out
}

func (m *codes) Skip(j *procedure.Job) string {
	if names := m.settings.factors(j.Data.Factors(), j.Data.Classes() != nil); len(names) == 1 {
		return fmt.Sprintf("the statistics compare factors, and there is one, %s: use informativeness", names[0])
	}
	return m.settings.Targets.skip(&m.settings.Representation, j)
}

func (m *codes) Work(j *procedure.Job) int64 { return int64(j.Data.Len()) }

// Check implements procedure.Checker.
func (m *codes) Check(j *procedure.Job) error { return m.settings.checkNames(j) }

func (m *codes) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, nil, func(r *run) (layerScorer, error) {
		var targets []*target
		for _, name := range s.factors(j.Data.Factors(), j.Data.Classes() != nil) {
			t, err := s.target(j.Data, r.samples, name)
			if err != nil {
				return nil, err
			}
			targets = append(targets, t)
		}
		return func(layer tensor.Layer) ([]measure.Score, error) { return r.codeScores(ctx, layer, targets, s) }, nil
	})
}

// codeScores scores a layer on the samples with a vector and all factors.
func (r *run) codeScores(ctx context.Context, layer tensor.Layer, targets []*target, s *CodesSettings) ([]measure.Score, error) {
	table, err := r.open(ctx, layer, sampleTransform{}, nil)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	in := newProbeInput("", r.samples.Positions, table)
	if d := in.dim(); d < 2 || d > maxCodes {
		why := fmt.Sprintf("vectors of %d numbers: the statistics compare 2 to %d components; pool the layer", d, maxCodes)
		var out []measure.Score
		for _, name := range codeStatistics {
			out = append(out, measure.Score{Statistic: name}.Undefined(why))
		}
		return out, nil
	}
	t := &codeTable{settings: s, factors: make([]codeFactor, len(targets))}
	omitted := 0
	for i := range r.samples.Len() {
		known := in.has(i)
		for _, g := range targets {
			known = known && g.known(i)
		}
		if !known {
			omitted++
			continue
		}
		z := make([]float32, in.dim())
		if err := in.row(z, i); err != nil {
			return nil, err
		}
		t.vectors = append(t.vectors, tensor.Float64s(z))
		for k, g := range targets {
			if g.classes > 0 {
				t.factors[k].add(float64(g.class[i]))
			} else {
				t.factors[k].add(g.value[i])
			}
		}
	}
	for k, g := range targets {
		t.factors[k].name, t.factors[k].categorical = g.name, g.classes > 0
	}
	if len(t.vectors) < minSamples {
		return nil, fmt.Errorf("%w with a vector and all factors: %d of at least %d", measure.ErrTooFew, len(t.vectors), minSamples)
	}
	key := r.job.Key
	t.shuffle = seed.Rand(key.Seed, "probe: null", key.Data, key.Trial, "codes").Perm(len(t.vectors))
	scores, err := t.scores(ctx)
	for i := range scores {
		if omitted > 0 {
			scores[i].Warnings = append(scores[i].Warnings, fmt.Sprintf("%d samples lack a factor and are left out", omitted))
		}
	}
	return scores, err
}

// codeStatistics are the names of the statistics in the order of codeTable.evaluate.
var codeStatistics = []string{"dci-disentanglement", "dci-completeness", "dci-error", "mig", "sap", "infom", "infoc", "infoe"}

// A codeFactor holds the values of a factor, one for each sample.
type codeFactor struct {
	name        string
	categorical bool
	value       []float64 // of a category, its number from 0
}

func (f *codeFactor) add(v float64) { f.value = append(f.value, v) }

// A codeTable holds n vectors and the factors of their samples, in random order.
type codeTable struct {
	settings *CodesSettings
	vectors  [][]float64
	factors  []codeFactor
	shuffle  []int // for the null, the sample whose vector each sample gets
}

// scores returns the statistics with intervals by a jackknife over samples, and the nulls: the same
// with the vectors of other samples.
func (t *codeTable) scores(ctx context.Context) ([]measure.Score, error) {
	n := len(t.vectors)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	fit := &codeFit{}
	values, err := t.evaluate(ctx, all, all, fit)
	if err != nil {
		return nil, err
	}
	nulls, err := t.evaluate(ctx, all, t.shuffle, &codeFit{})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for k, name := range codeStatistics {
		s := measure.Plain(name, values[k], n)
		s.Null = nulls[k]
		d, _ := CodesDescriptor().Statistic(name)
		s.Min, s.Max = d.Range.Low, d.Range.High
		if math.IsNaN(s.Value) {
			s.Warnings = append(s.Warnings, "undefined: no component depends on a factor, or a factor is constant")
		}
		out = append(out, s)
	}
	groups := min(maxGroups, n/2)
	for g := range groups {
		var kept []int
		for i := range n {
			if i%groups != g {
				kept = append(kept, i)
			}
		}
		values, err := t.evaluate(ctx, kept, kept, fit)
		if err != nil {
			return nil, err
		}
		for k := range out {
			out[k].Replicates = append(out[k].Replicates, measure.Replicate{Value: values[k], Left: n - len(kept)})
		}
	}
	for k := range out {
		s := &out[k]
		s.Low, s.High = resample.Jackknife(s.Value, n, s.Replicates)
		if !math.IsNaN(s.Low) {
			s.Low, s.High = max(s.Low, s.Min), min(s.High, s.Max)
		}
	}
	return out, nil
}

// A codeFit keeps fits of all samples, from which those of most of them start.
type codeFit struct {
	lasso    map[string][]float64
	logistic map[string][]float64
}

// evaluate returns the statistics of samples, with the factors of samples and the vectors of from.
func (t *codeTable) evaluate(ctx context.Context, samples, from []int, fit *codeFit) ([]float64, error) {
	n, d := len(samples), len(t.vectors[0])
	z := make([][]float64, d) // of each component, the values of the samples
	for k := range z {
		z[k] = make([]float64, n)
		for i, s := range from {
			z[k][i] = t.vectors[s][k]
		}
	}
	factors := make([]codeFactor, len(t.factors))
	classes := make([]classes, len(t.factors))
	for j, f := range t.factors {
		factors[j] = codeFactor{f.name, f.categorical, take(f.value, samples)}
		classes[j] = t.settings.classesOf(factors[j])
		if classes[j].count < 2 {
			return nil, fmt.Errorf("%s is constant over the samples: leave it out of factors", f.name)
		}
	}
	train := int(math.Round(t.settings.Train * float64(n)))
	disentanglement, completeness, fault := t.settings.dci(z, factors, train, fit)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := []float64{disentanglement, completeness, fault, mig(z, classes, t.settings.Bins), sap(z, factors, classes, train)}
	infom, infoc := infoModularity(z, classes, t.settings.Neighbours)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	infoe, err := infoExplicitness(ctx, z, factors, classes, fit)
	return append(out, infom, infoc, infoe), err
}

// classes number the values of a factor, or the bins of a component.
type classes struct {
	of    []int // of each sample
	count int
}

// classesOf returns the categories of a factor, or of numbers the different values; if there are
// more than Bins, bins of equal width.
func (s *CodesSettings) classesOf(f codeFactor) classes {
	values := slices.Clone(f.value)
	slices.Sort(values)
	values = slices.Compact(values)
	if !f.categorical && len(values) > s.Bins {
		return histogram(f.value, s.Bins)
	}
	out := classes{count: len(values)}
	for _, v := range f.value {
		k, _ := slices.BinarySearch(values, v)
		out.of = append(out.of, k)
	}
	return out
}

// histogram divides values into bins of equal width between the smallest and the largest one.
func histogram(values []float64, bins int) classes {
	low, high := slices.Min(values), slices.Max(values)
	out := classes{count: bins}
	edges := make([]float64, bins)
	for k := range edges {
		edges[k] = low + float64(k)*(high-low)/float64(bins)
	}
	for _, v := range values {
		k, found := slices.BinarySearch(edges, v)
		if !found {
			k-- // the edge before the value
		}
		out.of = append(out.of, max(k, 0))
	}
	if low == high {
		out.of, out.count = make([]int, len(values)), 1
	}
	return out
}

// entropy returns the entropy of classes in nats, and information the mutual information of two.
func (c classes) entropy() float64 {
	count := make([]float64, c.count)
	for _, k := range c.of {
		count[k]++
	}
	return entropyOf(count)
}

func (c classes) information(o classes) float64 {
	joint := make([]float64, c.count*o.count)
	for i, k := range c.of {
		joint[k*o.count+o.of[i]]++
	}
	return max(0, c.entropy()+o.entropy()-entropyOf(joint))
}

func entropyOf(count []float64) float64 {
	var n, out float64
	for _, v := range count {
		n += v
	}
	for _, v := range count {
		if v > 0 {
			out -= v / n * math.Log(v/n)
		}
	}
	return out
}

// mig returns the mutual information gap (Chen et al. 2018): the mean over factors of the
// difference between the two components that know most of it, divided by its entropy.
func mig(z [][]float64, factors []classes, bins int) float64 {
	known := make([][]float64, len(factors))
	for _, values := range z {
		c := histogram(values, bins)
		for j, f := range factors {
			known[j] = append(known[j], c.information(f))
		}
	}
	var out float64
	for j, f := range factors {
		out += topGap(known[j]) / f.entropy() / float64(len(factors))
	}
	return out
}

// topGap returns the difference of the two largest values.
func topGap(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)-1] - sorted[len(sorted)-2]
}

var errNotConverged = errors.New("a logistic regression did not converge: standardise the layer, or take fewer factors")
