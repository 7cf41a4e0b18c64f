package probe

import (
	"context"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// RepresentationEquivariance returns the measure representation-equivariance: how well a probe predicts z' from z and the
// transformation's parameter, all of unit length. Its statistics are mse (over the numbers of a vector), cosine, gain = 1 - mse / |z - z'|^2,
// which is 0 for a probe that does no better than to predict z itself, and identity-mse and identity-cosine, which are those of z itself.
func RepresentationEquivariance(s EquivarianceSettings) (procedure.Procedure, error) {
	if len(s.Hidden) == 0 {
		s.Hidden = []int{512, 512}
	}
	if err := s.Training.check(); err != nil {
		return nil, err
	}
	return &representationEquivariance{s}, nil
}

type representationEquivariance struct{ settings EquivarianceSettings }

func (*representationEquivariance) Name() string { return "representation-equivariance" }
func (*representationEquivariance) Descriptor() measure.Descriptor {
	return RepresentationEquivarianceDescriptor()
}
func (*representationEquivariance) Version() int             { return 1 }
func (m *representationEquivariance) Settings() any          { return m.settings }
func (m *representationEquivariance) Needs() procedure.Needs { return m.settings.needs(true) }

func (m *representationEquivariance) Skip(j *procedure.Job) string {
	if t := j.Transform; listed(t) && !ranged(t) {
		return "the values of " + t.Name + " are no numbers that a probe could be given"
	}
	return m.settings.skip(j)
}

func (m *representationEquivariance) Work(j *procedure.Job) int64 {
	return 2*int64(j.Data.Len()) + m.settings.work(j, &m.settings.Representation, 1, 1)
}

func (m *representationEquivariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return layerwise(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		read := func(layer onnx.Layer) ([]measure.Score, error) { return r.representationRead(ctx, layer) }
		return read, r.extract(ctx, r.drawn(), nil)
	})
}

// representationRead trains probes from the clean representation of a layer to the moved one.
func (r *run) representationRead(ctx context.Context, layer onnx.Layer) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, view{}, nil)
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	moved, err := r.open(ctx, layer, r.drawn(), nil)
	if err != nil {
		return nil, err
	}
	defer moved.Close()
	in, to := r.features(layer, "unit", clean), r.features(layer, "unit "+r.drawn().id, moved)
	in.unit, to.unit = true, true
	if ranged(r.job.Transform) {
		for _, p := range r.parameters() {
			in.condition = append(in.condition, float32(p))
		}
	}
	var problems []*problem
	var readings []*reading
	for _, kind := range r.training.Probe {
		p := problem{name: layer.Name + ", representation", kind: kind, hidden: r.training.Hidden, in: in, to: to, train: r.split.train, validation: r.split.validation}
		d := &reading{kind: kind, test: r.split.test}
		d.seeds, d.null = r.trials(p, "representation")
		readings, problems = append(readings, d), append(problems, d.problems()...)
	}
	found, err := r.solve(ctx, problems, func(ctx context.Context, p *problem, net *onnx.Model) (outcome, error) {
		out := newClose(len(r.split.test))
		err := r.predict(ctx, net, in, r.split.test, func(k int, y []float32) error { return out.note(to, r.split.test[k], k, y) })
		return outcome(out), err
	})
	if err != nil {
		return nil, err
	}
	same := newClose(len(r.split.test))
	z := make([]float32, in.width())
	for k, i := range r.split.test {
		if err := in.row(z, i); err != nil {
			return nil, err
		}
		if err := same.note(to, i, k, z[:in.dim()]); err != nil {
			return nil, err
		}
	}
	return nearness(readings, found, same), nil
}

// closeness is how near vectors come to those of the test samples: mean squared errors, and cosines.
type closeness [][]float64

func newClose(n int) closeness { return closeness{make([]float64, n), make([]float64, n)} }

// note holds a vector against that of sample i, the k-th of the test.
func (c closeness) note(to *probeInput, i, k int, y []float32) error {
	want := make([]float32, to.width())
	if err := to.row(want, i); err != nil {
		return err
	}
	var sum float64
	for j, v := range want {
		d := float64(y[j]) - float64(v)
		sum += d * d
	}
	c[0][k], c[1][k] = sum/float64(len(want)), cosine(y, want)
	return nil
}

// cosine is that of the angle between two vectors: 1 where both are zero, 0 where one is.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	switch {
	case aa == 0 && bb == 0:
		return 1
	case aa == 0 || bb == 0:
		return 0
	}
	return max(-1, min(1, ab/math.Sqrt(aa)/math.Sqrt(bb)))
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }

// nearness are the scores of every probe, and those of predicting z itself.
func nearness(readings []*reading, found map[string]outcome, same closeness) []measure.Score {
	var out []measure.Score
	for _, d := range readings {
		column := func(c int) func(int, []int) float64 {
			return func(s int, samples []int) float64 { return mean(at(found[d.network(s)][c], samples)) }
		}
		gain := func(s int, samples []int) float64 {
			itself := mean(at(same[0], samples))
			if itself == 0 {
				return math.NaN()
			}
			return 1 - mean(at(found[d.network(s)][0], samples))/itself
		}
		for _, e := range []estimate{
			{name: "mse", of: column(0), max: math.Inf(1)},
			{name: "cosine", of: column(1), min: -1, max: 1},
			{name: "gain", of: gain, min: math.Inf(-1), max: 1, unless: "nothing moves: z' is z"},
		} {
			e.n, e.seeds = len(d.test), len(d.seeds)
			s := e.score()
			s.Variant = d.kind
			out = append(out, s)
		}
	}
	n := len(same[0])
	itself := func(c int) func(int, []int) float64 {
		return func(_ int, samples []int) float64 { return mean(at(same[c], samples)) }
	}
	return append(out,
		estimate{name: "identity-mse", of: itself(0), n: n, seeds: 1, noNull: true, max: math.Inf(1)}.score(),
		estimate{name: "identity-cosine", of: itself(1), n: n, seeds: 1, noNull: true, min: -1, max: 1}.score())
}
