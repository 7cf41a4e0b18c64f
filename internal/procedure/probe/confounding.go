package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// ConfoundingSettings are the settings of the measure confounding.
type ConfoundingSettings struct {
	Factors    []string `key:"factors,required" json:"factors" doc:"factors that might be known instead of the class, such as site: categories, or few different numbers"`
	Neighbours int      `key:"neighbours" json:"neighbours" default:"10" min:"1" doc:"number of nearest neighbours of a sample, by the cosine"`
	Penalty    float64  `key:"penalty" json:"penalty" default:"0.01" min:"0" doc:"penalty of the linear probes, relative to the mean squared component of the centred vectors, summed over the samples"`
	Representation
}

// Confounding returns the measure confounding: does a layer know a factor, such as the site of an
// image, better than the class? Invalid settings are an error.
func Confounding(s ConfoundingSettings) (procedure.Procedure, error) {
	switch {
	case len(s.Factors) == 0:
		return nil, errors.New("factors is empty: name the factor that might confound the class, such as site")
	case slices.Contains(s.Factors, Label):
		return nil, errors.New("factors names label, which is the class itself")
	case s.Neighbours < 1:
		return nil, fmt.Errorf("neighbours is %d: it must be at least 1", s.Neighbours)
	case !(s.Penalty > 0):
		return nil, fmt.Errorf("penalty is %v: it must be above 0", s.Penalty)
	}
	return &confounding{s}, nil
}

type confounding struct{ settings ConfoundingSettings }

func (*confounding) Name() string                   { return "confounding" }
func (*confounding) Descriptor() measure.Descriptor { return ConfoundingDescriptor() }
func (*confounding) Version() int                   { return 1 }
func (m *confounding) Settings() any                { return m.settings }

// maxConfounding is the number of samples if the settings do not limit it: memory and time grow
// with its square and its cube.
const maxConfounding = 4000

func (m *confounding) Needs() procedure.Needs {
	out := m.settings.needs(false)
	out.Labels = true
	if out.Samples == 0 {
		out.Samples = maxConfounding
	}
	return out
}

func (m *confounding) Skip(j *procedure.Job) string { return m.settings.skip(j) }

func (m *confounding) Work(j *procedure.Job) int64 { return int64(j.Data.Len()) }

// Check implements procedure.Checker.
func (m *confounding) Check(j *procedure.Job) error {
	const thisData = false
	return checkFactors(j, m.settings.Factors, thisData, "factors")
}

// maxConfounderValues is the largest number of values of a factor. More are rather a quantity.
const maxConfounderValues = 100

func (m *confounding) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	return scoreLayers(ctx, j, &m.settings.Representation, nil, func(r *run) (layerScorer, error) {
		return func(layer tensor.Layer) ([]measure.Score, error) {
			table, err := r.open(ctx, layer, sampleTransform{}, nil)
			if err != nil {
				return nil, err
			}
			defer table.Close()
			in := newProbeInput("", r.samples.Positions, table)
			var out []measure.Score
			for _, factor := range m.settings.Factors {
				scores, err := r.confoundingScores(ctx, in, factor, &m.settings)
				if err != nil {
					return nil, err
				}
				out = append(out, scores...)
			}
			return out, nil
		}, nil
	})
}

// confoundingScores scores a layer for one factor, on the samples with a vector, a class and the
// factor.
func (r *run) confoundingScores(ctx context.Context, in *probeInput, factor string, s *ConfoundingSettings) ([]measure.Score, error) {
	var vectors [][]float32
	var class, group []int
	known := map[float64]int{}
	for i := range r.samples.Len() {
		v := math.NaN()
		if values := r.samples.Factors[factor]; values != nil {
			v = values[i]
		}
		if !in.has(i) || r.samples.Label[i] == dataset.NoLabel || math.IsNaN(v) {
			continue
		}
		z := make([]float32, in.dim())
		if err := in.row(z, i); err != nil {
			return nil, err
		}
		if _, ok := known[v]; !ok {
			known[v] = len(known)
		}
		vectors, class, group = append(vectors, z), append(class, r.samples.Label[i]), append(group, known[v])
	}
	switch {
	case len(known) > maxConfounderValues:
		return nil, fmt.Errorf("factor %s has %d different values, more than %d: a confounder has categories, so divide it into few", factor, len(known), maxConfounderValues)
	case len(known) < 2 || len(vectors) < 3:
		return nil, fmt.Errorf("%w with a class and a known %s: %d, with %d values of it", measure.ErrTooFew, factor, len(vectors), len(known))
	}
	c, err := confound(ctx, vectors, class, group, s.Neighbours, s.Penalty)
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, e := range c.estimates() {
		score := e.score()
		score.Factor = factor
		out = append(out, score)
	}
	return out, nil
}

