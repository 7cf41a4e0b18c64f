package probe

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkTwentyProbes trains twenty probes (small networks that predict a target from the vector
// of a sample) of the size in Plachouras et al. 2025, layers of 768-512-256-1 units, for two epochs
// of 960 samples: one after the other, each on all cores, and in parallel as the measures do, with
// one of them in place of a null (a probe for shuffled targets). goldenRun, in probe_test.go,
// returns a run of a measure, whose data are not used here. An outcome holds the results of a probe
// on test samples; here it is arbitrary.
func BenchmarkTwentyProbes(b *testing.B) {
	const n, d, count = 1024, 768, 20
	training := defaultTraining()
	training.Epochs = 2
	r, _, _, _ := goldenRun(b, &training)
	rng := seed.Rand(1, "bench")
	data, want := make([]float32, n*d), &target{name: "y", value: make([]float64, n)}
	for i := range data {
		data[i] = float32(rng.NormFloat64())
	}
	for i := range want.value {
		want.value[i] = rng.NormFloat64()
	}
	table := features.NewTable(nil, d, data)
	in := newProbeInput("bench", table.Positions, table)
	var probes []*probeSpec
	for k := range count {
		p := &probeSpec{name: fmt.Sprint(k), kind: MLP, hidden: []int{512, 256}, seed: uint64(k), input: in, target: want, train: table.Positions[:n-64], validation: table.Positions[n-64:]}
		probes = append(probes, p)
	}
	reportSpeed := func(b *testing.B, before time.Duration) {
		samples := float64(count * training.Epochs * (n - 64) * b.N)
		b.ReportMetric(samples/b.Elapsed().Seconds(), "samples/s")
		b.ReportMetric((machine.CPUTime()-before).Seconds()*1e6/samples, "cpu-us/sample")
	}
	b.Run("sequential", func(b *testing.B) {
		before := machine.CPUTime()
		for b.Loop() {
			for _, p := range probes {
				if _, err := trainAlone(b.Context(), r, p); err != nil {
					b.Fatal(err)
				}
			}
		}
		reportSpeed(b, before)
	})
	b.Run("parallel", func(b *testing.B) {
		before := machine.CPUTime()
		for b.Loop() {
			r.store = &features.Store{Dir: b.TempDir()}
			r.checkpoint.done = map[string]outcome{}
			_, err := r.trainProbes(b.Context(), []*probeSet{{probes: probes[1:], nulls: probes[:1]}}, func(context.Context, *probeSpec, *onnx.Model) (outcome, error) { return outcome{{1}}, nil })
			if err != nil {
				b.Fatal(err)
			}
		}
		reportSpeed(b, before)
	})
}

// trainAlone trains one probe with default engine options and returns its weights.
func trainAlone(ctx context.Context, r *run, p *probeSpec) (map[string]tensor.Tensor, error) {
	net, err := p.network()
	if err != nil {
		return nil, err
	}
	t := r.training
	tr, err := train.On(r.job.Graphs, 0, train.Spec{Model: net, Loss: p.loss(), Optimiser: train.Adam{Rate: t.Rate, WeightDecay: t.Decay}})
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	_, err = tr.Fit(ctx, &source{probeSpec: p, samples: p.train}, &source{probeSpec: p, samples: p.validation}, train.FitOptions{Epochs: t.Epochs, Patience: t.Patience, Seed: p.seed})
	return tr.Weights(), err
}
