package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// A Source holds samples to train on.
type Source interface {
	Len() int
	// Batch returns the samples with the given indices. The next call may overwrite the result.
	Batch(ctx context.Context, indices []int) (Batch, error)
}

// A streamingSource prepares batches while earlier ones are used.
type streamingSource interface {
	Source
	// Batches yields the samples with the given indices, in order, in batches of the given size.
	// Epochs count from 1; epoch 0 is for evaluation and draws nothing at random. An error is the
	// last value. A batch may be overwritten by the next.
	Batches(ctx context.Context, epoch int, indices []int, size int) iter.Seq2[Batch, error]
}

func batches(ctx context.Context, src Source, epoch int, indices []int, size int) iter.Seq2[Batch, error] {
	if s, ok := src.(streamingSource); ok {
		return s.Batches(ctx, epoch, indices, size)
	}
	return func(yield func(Batch, error) bool) {
		for at := 0; at < len(indices); at += size {
			b, err := src.Batch(ctx, indices[at:min(at+size, len(indices))])
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// FitOptions are the options of Fit.
type FitOptions struct {
	Epochs int // largest number of passes over the training samples
	Batch  int // samples of a step; 0: 32. The last batch of an epoch may be smaller
	// Patience stops training after this number of epochs without a smaller validation loss; 0:
	// never.
	Patience int
	Seed     uint64 // of the order of samples
	// RollbackFactor, between 0 and 1, rolls back each epoch that increases Epoch.Objective, in
	// comparison with the last epoch that was not rolled back. Weights and the optimiser's state
	// return to those before the epoch, and the learning rate is multiplied by RollbackFactor from
	// then on. 0: no epoch is rolled back.
	RollbackFactor float64
	// RollbackByLoss compares Epoch.Validation, the loss without Spec.Penalty, instead of the
	// objective.
	RollbackByLoss bool
	// KeepLast keeps the weights of the last epoch that was not rolled back. Without it, if there
	// are validation samples, Fit restores the weights of the epoch with the smallest validation
	// loss.
	KeepLast bool
	// Checkpoint stores the state after each epoch, so that an interrupted training resumes with
	// the same results. If it has a method Due() bool, the state is saved only when that returns
	// true. Optional.
	Checkpoint state.Checkpoint
	// Identity identifies the training besides network, data and batches. A checkpoint with another
	// identity is an error. Optional.
	Identity string
	// Resumed is called once with the epochs of a checkpoint. Optional.
	Resumed func([]Epoch) error
	// AfterStep is called after each run of ONNX Runtime, of up to Spec.StepsPerRun steps.
	// Optional.
	AfterStep func(StepProgress)
	// AfterEpoch is called after each epoch, before its checkpoint is saved. The trainer has the
	// weights of the epoch. An error ends the training. Optional.
	AfterEpoch func(Epoch) error
}

// A StepProgress is the progress within an epoch.
type StepProgress struct {
	Epoch   int // from 1
	Samples int // samples of the epoch used so far
	Total   int // samples of the epoch
	Metrics     // means over the samples used so far
}

// An Epoch holds the results of one pass over the training samples.
type Epoch struct {
	Number     int     // from 1
	Train      float64 // mean loss of the batches, each before its step, with Spec.Penalty
	Validation float64 // mean validation loss after the epoch; NaN without validation samples
	// Best is the number of the best epoch so far: of those that were not rolled back, the one with
	// the smallest validation loss. Without validation samples it is Number.
	Best int
	// Objective is the validation loss plus the mean of the penalty over batches of validation
	// samples. NaN without validation samples.
	Objective  float64
	RolledBack bool // the objective had increased, and the state before the epoch was restored

	TrainAccuracy, ValidationAccuracy float64 // NaN if targets are not classes
	// ValidationMeanIoU is Metrics.MeanIoU of the validation samples; NaN without masks.
	ValidationMeanIoU float64
	// ValidationRobust is the accuracy on adversarial examples of the validation samples, found as
	// in training; NaN without Spec.Adversarial.
	ValidationRobust float64

	Rate    float64 // learning rate of the last step
	Seconds float64 // duration
}

// Fit trains for several epochs and returns their results, those of a checkpoint included. If an
// epoch fails, it returns the results of the finished epochs with the error. validation may be nil,
// unless there is a Patience or a RollbackFactor. With validation samples the trainer ends with the
// weights of the best epoch, unless KeepLast is set.
func (t *Trainer) Fit(ctx context.Context, train, validation Source, f FitOptions) ([]Epoch, error) {
	f.Batch = cmp.Or(f.Batch, 32)
	switch {
	case f.Epochs < 1 || f.Batch < 1 || f.Patience < 0:
		return nil, fmt.Errorf("training: %d epochs in batches of %d with patience %d: they must be at least 1, 1 and 0", f.Epochs, f.Batch, f.Patience)
	case train.Len() == 0:
		return nil, errors.New("training: there are no samples")
	case f.Patience > 0 && validation == nil:
		return nil, errors.New("training: early stopping needs validation samples")
	case !(f.RollbackFactor >= 0 && f.RollbackFactor < 1):
		return nil, fmt.Errorf("training: the rate is multiplied by %g after a rollback: it must lie between 0 and 1", f.RollbackFactor)
	case f.RollbackFactor > 0 && validation == nil:
		return nil, errors.New("training: rollback needs validation samples")
	}
	perEpoch := (train.Len() + f.Batch - 1) / f.Batch
	t.total = f.Epochs * perEpoch
	r := &fitter{trainer: t, FitOptions: f, train: train, validation: validation, best: t.Weights()}
	if err := r.restore(); err != nil {
		return nil, err
	}
	for len(r.epochs) < f.Epochs && !r.outOfPatience() {
		if err := r.runEpoch(ctx); err != nil {
			return r.epochs, err
		}
	}
	if validation != nil && !f.KeepLast && len(r.epochs) > 0 {
		if err := t.SetWeights(r.best); err != nil {
			return r.epochs, err
		}
	}
	return r.epochs, nil
}

type fitter struct {
	FitOptions
	trainer           *Trainer
	train, validation Source
	epochs            []Epoch                  // that are finished
	best              map[string]tensor.Tensor // weights of the best epoch
}

func (r *fitter) outOfPatience() bool {
	if r.Patience == 0 || len(r.epochs) == 0 {
		return false
	}
	last := r.epochs[len(r.epochs)-1]
	return last.Number-last.Best >= r.Patience
}

func (r *fitter) runEpoch(ctx context.Context) error {
	number, began := len(r.epochs)+1, time.Now()
	e := Epoch{Number: number, Validation: math.NaN(), ValidationAccuracy: math.NaN(), Objective: math.NaN(), ValidationMeanIoU: math.NaN(), ValidationRobust: math.NaN(), Best: number}
	start := r.snapshot()
	order := seed.Rand(r.Seed, "train: order", number).Perm(r.train.Len())
	metrics, err := r.trainOnce(ctx, number, order)
	if failed := r.trainer.download(); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	e.Train, e.TrainAccuracy, e.Rate = metrics.Loss, metrics.Accuracy, r.trainer.rate(r.trainer.done)
	if err := r.trainer.checkFinite(); err != nil {
		return fmt.Errorf("training, epoch %d: %w", number, err)
	}
	if r.validation != nil {
		if err := r.validate(ctx, &e); err != nil {
			return err
		}
	}
	if e.RolledBack = r.increased(e); e.RolledBack {
		if err := r.rollBack(start); err != nil {
			return err
		}
	}
	e.Seconds = time.Since(began).Seconds()
	r.epochs = append(r.epochs, e)
	if r.AfterEpoch != nil {
		if err := r.AfterEpoch(e); err != nil {
			return err
		}
	}
	return r.save()
}

func (r *fitter) validate(ctx context.Context, e *Epoch) error {
	metrics, penalty, err := r.trainer.evaluate(ctx, r.validation, r.Batch)
	if err != nil {
		return err
	}
	e.Validation, e.ValidationAccuracy, e.Objective = metrics.Loss, metrics.Accuracy, metrics.Loss+penalty
	e.ValidationMeanIoU = metrics.MeanIoU
	if math.IsNaN(e.Validation) || math.IsInf(e.Validation, 0) {
		return fmt.Errorf("training, epoch %d: the validation loss is %g: lower the learning rate, or clip gradients", e.Number, e.Validation)
	}
	if r.trainer.search != nil && r.trainer.program.metricCount() > 1 { // with an accuracy
		if e.ValidationRobust, err = r.trainer.EvaluateRobust(ctx, r.validation, r.Batch); err != nil {
			return err
		}
	}
	if best := r.bestEpoch(); best > 0 && (r.epochs[best-1].Validation <= e.Validation || r.increased(*e)) {
		e.Best = best
	} else {
		r.best = r.trainer.Weights()
	}
	return nil
}

func (r *fitter) bestEpoch() int {
	if len(r.epochs) == 0 {
		return 0
	}
	return r.epochs[len(r.epochs)-1].Best
}

// trainOnce takes the steps of one epoch, on the samples in the given order, and returns the mean
// metrics over the samples. One run takes the steps of a group of batches.
func (r *fitter) trainOnce(ctx context.Context, epoch int, order []int) (mean Metrics, err error) {
	perRun := max(1, r.trainer.program.spec.StepsPerRun)
	group := make([]Batch, 0, perRun)
	var sum Metrics
	seen := 0
	flush := func() error {
		metrics, err := r.trainer.steps(ctx, group)
		for i, m := range metrics {
			n := group[i].len()
			sum.Loss += m.Loss * float64(n)
			sum.Accuracy += m.Accuracy * float64(n)
			seen += n
		}
		group = group[:0]
		if err == nil && r.AfterStep != nil && seen > 0 {
			r.AfterStep(StepProgress{Epoch: epoch, Samples: seen, Total: len(order), Metrics: sum.dividedBy(seen)})
		}
		return err
	}
	for b, err := range batches(ctx, r.train, epoch, order, r.Batch) {
		if err != nil {
			return mean, err
		}
		if perRun > 1 {
			b = b.clone() // the source may reuse the memory
		}
		if group = append(group, b); len(group) == perRun {
			if err := flush(); err != nil {
				return mean, err
			}
		}
	}
	if err := flush(); err != nil {
		return mean, err
	}
	return sum.dividedBy(seen), ctx.Err()
}

// dividedBy returns sums divided by a number of samples. MeanIoU, which is no sum, is NaN.
func (m Metrics) dividedBy(n int) Metrics {
	return Metrics{m.Loss / float64(n), m.Accuracy / float64(n), math.NaN()}
}

func (b Batch) clone() Batch {
	out := Batch{Targets: b.Targets.clone()}
	for _, t := range b.Tasks {
		out.Tasks = append(out.Tasks, t.clone())
	}
	for _, x := range b.Inputs {
		out.Inputs = append(out.Inputs, x.Clone())
	}
	return out
}

// Evaluate returns the metrics of the network on a source, in batches of the given size, in
// evaluation mode.
func (t *Trainer) Evaluate(ctx context.Context, src Source, batch int) (Metrics, error) {
	metrics, _, err := t.evaluate(ctx, src, batch)
	return metrics, err
}

func (t *Trainer) evaluate(ctx context.Context, src Source, batch int) (metrics Metrics, penalty float64, err error) {
	n := src.Len()
	if n == 0 || batch < 1 {
		return Metrics{math.NaN(), math.NaN(), math.NaN()}, 0, fmt.Errorf("evaluating: %d samples in batches of %d", n, batch)
	}
	var sum Metrics
	if t.program.metricCount() < 2 { // no accuracy
		sum.Accuracy = math.NaN()
	}
	var counts regions
	for b, err := range batches(ctx, src, 0, dataset.Indices(n), batch) {
		if err != nil {
			return Metrics{}, 0, err
		}
		seen, err := t.evaluateBatch(ctx, b, nil)
		if err != nil {
			return Metrics{}, 0, err
		}
		for i, l := range seen.losses {
			sum.Loss += l
			if seen.correct != nil {
				sum.Accuracy += seen.correct[i]
			}
		}
		penalty += seen.penalty * float64(b.len()) / float64(n)
		counts.add(seen.predicted, b.Masks.Data)
	}
	metrics = sum.dividedBy(n)
	metrics.MeanIoU = counts.meanIoU()
	return metrics, penalty, ctx.Err()
}
