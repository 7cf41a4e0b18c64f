package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

func (r *run) workers() int {
	if r.job.Threads > 0 {
		return r.job.Threads
	}
	return runtime.GOMAXPROCS(0)
}

const stepsPerRun = 8

// probeThreads is the number of threads of a probe's session, since probes run in parallel.
const probeThreads = 1

type outcome [][]float64

// trainProbes trains the probes of all sets in parallel, tests each net, and returns the outcomes
// by probe name. Those whose outcome is in the checkpoint are not trained again.
func (r *run) trainProbes(ctx context.Context, sets []*probeSet, test func(ctx context.Context, p *probeSpec, net *onnx.Model) (outcome, error)) (map[string]outcome, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.workers())
	pool := &trainerPool{capacity: r.workers()}
	defer pool.close()
	var probes []*probeSpec
	for _, set := range sets {
		probes = slices.Concat(probes, set.probes, set.nulls, set.parts)
	}
	for _, p := range probes {
		if r.checkpoint.outcome(p.name) != nil {
			r.addWork(r.trainingWork(p))
			continue
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			net, err := r.trainProbe(ctx, p, pool)
			if err != nil {
				return fmt.Errorf("probe %s: %w", p.name, err)
			}
			found, err := test(ctx, p, net)
			if err != nil {
				return fmt.Errorf("probe %s: %w", p.name, err)
			}
			r.addWork(r.trainingWork(p))
			return r.checkpoint.finish(p.name, found)
		})
	}
	err := group.Wait()
	if saving := r.checkpoint.flush(); err == nil {
		err = saving
	}
	if err != nil {
		return nil, err
	}
	out := map[string]outcome{}
	for _, p := range probes {
		out[p.name] = r.checkpoint.outcome(p.name)
	}
	return out, nil
}

// trainProbe loads the weights from the store of trained probes, or stores them there.
func (r *run) trainProbe(ctx context.Context, p *probeSpec, pool *trainerPool) (*onnx.Model, error) {
	net, err := p.network()
	if err != nil {
		return nil, err
	}
	name := p.identity(r.training)
	weights := map[string]tensor.Tensor{}
	for _, p := range net.Weights() {
		weights[p.Name] = tensor.New(p.Sizes()...)
	}
	if procedure.LoadWeights(r.store, name, weights) {
		return rewrite.WithWeights(net, weights)
	}
	if p.kind == Ridge {
		weights, err = p.ridge()
	} else {
		weights, err = r.trainNetwork(ctx, p, net, pool)
	}
	if err != nil {
		return nil, err
	}
	if err := procedure.SaveWeights(r.store, name, weights); err != nil {
		return nil, err
	}
	return rewrite.WithWeights(net, weights)
}

func (r *run) trainNetwork(ctx context.Context, p *probeSpec, net *onnx.Model, pool *trainerPool) (map[string]tensor.Tensor, error) {
	t := r.training
	tr, err := pool.get(p.architecture(), net, func() (*train.Trainer, error) {
		return train.On(r.job.Graphs, probeThreads, train.Spec{Model: net, Loss: p.loss(), Optimiser: train.Adam{Rate: t.Rate, WeightDecay: t.Decay},
			StepsPerRun: stepsPerRun})
	})
	if err != nil {
		return nil, err
	}
	_, err = tr.Fit(ctx, &source{probeSpec: p, samples: p.train}, &source{probeSpec: p, samples: p.validation},
		train.FitOptions{Epochs: t.Epochs, Batch: t.Batch, Patience: t.Patience, Seed: p.seed, Checkpoint: r.checkpoint.probe(ctx, p.name),
			AfterEpoch: func(e train.Epoch) error {
				// Validation is the loss on the validation samples.
				r.setStatus(fmt.Sprintf("%s, epoch %d: %.4g", p.name, e.Number, e.Validation))
				return nil
			}})
	if err != nil {
		return nil, errors.Join(err, tr.Close())
	}
	return tr.Weights(), pool.put(p.architecture(), tr)
}

// predict calls each with the output y for samples[k]. y is valid during the call only. A value
// that is not finite is an error.
func (r *run) predict(ctx context.Context, net *onnx.Model, in *probeInput, samples []int, each func(k int, y []float32) error) error {
	const batch = 256
	session, err := r.job.Graphs.Compile(net, probeThreads, false)
	if err != nil {
		return err
	}
	defer session.Close()
	for at := 0; at < len(samples); at += batch {
		part := samples[at:min(at+batch, len(samples))]
		if err := r.predictBatch(ctx, session, in, part, func(k int, y []float32) error { return each(at+k, y) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) predictBatch(ctx context.Context, session engine.Session, in *probeInput, samples []int, each func(k int, y []float32) error) error {
	rows := tensor.New(len(samples), in.width())
	for k, i := range samples {
		if err := in.row(rows.At(k).Data, i); err != nil {
			return err
		}
	}
	y, err := engine.Compute(ctx, session, rows)
	if err != nil {
		return err
	}
	for k := range samples {
		if y.At(k).FirstNonFinite() >= 0 {
			return fmt.Errorf("the probe predicts NaN or infinity: lower the setting rate")
		}
		if err := each(k, y.At(k).Data); err != nil {
			return err
		}
	}
	return nil
}
