package probe

import (
	"context"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A probeSet holds the probes of one kind for one target: one for each seed, and the nulls.
type probeSet struct {
	kind   string       // SLP (one linear layer), MLP or Ridge (ridge regression)
	target *target      // nil if the probes predict vectors
	test   []int        // test samples
	probes []*probeSpec // one for each seed
	nulls  []*probeSpec // likewise, trained on shuffled targets; nil: none
	parts  []*probeSpec // of ridge: trained without a group of the training samples each; nil: none
}

// newProbeSets returns none if the split s has too few samples. hidden holds the sizes of an MLP's
// layers. targetName is part of the probes' names, and seeds their random numbers.
func (r *run) newProbeSets(layer tensor.Layer, in *probeInput, t *target, s split, hidden []int, targetName string) []*probeSet {
	var out []*probeSet
	if len(s.train) < 2 || len(s.validation) < 1 || len(s.test) < 2 {
		return nil
	}
	for _, kind := range r.training.Probe {
		p := probeSpec{name: layer.Name + ", " + targetName, kind: kind, hidden: hidden, input: in, target: t, train: s.train, validation: s.validation}
		one := &probeSet{kind: kind, target: t, test: s.test}
		one.probes, one.nulls, one.parts = r.seedsAndNulls(p, targetName)
		out = append(out, one)
	}
	return out
}

// probeName names probe s, or for s < 0 the null -1 - s, as in estimate.compute.
func (d *probeSet) probeName(s int) string {
	if s < 0 {
		return d.nulls[-1-s].name
	}
	if k := s - len(d.probes); k >= 0 {
		return d.parts[k].name
	}
	return d.probes[s].name
}

// estimate returns an estimate of the set's probes.
func (d *probeSet) estimate(e estimate) estimate {
	e.seeds, e.trained, e.noNull = len(d.probes), true, d.nulls == nil
	for _, p := range d.parts {
		e.training = len(d.probes[0].train)
		e.parts = append(e.parts, e.training-len(p.train))
	}
	return e
}

// predictions returns what a probe predicts for samples: the number, or the class.
func (r *run) predictions(ctx context.Context, p *probeSpec, net *onnx.Model, in *probeInput, samples []int) ([]float64, error) {
	out := make([]float64, len(samples))
	err := r.predict(ctx, net, in, samples, func(k int, y []float32) error {
		out[k] = float64(y[0])
		if p.target.classes > 0 {
			out[k] = float64(slices.Index(y, slices.Max(y)))
		}
		return nil
	})
	return out, err
}

// values returns targets in the form of predictions: numbers, or indices of classes.
func (t *target) values(samples []int) []float64 {
	out := make([]float64, len(samples))
	for k, i := range samples {
		if t.classes > 0 {
			out[k] = float64(t.class[i])
		} else {
			out[k] = t.value[i]
		}
	}
	return out
}

// scores returns the scores on the test samples. The first list of an outcome is the probe's
// predictions.
func (d *probeSet) scores(outcomes map[string]outcome, factor string) []measure.Score {
	want := d.target.values(d.test)
	// statistic returns f for network s (see probeName).
	statistic := func(f func(predicted, want []float64) float64) func(int, []int) float64 {
		return func(s int, samples []int) float64 {
			return f(take(outcomes[d.probeName(s)][0], samples), take(want, samples))
		}
	}
	estimates := []estimate{
		{name: "rmse", compute: statistic(rmse), max: math.Inf(1)},
		{name: "r2", compute: statistic(r2), min: math.Inf(-1), max: 1, undefined: d.target.name + " is constant over the test samples"},
	}
	if d.target.classes > 0 {
		estimates = []estimate{{name: "accuracy", compute: statistic(accuracy), max: 1}, {name: "f1", compute: statistic(f1), max: 1}}
	}
	var out []measure.Score
	for _, e := range estimates { // each becomes a score: the mean over seeds, an interval and a null
		e.n = len(d.test)
		s := d.estimate(e).score()
		s.Variant, s.Factor = d.kind, factor
		s.Warnings = append(s.Warnings, d.target.warnings...)
		out = append(out, s)
	}
	return out
}

func baseline(t *target, s split, factor string) measure.Score {
	want := t.values(s.test)
	e := estimate{name: "baseline-rmse", n: len(want), seeds: 1, noNull: true, max: math.Inf(1)}
	f, constant := rmse, 0.0
	if t.classes > 0 {
		e.name, e.max, f = "baseline-accuracy", 1, accuracy
		constant = float64(t.mostFrequent(s.train))
	} else {
		constant = t.mean(s.train)
	}
	same := slices.Repeat([]float64{constant}, len(want))
	e.compute = func(_ int, samples []int) float64 { return f(take(same, samples), take(want, samples)) }
	out := e.score()
	out.Factor = factor
	return out
}