// confounded holds what is known of each sample from the others.
type confounded struct {
	class, group []int
	// Of the neighbours of a sample: those of its class from another group, and those of another
	// class from its group.
	sameClass, sameGroup []float64
	// Whether the neighbours, and a linear probe, find the class and the group.
	knnClass, knnGroup, probeClass, probeGroup []float64
}

// confound compares vectors, one for each sample, with classes and groups, numbered from 0.
func confound(ctx context.Context, vectors [][]float32, class, group []int, neighbours int, penalty float64) (*confounded, error) {
	n := len(vectors)
	c := &confounded{class: class, group: group}
	unit := mat.NewDense(n, len(vectors[0]), nil)
	for i, z := range vectors {
		var norm float64
		for _, v := range z {
			norm += float64(v) * float64(v)
		}
		if norm = math.Sqrt(norm); norm == 0 {
			norm = 1 // the cosine with a zero vector is 0
		}
		for k, v := range z {
			unit.Set(i, k, float64(v)/norm)
		}
	}
	var cosines mat.Dense
	cosines.Mul(unit, unit.T())
	order := make([]int, n)
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := cosines.RawRowView(i)
		order = order[:0]
		for j := range n {
			if j != i {
				order = append(order, j)
			}
		}
		// Of equal cosines the first sample in the random order of the study comes first.
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
		nearest := order[:min(neighbours, n-1)]
		var so, os float64
		for _, j := range nearest {
			if class[j] == class[i] && group[j] != group[i] {
				so++
			} else if class[j] != class[i] && group[j] == group[i] {
				os++
			}
		}
		c.sameClass, c.sameGroup = append(c.sameClass, so), append(c.sameGroup, os)
		c.knnClass = append(c.knnClass, isRight(majority(nearest, class), class[i]))
		c.knnGroup = append(c.knnGroup, isRight(majority(nearest, group), group[i]))
	}
	var err error
	if c.probeClass, err = leaveOneOut(vectors, class, penalty); err == nil {
		c.probeGroup, err = leaveOneOut(vectors, group, penalty)
	}
	return c, err
}

func isRight(predicted, label int) float64 {
	if predicted == label {
		return 1
	}
	return 0
}

// majority returns the most frequent label of samples; of equally frequent ones that of the first
// sample, the nearest.
func majority(samples, label []int) int {
	count := map[int]int{}
	for _, j := range samples {
		count[label[j]]++
	}
	best := label[samples[0]]
	for _, j := range samples {
		if count[label[j]] > count[best] {
			best = label[j]
		}
	}
	return best
}

