package lie

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A run is a job in progress: one model on one data set. The job measures Lie derivatives of
// layers: how much a layer's values depart from equivariance under an infinitesimal transformation.
type run struct {
	*method
	job     *procedure.Job
	indices []int // of the layers that are measured, in the job
	layers  []layer
	samples []dataset.Sample
	done    int // number of generators that are finished
	// by generator: samples x tensors (layers and output) x columns (kinds of sums)
	sums [][]float64
}

func (m *method) newRun(ctx context.Context, j *procedure.Job) (*run, error) {
	r := &run{method: m, job: j, indices: measured(j.A.Layers), sums: make([][]float64, len(m.generators))}
	for _, i := range r.indices {
		f, _ := fieldOf(j.A.Layers[i]) // how its values lie on the image: maps or a vector
		r.layers = append(r.layers, layer{j.A.Layers[i].Name, f})
	}
	var err error
	r.samples, err = j.Read(ctx, dataset.Indices(min(j.Data.Len(), m.settings.Images)), j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	if len(r.samples) == 0 {
		return nil, fmt.Errorf("%w: no sample could be read", measure.ErrTooFew)
	}
	return r, r.restore()
}

// width is the number of sums of a sample for one generator.
func (r *run) width() int { return tensors(r.job.A.Model, len(r.layers)) * columns }

func (r *run) contributes() bool { return r.settings.Contributions && r.job.A.Model.Classes() > 0 }

func (r *run) batch() int {
	if n := r.job.A.Model.Batch(); n > 0 {
		return n
	}
	return r.settings.Batch
}

func (r *run) measure(ctx context.Context) error {
	g := r.generators[r.done]
	sums := tensor.New(r.batch(), r.width())
	images := tensor.New(append([]int{r.batch()}, r.job.A.Model.ImageShape()...)...)
	compute, closing, err := r.open(ctx, g, images, sums)
	if err != nil {
		return fmt.Errorf("model %s: %w", r.job.A.Name, err)
	}
	defer closing()
	for len(r.sums[r.done]) < len(r.samples)*r.width() {
		from := len(r.sums[r.done]) / r.width()
		for i := range r.batch() { // a batch that is not full ends with other images, whose sums are not used
			copy(images.At(i).Data, r.samples[(from+i)%len(r.samples)].Input.Data)
		}
		if err := compute(ctx); err != nil {
			return err
		}
		used := min(r.batch(), len(r.samples)-from)
		for _, v := range sums.Data[:used*r.width()] {
			r.sums[r.done] = append(r.sums[r.done], float64(v))
		}
		share := r.Work(r.job) / int64(len(r.generators)) / int64(len(r.samples))
		r.job.Progress(share*int64(r.done*len(r.samples)+from+used), g.Name)
		if err := r.save(); err != nil {
			return err
		}
	}
	return nil
}

// open returns a function that computes the sums of images.
func (r *run) open(ctx context.Context, g transform.Generator, images, sums tensor.Tensor) (compute func(context.Context) error, closing func(), err error) {
	net := r.job.A.Model
	if net.Graph() == nil {
		s, err := newServedRun(ctx, net, r.job.Graphs, r.layers, g, r.settings.Slopes, r.batch(), r.contributes())
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) error { return s.run(ctx, images, sums) }, func() { _ = s.Close() }, nil
	}
	p, err := engine.Within(net.TimeLimit(), func() (*program, error) {
		return newProgram(net, r.layers, g, r.settings.Slopes, r.batch(), r.contributes())
	})
	if err != nil {
		return nil, nil, err
	}
	graph, err := p.model()
	if err != nil {
		return nil, nil, err
	}
	session, err := net.Compile(graph, 0, false)
	if err != nil {
		return nil, nil, err
	}
	in, out := engine.ArrayOf(images), engine.ArrayOf(sums)
	closing = func() { _ = errors.Join(in.Close(), out.Close(), session.Close()) }
	if err := errors.Join(session.Bind(in), session.Bind(out)); err != nil {
		closing()
		return nil, nil, err
	}
	batch := engine.Batch{Inputs: []*engine.Array{in}, Outputs: []*engine.Array{out}}
	return func(ctx context.Context) error { return session.Run(ctx, batch) }, closing, nil
}

