package probe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// LiDARSettings are the settings of the measure lidar.
type LiDARSettings struct {
	Views int     `key:"views" json:"views" default:"10" min:"2" doc:"number of transformed versions of a sample; a transformation that draws nothing has one for each of its values"`
	Delta float64 `key:"delta" json:"delta" default:"0.0001" min:"0" doc:"added to the variances within a sample's versions"`
	Representation
}

// LiDAR returns the measure lidar: the effective rank of the directions that tell samples apart
// despite a transformation (Thilak et al. 2024). Invalid settings are an error.
func LiDAR(s LiDARSettings) (procedure.Procedure, error) {
	switch {
	case s.Views < 2:
		return nil, fmt.Errorf("views is %d: it must be at least 2", s.Views)
	case !(s.Delta > 0) || math.IsInf(s.Delta, 0):
		return nil, fmt.Errorf("delta is %v: it must be above 0 and finite", s.Delta)
	}
	return &lidar{s}, nil
}

type lidar struct{ settings LiDARSettings }

func (*lidar) Name() string                   { return "lidar" }
func (*lidar) Descriptor() measure.Descriptor { return LiDARDescriptor() }
func (*lidar) Version() int                   { return 1 }
func (m *lidar) Settings() any                { return m.settings }

// maxLiDARSamples is the number of samples if the settings do not limit it, that of the paper.
const maxLiDARSamples = 1000

// maxLiDARDim bounds the length d of vectors, since d x d matrices are decomposed.
const maxLiDARDim = 4096

func (m *lidar) Needs() procedure.Needs {
	out := m.settings.needs(true) // true: with a transformation
	if out.Samples == 0 {
		out.Samples = maxLiDARSamples
	}
	return out
}

func (m *lidar) Skip(j *procedure.Job) string {
	if m.views(j) < 2 {
		return "the transformation draws nothing and has one value, so that all versions of a sample would be equal: take one that is random, or list values"
	}
	return m.settings.skip(j)
}

// views returns the number of versions of a sample: those of a transformation that draws nothing
// are its values.
func (m *lidar) views(j *procedure.Job) int {
	for _, v := range j.Transform.Values {
		if transform.Random(v.Transform) {
			return m.settings.Views
		}
	}
	return len(j.Transform.Values)
}

func (m *lidar) Work(j *procedure.Job) int64 { return int64(j.Data.Len()) * int64(1+m.views(j)) }

func (m *lidar) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	return scoreLayers(ctx, j, &m.settings.Representation, nil, func(r *run) (layerScorer, error) {
		var views []sampleTransform
		for v := range m.views(j) {
			view := r.viewTransform(v)
			if err := r.extract(ctx, view, nil); err != nil {
				return nil, err
			}
			views = append(views, view)
		}
		return func(layer tensor.Layer) ([]measure.Score, error) {
			s, err := r.lidarScore(ctx, layer, views, m.settings.Delta)
			return []measure.Score{s}, err
		}, nil
	})
}

// viewTransform returns the v-th version of each sample, drawn independently of the others.
func (r *run) viewTransform(v int) sampleTransform {
	j := r.job
	key, value := j.Key, v%len(j.Transform.Values)
	key.Seed = seed.Rand(key.Seed, "probe: view", v).Uint64()
	return sampleTransform{id: r.transformID(fmt.Sprintf("view %d", v)), op: func(s dataset.Sample) transform.Op { return j.Transform.Draw(key, value, s.Index) }}
}

func (r *run) lidarScore(ctx context.Context, layer tensor.Layer, views []sampleTransform, delta float64) (measure.Score, error) {
	var tables []*features.Table
	defer func() {
		for _, t := range tables {
			t.Close()
		}
	}()
	for _, v := range views {
		t, err := r.open(ctx, layer, v, nil)
		if err != nil {
			return measure.Score{}, err
		}
		tables = append(tables, t)
	}
	in := newProbeInput("", r.samples.Positions, tables...)
	d := in.dim() / len(views)
	if d > maxLiDARDim {
		return measure.Plain("lidar", math.NaN(), 0).Undefined(fmt.Sprintf("vectors of %d numbers are longer than %d: pool the layer", d, maxLiDARDim)), nil
	}
	var samples [][]float32 // of each sample, all versions, one after the other
	for i := range r.samples.Len() {
		if !in.has(i) {
			continue
		}
		row := make([]float32, in.dim())
		if err := in.row(row, i); err != nil {
			return measure.Score{}, err
		}
		samples = append(samples, row)
	}
	return lidarOf(ctx, samples, len(views), delta)
}

