package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/tensor"
)

// A Source holds samples to learn from.
type Source interface {
	Len() int
	// Batch returns the samples at the given places. What it returns may be overwritten by the next call.
	Batch(ctx context.Context, places []int) (Batch, error)
}

// Arrays are samples in memory: the same rows of every array belong together.
type Arrays struct {
	Inputs  []tensor.Tensor // n x ...
	Target  tensor.Tensor   // n x ..., or empty
	Classes []int           // or nil

	batch Batch
}

// Len implements Source.
func (a *Arrays) Len() int {
	if len(a.Inputs) == 0 {
		return 0
	}
	return a.Inputs[0].Shape[0]
}

// Batch implements Source.
func (a *Arrays) Batch(_ context.Context, places []int) (Batch, error) {
	if len(a.batch.Inputs) != len(a.Inputs) {
		a.batch.Inputs = make([]tensor.Tensor, len(a.Inputs))
	}
	for i, x := range a.Inputs {
		a.batch.Inputs[i] = rows(a.batch.Inputs[i], x, places)
	}
	if a.Target.Rank() > 0 {
		a.batch.Target = rows(a.batch.Target, a.Target, places)
	}
	a.batch.Classes = a.batch.Classes[:0]
	for _, p := range places {
		if a.Classes != nil {
			a.batch.Classes = append(a.batch.Classes, a.Classes[p])
		}
	}
	return a.batch, nil
}

// rows gathers rows of x into dst, whose memory it takes again where that is large enough.
func rows(dst, x tensor.Tensor, places []int) tensor.Tensor {
	width := tensor.Size(x.Shape[1:])
	if cap(dst.Data) < width*len(places) {
		dst.Data = make([]float32, width*len(places))
	}
	dst.Data = dst.Data[:width*len(places)]
	dst.Shape = append([]int{len(places)}, x.Shape[1:]...)
	for i, p := range places {
		copy(dst.Data[i*width:], x.Data[p*width:][:width])
	}
	return dst
}

// Fitting says how long to train, and when to stop.
type Fitting struct {
	Epochs int // passes over the training samples at most
	Batch  int // samples in a step; 0: 32. The last of an epoch may have fewer
	// Patience stops training once the validation loss has not become smaller for so many epochs; 0: never.
	Patience int
	Seed     uint64 // of the order of samples
	// Checkpoint keeps the state after each epoch, so that training that was stopped goes on as if it had not been. Optional.
	Checkpoint Checkpoint
	// Progress is called after every epoch. Optional.
	Progress func(Epoch)
}

// A Checkpoint keeps a state.
type Checkpoint interface {
	// Load returns what was saved last, nil where there is nothing.
	Load() ([]byte, error)
	// Save replaces what was saved, whole or not at all.
	Save(state []byte) error
}

// An Epoch is what one pass over the training samples came to.
type Epoch struct {
	Number     int     // from 1
	Train      float64 // the mean loss of the steps' batches, each before its step
	Validation float64 // the mean loss after the epoch; NaN without validation samples
	Best       int     // the epoch of the smallest validation loss so far
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
	if validation != nil && len(r.epochs) > 0 {
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
	number := len(r.epochs) + 1
	e := Epoch{Number: number, Validation: math.NaN(), Best: number}
	order := keyed.Rand(r.Seed, "train: order", number).Perm(r.train.Len())
	var err error
	if e.Train, err = r.steps(ctx, order); err != nil {
		return err
	}
	if r.validation != nil {
		if e.Validation, err = r.t.Evaluate(ctx, r.validation, r.Batch); err != nil {
			return err
		}
		if math.IsNaN(e.Validation) || math.IsInf(e.Validation, 0) {
			return fmt.Errorf("training, epoch %d: the validation loss is %g: lower the learning rate, or clip gradients", number, e.Validation)
		}
		if best := r.smallest(); best > 0 && r.epochs[best-1].Validation <= e.Validation {
			e.Best = best
		} else {
			r.best = r.t.Weights()
		}
	}
	r.epochs = append(r.epochs, e)
	if r.Progress != nil {
		r.Progress(e)
	}
	return r.save()
}

// smallest is the number of the best epoch so far, 0 before the first.
func (r *fit) smallest() int {
	if len(r.epochs) == 0 {
		return 0
	}
	return r.epochs[len(r.epochs)-1].Best
}

// steps goes once through the samples.
func (r *fit) steps(ctx context.Context, order []int) (mean float64, err error) {
	together := max(1, r.t.program.spec.Together)
	group := make([]Batch, 0, together)
	for at := 0; at < len(order); {
		group = group[:0]
		samples := 0
		for ; at < len(order) && len(group) < together; at += r.Batch {
			b, err := r.train.Batch(ctx, order[at:min(at+r.Batch, len(order))])
			if err != nil {
				return 0, err
			}
			if together > 1 {
				b = b.clone() // the source may use its memory again
			}
			group = append(group, b)
			samples += b.len()
		}
		losses, err := r.t.Steps(ctx, group)
		if err != nil {
			return 0, err
		}
		for i, loss := range losses {
			mean += loss * float64(group[i].len()) / float64(len(order))
		}
	}
	return mean, ctx.Err()
}

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
	n := src.Len()
	if n == 0 {
		return math.NaN(), errors.New("evaluating: there are no samples")
	}
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	var sum float64
	for at := 0; at < n; at += batch {
		b, err := src.Batch(ctx, places[at:min(at+batch, n)])
		if err != nil {
			return 0, err
		}
		losses, err := t.Losses(ctx, b)
		if err != nil {
			return 0, err
		}
		for _, l := range losses {
			sum += l
		}
	}
	return sum / float64(n), nil
}