func (r *run) scores() []measure.PairScore {
	var out []measure.PairScore
	for l := range r.width() / columns {
		at := measure.WholeModel
		if l < len(r.layers) {
			at = r.indices[l]
		}
		for i := range r.generators {
			for _, s := range r.layerScores(i, l) {
				out = append(out, measure.PairScore{A: at, B: at, Score: s})
			}
		}
	}
	return out
}

// layerScores returns the scores of layer l under generator i: lee is |L z|^2 divided by the number
// of values, relative is |L z| / |z|. The nulls subtract the motion of another sample's z.
// contribution is the squared norm, divided by the number of classes, of the part of the output's
// Lie derivative that arises at the layer.
func (r *run) layerScores(i, l int) []measure.Score {
	n := len(r.samples)
	outputs := float64(r.job.A.Model.Classes())
	size := outputs
	if l < len(r.layers) {
		size = float64(tensor.Size(r.job.A.Layers[r.indices[l]].Shape))
	}
	terms := func(f func(c []float64) float64) []float64 {
		list := make([]float64, n)
		for k := range list {
			list[k] = f(r.sums[i][k*r.width()+l*columns:][:columns])
		}
		return list
	}
	score := func(statistic string, value, null func(c []float64) float64) measure.Score {
		s := r.mean(statistic, terms(value))
		// A null needs another sample in the batch, and a layer with maps that the generator moves.
		moves := l < len(r.layers) && r.layers[l].field.h > 0 && r.generators[i].Velocity != nil
		if moves && null != nil && n > 1 && r.batch() > 1 && !math.IsNaN(s.Value) {
			s.Null = r.mean(statistic, terms(null)).Value
		}
		s.Factor = r.generators[i].Name
		return s
	}
	list := []measure.Score{
		score("lee", func(c []float64) float64 { return c[lieSquares] / size }, func(c []float64) float64 { return c[nullSquares] / size }),
		score("relative", func(c []float64) float64 { return normRatio(c[lieSquares], c[squares]) }, func(c []float64) float64 { return normRatio(c[nullSquares], c[squares]) }),
	}
	if r.contributes() {
		list = append(list, score("contribution", func(c []float64) float64 { return c[partSquares] / outputs }, nil))
	}
	return list
}

// normRatio returns the ratio of norms, given their squares; 0 if a is 0.
func normRatio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return math.Sqrt(a / b)
}

// mean has a jackknife interval over up to MaxGroups groups of samples.
func (r *run) mean(statistic string, terms []float64) measure.Score {
	n, sum := len(terms), 0.0
	for k, v := range terms {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return measure.Score{Statistic: statistic}.Undefined(fmt.Sprintf("NaN or infinity for sample %s", r.samples[k].Name))
		}
		sum += v
	}
	s := measure.Plain(statistic, sum/float64(n), n)
	groups := min(measure.MaxGroups, n)
	for g := range groups {
		rest, left := sum, 0
		for k := g; k < n; k += groups {
			rest -= terms[k]
			left++
		}
		if left < n {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: rest / float64(n-left), Left: left})
		}
	}
	s.Low, s.High = resample.Jackknife(s.Value, n, s.Replicates)
	s.Low = math.Max(s.Low, 0)
	s.Max = math.Inf(1)
	return s
}

const (
	stateKind    = "lie-derivative"
	stateVersion = 1
)

func (r *run) save() error {
	if !state.Due(r.job.Checkpoint) {
		return nil
	}
	return state.Save(r.job.Checkpoint, stateKind, stateVersion, r.Code)
}

func (r *run) Code(c *state.Codec) {
	if !c.Matches(len(r.samples)) || !c.Matches(r.width()) {
		return // the set of readable samples has changed
	}
	all := len(r.samples) * r.width()
	for i := range r.sums {
		c.Values(&r.sums[i])
		n := len(r.sums[i])
		c.Check(n <= all && n%r.width() == 0, "%d sums of %d", n, all)
	}
}

func (r *run) restore() error {
	if err := state.Load(r.job.Checkpoint, stateKind, stateVersion, r.Code); err != nil {
		return err
	}
	all := len(r.samples) * r.width()
	for r.done < len(r.sums) && len(r.sums[r.done]) == all {
		r.done++
	}
	return nil
}