// leaveOneOut reports for each sample whether ridge regression on one-hot labels, fitted to the
// other samples, finds its label. With X centred, K = X Xᵀ and lambda = penalty trace(K) / d, the
// hat matrix is H = K (K + lambda)^-1 + 1/n, and the prediction without sample i is
// (ŷ - h y) / (1 - h), for h = H_ii. The means, and lambda, are those of all samples.
func leaveOneOut(vectors [][]float32, label []int, penalty float64) ([]float64, error) {
	n, d := len(vectors), len(vectors[0])
	x := mat.NewDense(n, d, nil)
	for k := range d {
		var mean float64
		for i := range n {
			mean += float64(vectors[i][k]) / float64(n)
		}
		for i := range n {
			x.Set(i, k, float64(vectors[i][k])-mean)
		}
	}
	var trace float64
	for _, v := range x.RawMatrix().Data {
		trace += v * v
	}
	lambda := penalty * trace / float64(d)
	if lambda == 0 {
		lambda = 1 // all vectors are equal: the probe predicts the mean
	}
	hat, err := hatMatrix(x, lambda)
	if err != nil {
		return nil, err
	}
	classes := slices.Max(label) + 1
	y := mat.NewDense(n, classes, nil)
	for i, l := range label {
		y.Set(i, l, 1)
	}
	var fitted mat.Dense
	fitted.Mul(hat, y)
	out := make([]float64, n)
	for i := range n {
		h := hat.At(i, i)
		best, most := 0, math.Inf(-1)
		for c := range classes {
			if v := (fitted.At(i, c) - h*y.At(i, c)) / (1 - h); v > most+1e-12 {
				best, most = c, v
			}
		}
		out[i] = isRight(best, label[i])
	}
	return out, nil
}

// hatMatrix returns X (XᵀX + lambda)^-1 Xᵀ + 1/n, by the smaller of XᵀX and X Xᵀ.
func hatMatrix(x *mat.Dense, lambda float64) (*mat.Dense, error) {
	n, d := x.Dims()
	var gram mat.SymDense
	right := mat.Matrix(x.T()) // of the system of equations
	if n < d {
		gram.SymOuterK(1, x) // X Xᵀ
		right = mat.DenseCopyOf(&gram)
	} else {
		gram.SymOuterK(1, x.T())
	}
	for i := range gram.SymmetricDim() {
		gram.SetSym(i, i, gram.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if !chol.Factorize(&gram) {
		return nil, errors.New("the moments of the layer are singular: increase penalty")
	}
	var solved, hat mat.Dense
	if err := chol.SolveTo(&solved, right); err != nil {
		return nil, fmt.Errorf("solving for the probe: %w", err)
	}
	if n < d {
		hat.CloneFrom(&solved) // (K + lambda)^-1 K
	} else {
		hat.Mul(x, &solved)
	}
	for i := range n {
		for k := range n {
			hat.Set(i, k, hat.At(i, k)+1/float64(n))
		}
	}
	return &hat, nil
}

// estimates returns the statistics as functions of some of the samples.
func (c *confounded) estimates() []estimate {
	accuracy := func(name string, right []float64, label []int) estimate {
		return estimate{name: name, max: 1, n: len(label), seeds: 1, compute: func(network int, samples []int) float64 {
			if network < 0 { // the most frequent label
				count := map[int]int{}
				most := 0
				for _, i := range samples {
					count[label[i]]++
					most = max(most, count[label[i]])
				}
				return float64(most) / float64(len(samples))
			}
			return mean(take(right, samples))
		}}
	}
	index := estimate{name: "robustness-index", max: 1, n: len(c.class), seeds: 1,
		undefined: "no neighbour has the class or the factor alone: the index is not defined",
		compute: func(network int, samples []int) float64 {
			var so, os float64
			if network < 0 { // all samples are neighbours
				so, os = c.pairs(samples)
			} else {
				so, os = mean(take(c.sameClass, samples)), mean(take(c.sameGroup, samples))
			}
			return so / (so + os)
		}}
	return []estimate{index, accuracy("knn-class", c.knnClass, c.class), accuracy("knn-factor", c.knnGroup, c.group),
		accuracy("probe-class", c.probeClass, c.class), accuracy("probe-factor", c.probeGroup, c.group)}
}

// pairs returns the numbers of ordered pairs of samples of one class and different groups, and of
// one group and different classes.
func (c *confounded) pairs(samples []int) (sameClass, sameGroup float64) {
	classes, groups, both := map[int]float64{}, map[int]float64{}, map[[2]int]float64{}
	for _, i := range samples {
		classes[c.class[i]]++
		groups[c.group[i]]++
		both[[2]int{c.class[i], c.group[i]}]++
	}
	var common float64
	for _, n := range both {
		common += n * n
	}
	for _, n := range classes {
		sameClass += n * n
	}
	for _, n := range groups {
		sameGroup += n * n
	}
	return sameClass - common, sameGroup - common
}