// lidarOf returns the score of samples, each q vectors of versions of a sample.
func lidarOf(ctx context.Context, samples [][]float32, q int, delta float64) (measure.Score, error) {
	n := len(samples)
	out := measure.Plain("lidar", math.NaN(), n)
	if n < 4 {
		return out, fmt.Errorf("%w: %d of at least 4", measure.ErrTooFew, n)
	}
	scatter := newVersions(samples, q)
	value, err := scatter.rank(nil, delta)
	if err != nil {
		return out, err
	}
	out.Value, out.Min, out.Max = value, 0, math.Inf(1)
	groups := min(maxGroups, n/2)
	for g := range groups {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		var left []int
		for i := g; i < n; i += groups {
			left = append(left, i)
		}
		value, err := scatter.rank(left, delta)
		if err != nil {
			return out, err
		}
		out.Replicates = append(out.Replicates, measure.Replicate{Value: value, Left: len(left)})
	}
	out.Low, out.High = resample.Jackknife(out.Value, n, out.Replicates)
	out.Low = max(out.Low, 0)
	out.Warnings = append(out.Warnings, measure.SampleSizeWarning(n))
	return out, nil
}

// versions holds the scatter of the versions of samples.
type versions struct {
	q      int
	mean   *mat.Dense // n x d, the mean over the versions of each sample
	within *mat.SymDense
	rows   [][]float32
}

func newVersions(samples [][]float32, q int) *versions {
	n, d := len(samples), len(samples[0])/q
	out := &versions{q: q, mean: mat.NewDense(n, d, nil), within: mat.NewSymDense(d, nil), rows: samples}
	for i, row := range samples {
		for k, v := range row {
			out.mean.Set(i, k%d, out.mean.At(i, k%d)+float64(v)/float64(q))
		}
	}
	out.add(out.within, 1, dataset.Indices(n))
	return out
}

// add adds factor times the scatter of the versions of some samples about their means.
func (v *versions) add(to *mat.SymDense, factor float64, samples []int) {
	_, d := v.mean.Dims()
	block := mat.NewDense(v.q, d, nil)
	for _, i := range samples {
		for k, x := range v.rows[i] {
			block.Set(k/d, k%d, float64(x)-v.mean.At(i, k%d))
		}
		to.SymRankK(to, factor, block.T())
	}
}

// rank returns the effective rank without some of the samples. With Sigma_b the covariance of the
// means of samples, and Sigma_w that of versions about their mean plus delta, it is that of the
// eigenvalues l of Sigma_w^-1/2 Sigma_b Sigma_w^-1/2: exp of the entropy of l / sum l + 1e-7. These
// are the squares of the singular values of L^-1 M, for Sigma_w = L Lᵀ and centred means M.
func (v *versions) rank(left []int, delta float64) (float64, error) {
	all, d := v.mean.Dims()
	isLeft := make([]bool, all)
	for _, i := range left {
		isLeft[i] = true
	}
	var kept []int
	for i := range all {
		if !isLeft[i] {
			kept = append(kept, i)
		}
	}
	n := len(kept)
	within := mat.NewSymDense(d, nil)
	within.CopySym(v.within)
	v.add(within, -1, left)
	within.ScaleSym(1/float64(n*(v.q-1)), within)
	for k := range d {
		within.SetSym(k, k, within.At(k, k)+delta)
	}
	var chol mat.Cholesky
	if !chol.Factorize(within) {
		return 0, errors.New("the variances within samples are singular: increase delta")
	}
	centred := mat.NewDense(d, n, nil)
	for k := range d {
		var mean float64
		for _, i := range kept {
			mean += v.mean.At(i, k) / float64(n)
		}
		for j, i := range kept {
			centred.Set(k, j, v.mean.At(i, k)-mean)
		}
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var whitened mat.Dense
	if err := whitened.Solve(&lower, centred); err != nil && !errors.As(err, new(mat.Condition)) {
		return 0, fmt.Errorf("whitening by the variances within samples: %w", err)
	}
	var gram mat.SymDense
	if n < d {
		gram.SymOuterK(1, whitened.T())
	} else {
		gram.SymOuterK(1, &whitened)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(&gram, false) {
		return 0, errors.New("the eigenvalues between samples were not found")
	}
	values := eigen.Values(nil)
	var total float64
	for i := range values {
		values[i] = max(values[i], 0)
		total += values[i]
	}
	if total == 0 {
		return 1, nil // all samples have the same mean
	}
	const epsilon = 1e-7
	entropy := -float64(max(0, d-len(values))) * epsilon * math.Log(epsilon)
	for _, l := range values {
		p := l/total + epsilon
		entropy -= p * math.Log(p)
	}
	return math.Exp(entropy), nil
}
