package probe

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// RepresentationEquivariance returns the measure representation-equivariance: how well a probe
// predicts z', the vector of T(x), from the vector z of x and the transformation's parameter, with
// z and z' of unit length. T is a transformation of the input. The statistics are mse (the mean
// over components), cosine, identity-mse and identity-cosine (those of predicting z itself), and
// gain = 1 - mse / identity-mse. Training.Standardise has no effect, since the length of the
// vectors is 1. Of codes, the statistics are accuracy, identity-accuracy and baseline-accuracy: the
// fractions of codes that the probe predicts, that do not change, and that are the most frequent ones.
// Invalid settings of Training are an error, and so is ridge for codes.
func RepresentationEquivariance(s RepresentationSettings) (procedure.Procedure, error) {
	if len(s.Hidden) == 0 {
		s.Hidden = []int{512, 512}
	}
	if err := s.Training.check(); err != nil {
		return nil, err
	}
	if s.Codes && slices.Contains(s.Probe, Ridge) {
		return nil, errors.New("codes: the probe ridge predicts numbers: use slp or mlp")
	}
	return &representationEquivariance{s}, nil
}

type representationEquivariance struct{ settings RepresentationSettings }

func (*representationEquivariance) Name() string { return "representation-equivariance" }
func (*representationEquivariance) Descriptor() measure.Descriptor {
	return RepresentationEquivarianceDescriptor()
}
func (m *representationEquivariance) Version() int           { return m.settings.Training.version(2) }
func (m *representationEquivariance) Settings() any          { return m.settings }
func (m *representationEquivariance) Needs() procedure.Needs { return m.settings.needs(true) }

func (m *representationEquivariance) Skip(j *procedure.Job) string {
	if t := j.Transform; listed(t) && !ranged(t) {
		return "the values of " + t.Name + " are not numbers, which the probe needs as input"
	}
	return m.settings.skip(j)
}

func (m *representationEquivariance) Work(j *procedure.Job) int64 {
	// In forward passes of one sample: those of x and T(x), and the training of the probes.
	const targets, representations = 1, 1 // the target z', and the input z
	return 2*int64(j.Data.Len()) + m.settings.work(j, &m.settings.Representation, targets, representations)
}

func (m *representationEquivariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		score := func(layer tensor.Layer) ([]measure.Score, error) { return r.equivarianceScores(ctx, layer, s.Codes) }
		return score, r.extract(ctx, r.randomTransform(), nil)
	})
}

// equivarianceScores trains probes to predict z' from z: for each kind one for each seed, and one
// for its null. codes says that z and z' are discrete codes.
func (r *run) equivarianceScores(ctx context.Context, layer tensor.Layer, codes bool) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, sampleTransform{}, nil) // not transformed; nil: all samples
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	transformed, err := r.open(ctx, layer, r.randomTransform(), nil)
	if err != nil {
		return nil, err
	}
	defer transformed.Close()
	form := "unit" // vectors are scaled to length 1
	var book []float32
	if codes {
		form = "codes"
		if book, err = codebook(clean, transformed); err != nil {
			return nil, err
		}
	}
	in, to := r.newInput(layer, form, clean), r.newInput(layer, form+" "+r.randomTransform().id, transformed)
	in.unit, to.unit, in.codebook, to.codebook = !codes, !codes, book, book
	if ranged(r.job.Transform) {
		// The probe gets the parameter in addition to z.
		for _, p := range r.parameters() {
			in.condition = append(in.condition, float32(p))
		}
	}
	var sets []*probeSet
	for _, kind := range r.training.Probe {
		p := probeSpec{name: layer.Name + ", representation", kind: kind, hidden: r.training.Hidden, input: in, targetVectors: to, train: r.split.train, validation: r.split.validation}
		d := &probeSet{kind: kind, test: r.split.test}
		d.probes, d.nulls, d.parts = r.seedsAndNulls(p, "representation")
		sets = append(sets, d)
	}
	if codes {
		return r.discreteScores(ctx, sets, in, to)
	}
	outcomes, err := r.trainProbes(ctx, sets, func(ctx context.Context, p *probeSpec, net *onnx.Model) (outcome, error) {
		out := newVectorErrors(len(r.split.test))
		err := r.predict(ctx, net, in, r.split.test, func(k int, y []float32) error { return out.add(to, r.split.test[k], k, y) })
		return outcome(out), err
	})
	if err != nil {
		return nil, err
	}
	unchanged := newVectorErrors(len(r.split.test))
	z := make([]float32, in.width())
	for k, i := range r.split.test {
		if err := in.row(z, i); err != nil {
			return nil, err
		}
		if err := unchanged.add(to, i, k, z[:in.dim()]); err != nil {
			return nil, err
		}
	}
	return vectorScores(sets, outcomes, unchanged), nil
}

// vectorErrors holds mean squared errors and cosines, by test sample.
type vectorErrors [][]float64

func newVectorErrors(n int) vectorErrors { return vectorErrors{make([]float64, n), make([]float64, n)} }

// y is the prediction for sample i, the k-th test sample; to holds the target vectors.
func (c vectorErrors) add(to *probeInput, i, k int, y []float32) error {
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

// cosine is 1 if both vectors are zero, 0 if only one is.
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

// vectorScores scores every kind of probe, and z itself, whose errors are unchanged. s is the index
// of a seed, or negative for a null.
func vectorScores(sets []*probeSet, outcomes map[string]outcome, unchanged vectorErrors) []measure.Score {
	var out []measure.Score
	for _, d := range sets {
		column := func(c int) func(int, []int) float64 {
			return func(s int, samples []int) float64 { return mean(take(outcomes[d.probeName(s)][c], samples)) }
		}
		gain := func(s int, samples []int) float64 {
			baseline := mean(take(unchanged[0], samples))
			if baseline == 0 {
				return math.NaN()
			}
			return 1 - mean(take(outcomes[d.probeName(s)][0], samples))/baseline
		}
		for _, e := range []estimate{
			{name: "mse", compute: column(0), max: math.Inf(1)},
			{name: "cosine", compute: column(1), min: -1, max: 1},
			{name: "gain", compute: gain, min: math.Inf(-1), max: 1, undefined: "the transformation does not change the representation of the test samples"},
		} {
			e.n = len(d.test)
			s := d.estimate(e).score()
			s.Variant = d.kind
			out = append(out, s)
		}
	}
	n := len(unchanged[0])
	ofUnchanged := func(c int) func(int, []int) float64 {
		return func(_ int, samples []int) float64 { return mean(take(unchanged[c], samples)) }
	}
	return append(out,
		estimate{name: "identity-mse", compute: ofUnchanged(0), n: n, seeds: 1, noNull: true, max: math.Inf(1)}.score(),
		estimate{name: "identity-cosine", compute: ofUnchanged(1), n: n, seeds: 1, noNull: true, min: -1, max: 1}.score())
}
