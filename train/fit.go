package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// A Source holds samples to learn from.
type Source interface {
	Len() int
	// Batch returns the samples at the given places. What it returns may be overwritten by the next call.
	Batch(ctx context.Context, places []int) (Batch, error)
}

// A Streaming source makes batches while others are being learnt from.
type Streaming interface {
	Source
	// Batches yields the samples at the given places, in their order, so many at a time. Epochs count from 1; in epoch 0, which is
	// for evaluation, nothing is drawn at random. An error is the last thing that it yields. A batch may be overwritten by the next.
	Batches(ctx context.Context, epoch int, places []int, size int) iter.Seq2[Batch, error]
}

// batches goes through a source.
func batches(ctx context.Context, src Source, epoch int, places []int, size int) iter.Seq2[Batch, error] {
	if s, ok := src.(Streaming); ok {
		return s.Batches(ctx, epoch, places, size)
	}
	return func(yield func(Batch, error) bool) {
		for at := 0; at < len(places); at += size {
			b, err := src.Batch(ctx, places[at:min(at+size, len(places))])
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Fitting says how long to train, and when to stop.
type Fitting struct {
	Epochs int // passes over the training samples at most
	Batch  int // samples in a step; 0: 32. The last of an epoch may have fewer
	// Patience stops training once the validation loss has not become smaller for so many epochs; 0: never.
	Patience int
	Seed     uint64 // of the order of samples
	// Back, between 0 and 1, takes an epoch back after which the Epoch.Objective of the validation samples is larger than before: weights and
	// what the optimiser remembers become what they were, and the learning rate is multiplied by Back from then on. So the objective falls from
	// one epoch that stands to the next. 0: every epoch stands.
	Back float64
	// BackByLoss takes back by the validation loss alone, so that this is what falls. A penalty that the loss gives way to never does its work then.
	BackByLoss bool
	// Last keeps the weights of the last epoch where there are validation samples, rather than those of the best.
	Last bool
	// Checkpoint keeps the state after each epoch, so that training that was stopped goes on as if it had not been. Optional.
	Checkpoint Checkpoint
	// Identity is what tells this training from others beside its network, data and batches: a checkpoint of one that has
	// another is an error. Optional.
	Identity string
	// Resumed is called once with the epochs that a checkpoint has. Optional.
	Resumed func([]Epoch)
	// Stepped is called after steps. Optional.
	Stepped func(Step)
	// Progress is called after every epoch. Optional.
	Progress func(Epoch)
	// Keep is called after every epoch, before its checkpoint: the trainer has the weights that the epoch came to. An error ends the
	// training. Optional.
	Keep func(Epoch) error
}

// A Step is how far an epoch has come.
type Step struct {
	Epoch   int
	Samples int // of the epoch that have been learnt from
	Of      int
	Marks   // the means so far
}

// A Checkpoint stores the state of work that goes on where it was stopped: training, a search by gradients (package invert), or a
// procedure (package measure/procedure).
type Checkpoint interface {
	// Load opens the state that was saved last. It returns nil, nil if there is none.
	Load() (io.ReadCloser, error)
	// Save replaces the saved state by what write writes, completely or not at all. It may call write more than once; write must
	// write the same bytes each time. The state is streamed, not buffered, unless the checkpoint is in memory.
	Save(write func(io.Writer) error) error
}

// A Sparing checkpoint is asked after each epoch whether it wants the state, which takes time to write down.
type Sparing interface {
	Checkpoint
	Due() bool
}

// An Epoch is what one pass over the training samples came to.
type Epoch struct {
	Number     int     // from 1
	Train      float64 // the mean loss of the steps' batches, each before its step
	Validation float64 // the mean loss after the epoch; NaN without validation samples
	Best       int     // the epoch of the smallest validation loss so far, of those that stand
	// Objective is what training makes small: the validation loss and the penalty of the Spec, the mean over batches of validation samples.
	// NaN without any.
	Objective float64
	TakenBack bool // the objective, or the loss, had become larger, and the network is again what it was before the epoch

	TrainAccuracy, ValidationAccuracy float64 // beside the losses; NaN where the loss knows no classes

	Rate    float64 // the learning rate of the last step
	Seconds float64 // that the epoch took
}

// Fit trains for epochs. With validation samples the weights of the best epoch are put back in the end.
func (t *Trainer) Fit(ctx context.Context, train, validation Source, f Fitting) ([]Epoch, error) {
	if f.Batch == 0 {
		f.Batch = 32
	}
	switch {
	case f.Epochs < 1 || f.Batch < 1 || f.Patience < 0:
		return nil, fmt.Errorf("training: %d epochs in batches of %d with a patience of %d", f.Epochs, f.Batch, f.Patience)
	case train.Len() == 0:
		return nil, errors.New("training: there are no samples")
	case f.Patience > 0 && validation == nil:
		return nil, errors.New("training: early stopping wants validation samples")
	case !(f.Back >= 0 && f.Back < 1):
		return nil, fmt.Errorf("training: a rate that is multiplied by %g where an epoch is taken back: it lies between 0 and 1", f.Back)
	case f.Back > 0 && validation == nil:
		return nil, errors.New("training: taking epochs back wants validation samples")
	}
	perEpoch := (train.Len() + f.Batch - 1) / f.Batch
	t.Plan(f.Epochs * perEpoch)
	r := &fit{t: t, Fitting: f, train: train, validation: validation, best: t.Weights()}
	if err := r.restore(); err != nil {
		return nil, err
	}
	for len(r.epochs) < f.Epochs && !r.stops() {
		if err := r.epoch(ctx); err != nil {
			return r.epochs, err
		}
	}
	if validation != nil && !f.Last && len(r.epochs) > 0 {
		if err := t.SetWeights(r.best); err != nil {
			return r.epochs, err
		}
	}
	return r.epochs, nil
}

// A fit is training under way.
type fit struct {
	Fitting
	t                 *Trainer
	train, validation Source
	epochs            []Epoch
	best              map[string]tensor.Tensor // the weights of the best epoch
}

// stops reports whether patience is at its end.
func (r *fit) stops() bool {
	if r.Patience == 0 || len(r.epochs) == 0 {
		return false
	}
	last := r.epochs[len(r.epochs)-1]
	return last.Number-last.Best >= r.Patience
}

func (r *fit) epoch(ctx context.Context) error {
	number, start := len(r.epochs)+1, time.Now()
	e := Epoch{Number: number, Validation: math.NaN(), ValidationAccuracy: math.NaN(), Objective: math.NaN(), Best: number}
	before := r.moment()
	order := seed.Rand(r.Seed, "train: order", number).Perm(r.train.Len())
	marks, err := r.steps(ctx, number, order)
	if err != nil {
		return err
	}
	e.Train, e.TrainAccuracy, e.Rate = marks.Loss, marks.Accuracy, r.t.rate(r.t.done)
	if err := r.t.finite(); err != nil {
		return fmt.Errorf("training, epoch %d: %w", number, err)
	}
	if r.validation != nil {
		if err := r.validate(ctx, &e); err != nil {
			return err
		}
	}
	if e.TakenBack = r.rose(e); e.TakenBack {
		r.takeBack(before)
	}
	e.Seconds = time.Since(start).Seconds()
	r.epochs = append(r.epochs, e)
	if r.Progress != nil {
		r.Progress(e)
	}
	if r.Keep != nil {
		if err := r.Keep(e); err != nil {
			return err
		}
	}
	return r.save()
}

// validate judges what an epoch came to.
func (r *fit) validate(ctx context.Context, e *Epoch) error {
	marks, penalty, err := r.t.judge(ctx, r.validation, r.Batch)
	if err != nil {
		return err
	}
	e.Validation, e.ValidationAccuracy, e.Objective = marks.Loss, marks.Accuracy, marks.Loss+penalty
	if math.IsNaN(e.Validation) || math.IsInf(e.Validation, 0) {
		return fmt.Errorf("training, epoch %d: the validation loss is %g: lower the learning rate, or clip gradients", e.Number, e.Validation)
	}
	if best := r.smallest(); best > 0 && (r.epochs[best-1].Validation <= e.Validation || r.rose(*e)) {
		e.Best = best
	} else {
		r.best = r.t.Weights()
	}
	return nil
}

// smallest is the number of the best epoch so far, 0 before the first.
func (r *fit) smallest() int {
	if len(r.epochs) == 0 {
		return 0
	}
	return r.epochs[len(r.epochs)-1].Best
}

// steps goes once through the samples.
func (r *fit) steps(ctx context.Context, epoch int, order []int) (mean Marks, err error) {
	together := max(1, r.t.program.spec.Together)
	group := make([]Batch, 0, together)
	var sum Marks
	seen := 0
	flush := func() error {
		marks, err := r.t.steps(ctx, group)
		for i, m := range marks {
			n := group[i].len()
			sum.Loss += m.Loss * float64(n)
			sum.Accuracy += m.Accuracy * float64(n)
			seen += n
		}
		group = group[:0]
		if err == nil && r.Stepped != nil && seen > 0 {
			r.Stepped(Step{Epoch: epoch, Samples: seen, Of: len(order), Marks: sum.over(seen)})
		}
		return err
	}
	for b, err := range batches(ctx, r.train, epoch, order, r.Batch) {
		if err != nil {
			return mean, err
		}
		if together > 1 {
			b = b.clone() // the source may use its memory again
		}
		if group = append(group, b); len(group) == together {
			if err := flush(); err != nil {
				return mean, err
			}
		}
	}
	if err := flush(); err != nil {
		return mean, err
	}
	return sum.over(seen), ctx.Err()
}

// over divides sums by a number of samples.
func (m Marks) over(n int) Marks { return Marks{m.Loss / float64(n), m.Accuracy / float64(n)} }

func (b Batch) clone() Batch {
	out := Batch{Target: b.Target, Classes: append([]int(nil), b.Classes...)}
	if b.Target.Rank() > 0 {
		out.Target = b.Target.Clone()
	}
	for _, x := range b.Inputs {
		out.Inputs = append(out.Inputs, x.Clone())
	}
	return out
}

// Evaluate is the mean loss over a source, in batches of so many samples.
func (t *Trainer) Evaluate(ctx context.Context, src Source, batch int) (float64, error) {
	marks, err := t.Assess(ctx, src, batch)
	return marks.Loss, err
}

// Assess is how well the network does on a source, in batches of so many samples.
func (t *Trainer) Assess(ctx context.Context, src Source, batch int) (Marks, error) {
	marks, _, err := t.judge(ctx, src, batch)
	return marks, err
}

// judge is Assess with the mean of the penalty.
func (t *Trainer) judge(ctx context.Context, src Source, batch int) (marks Marks, penalty float64, err error) {
	n := src.Len()
	if n == 0 || batch < 1 {
		return Marks{math.NaN(), math.NaN()}, 0, fmt.Errorf("evaluating: %d samples in batches of %d", n, batch)
	}
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	var sum Marks
	if t.program.marks() < 2 {
		sum.Accuracy = math.NaN()
	}
	for b, err := range batches(ctx, src, 0, places, batch) {
		if err != nil {
			return Marks{}, 0, err
		}
		seen, err := t.assess(ctx, b)
		if err != nil {
			return Marks{}, 0, err
		}
		for i, l := range seen.losses {
			sum.Loss += l
			if seen.hits != nil {
				sum.Accuracy += seen.hits[i]
			}
		}
		penalty += seen.penalty * float64(b.len()) / float64(n)
	}
	return sum.over(n), penalty, ctx.Err()
}
