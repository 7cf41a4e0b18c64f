package recipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/train"
)

// A Prediction is what a training will cost. Values are 0 where they are not known: of data that
// are missing, and of the time of networks that are trained layer by layer.
type Prediction struct {
	Name       string  `json:"name"`
	Missing    string  `json:"missing,omitempty"` // why the data cannot be read, if a file does not exist
	Samples    int     `json:"samples"`
	Epochs     int     `json:"epochs"` // the largest number
	Batch      int     `json:"batch"`
	Steps      int     `json:"steps"` // of all epochs
	Parameters int64   `json:"parameters"`
	Seconds    float64 `json:"seconds"` // of all steps, from the time of one
	// Memory is the peak memory of the process in bytes with that step.
	Memory int64 `json:"peak_bytes"`
}

// Predict returns what each training will cost, without training. It opens the data and
// builds the networks, and times a step for each that differs in more than its weights. Without
// Options.Runtime nothing is timed.
func Predict(ctx context.Context, trainings []*File, o Options) ([]Prediction, error) {
	var out []Prediction
	timed := map[string]step{}
	for _, t := range trainings {
		p, err := t.predict(ctx, o, timed)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

// A step is the cost of one step of training.
type step struct {
	seconds float64
	memory  int64
}

// predict returns what one training will cost. timed holds steps by what decides their cost.
func (f *File) predict(ctx context.Context, o Options, timed map[string]step) (out Prediction, err error) {
	out = Prediction{Name: f.Name, Epochs: f.Epochs, Batch: f.Batch}
	p, err := f.preprocess()
	if err != nil {
		return out, err
	}
	data, err := f.open(ctx, p)
	if errors.Is(err, fs.ErrNotExist) {
		out.Missing = err.Error()
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer data.close()
	out.Samples = data.train.Len()
	out.Steps = f.Epochs * ((out.Samples + f.Batch - 1) / f.Batch)
	if f.Network.layerwise() {
		return out, nil
	}
	n, err := f.network(data, p)
	if err != nil {
		return out, err
	}
	out.Parameters = n.model.Parameters()
	if o.Runtime == nil {
		return out, nil
	}
	adversarial := "" // with its values, not its address
	if f.Adversarial != nil {
		adversarial = fmt.Sprint(*f.Adversarial)
	}
	key := fmt.Sprint(n.model.Parameters(), len(n.model.Nodes()), n.model.Inputs(), f.Batch, adversarial, f.Mixup > 0, f.Optimiser.SGD == nil)
	if _, ok := timed[key]; !ok {
		r := &run{File: f, Options: o, data: data, network: n}
		if timed[key], err = r.timeStep(ctx); err != nil {
			return out, err
		}
	}
	out.Seconds, out.Memory = timed[key].seconds*float64(out.Steps), timed[key].memory
	return out, nil
}

// timeStep returns the cost of a step, the second of two.
func (r *run) timeStep(ctx context.Context) (cost step, err error) {
	machine.ResetPeak()
	trainer, err := r.newTrainer(1)
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, trainer.Close()) }()
	samples := r.stream(r.data.train, withAugmentation)
	indices := dataset.Indices(min(r.Batch, samples.Len()))
	for range 2 {
		start := time.Now()
		for b, err := range samples.Batches(ctx, 1, indices, len(indices)) {
			if err != nil {
				return cost, err
			}
			if _, err := trainer.Step(ctx, b); err != nil {
				return cost, err
			}
		}
		cost = step{time.Since(start).Seconds(), machine.PeakMemory()}
	}
	return cost, nil
}

// newTrainer returns a trainer of the network. perEpoch is the number of steps of an epoch.
func (r *run) newTrainer(perEpoch int) (*train.Trainer, error) {
	return train.New(r.Runtime, train.Spec{
		Model: r.network.model, Output: r.network.output, Parameters: r.network.parameters, TrainingMode: r.network.trainingMode,
		Seed: r.Seed, Loss: r.loss(), Optimiser: r.Optimiser.optimiser(), Schedule: r.Schedule.schedule(perEpoch), Clip: r.Clip,
		Adversarial: r.Adversarial.settings(), Mixup: r.Mixup, Tasks: r.tasks(),
		Engine: ort.Options{Threads: r.Threads, Device: r.Device},
	})
}
