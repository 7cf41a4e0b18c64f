package robust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/noether-ml/noether/internal/autoattack"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/tensor"
)

// A pool runs attacks on several images at a time. Each attack is in its own goroutine and waits
// for the network, which computes the images of all of them in one batch. When an attack ends,
// another one takes its place, so that batches stay full. An attack depends on nothing but its
// image, and so not on the batch.
type pool struct {
	outputs  []int // see procedure.Subject
	shape    []int // of an image
	classes  int
	size     int // attacks at a time
	gradient *invert.Gradient
	session  *model.Session // of class scores
	buffers  *model.Buffers
}

// openPool returns a pool for an attack on a number of images.
func (r *run) openPool(a autoattack.Attack, images int) (_ *pool, err error) {
	s := r.job.A
	p := &pool{outputs: s.Outputs, shape: s.Model.ImageShape(), classes: classes(s), size: cmp.Or(r.settings.Batch, scoresBatch)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if a.Loss != autoattack.None {
		p.gradient, err = invert.NewGradient(invert.Misclassify(s.Model, s.Outputs), classLosses[a.Loss], images,
			invert.Options{Batch: r.settings.Batch, Graphs: r.job.Graphs})
		if err != nil {
			return nil, err
		}
		p.size = p.gradient.Batch()
	}
	p.size = min(p.size, images)
	if p.session, err = s.Model.NewBatchSession(nil, true, p.size, nil); err != nil {
		return nil, err
	}
	p.buffers, err = p.session.NewBuffers(p.size)
	return p, err
}

// scoresBatch is the default number of images that an attack without gradients attacks together.
const scoresBatch = 32

func (p *pool) close() {
	if p.gradient != nil {
		p.gradient.Close()
	}
	if p.session != nil {
		p.session.Close()
	}
}

// A worker is an attack in progress. It implements autoattack.Network.
type worker struct {
	pool    *pool
	label   int
	passes  *int       // cost of the queries so far, in forward passes
	queries chan query // closed at the end of the attack
	answers chan error
	err     error // of the attack
	crash   any   // the value of its panic
}

// A query is an image whose class scores, and gradient if that is not nil, an attack waits for.
type query struct{ invert.GradientRow }

func (w *worker) ask(x []float32, target int, gradient []float32) (query, error) {
	q := query{invert.GradientRow{Image: x, Label: w.label, Target: target, Scores: make([]float32, w.pool.classes), Gradient: gradient}}
	if *w.passes++; gradient != nil {
		*w.passes += gradientWork - 1
	}
	w.queries <- q
	return q, <-w.answers
}

// Scores implements autoattack.Network.
func (w *worker) Scores(x []float32) ([]float32, error) {
	q, err := w.ask(x, w.label, nil)
	return q.Scores, err
}

// Gradient implements autoattack.Network.
func (w *worker) Gradient(x []float32, target int) (scores, gradient []float32, err error) {
	q, err := w.ask(x, target, make([]float32, len(x)))
	return q.Scores, q.Gradient, err
}

// start starts an attack on an image with a label, whose cost it adds to passes.
func (p *pool) start(label int, passes *int, attack func(n autoattack.Network) error) *worker {
	w := &worker{pool: p, label: label, passes: passes, queries: make(chan query), answers: make(chan error)}
	go func() {
		defer close(w.queries)
		defer func() {
			if v := recover(); v != nil {
				w.crash = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
		}()
		w.err = attack(w)
	}()
	return w
}

// run runs n attacks, begun by start in order. paused is called before each batch, while no attack
// runs.
func (p *pool) run(ctx context.Context, n int, start func(i int) *worker, paused func() error) error {
	workers := make([]*worker, p.size)
	next := 0
	var crash any // the first
	for {
		var asked []query
		var asking []*worker
		var err error
		for k := range workers {
			for {
				if workers[k] == nil {
					if next == n || err != nil {
						break
					}
					workers[k] = start(next)
					next++
				}
				w := workers[k]
				if q, ok := <-w.queries; ok {
					asked, asking = append(asked, q), append(asking, w)
					break
				}
				if workers[k] = nil; w.crash != nil {
					crash, w.err = w.crash, errors.New("an attack has crashed")
				}
				if err == nil {
					err = w.err
				}
			}
		}
		if len(asked) == 0 {
			if crash != nil {
				panic(crash) // for whoever guards the procedure
			}
			return err
		}
		if err == nil {
			err = paused()
		}
		if err == nil {
			err = p.compute(ctx, asked)
		}
		for _, w := range asking {
			w.answers <- err
		}
	}
}

// compute answers queries: those with gradients in one batch, and the others in another one.
func (p *pool) compute(ctx context.Context, asked []query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var gradients []invert.GradientRow
	var scores []query
	for _, q := range asked {
		if q.Gradient != nil {
			gradients = append(gradients, q.GradientRow)
		} else {
			scores = append(scores, q)
		}
	}
	if len(gradients) > 0 {
		if err := p.gradient.Run(ctx, gradients); err != nil {
			return err
		}
	}
	return p.computeScores(ctx, scores)
}

func (p *pool) computeScores(ctx context.Context, asked []query) error {
	if len(asked) == 0 {
		return nil
	}
	images := make([]tensor.Tensor, len(asked))
	for i, q := range asked {
		images[i] = tensor.Tensor{Shape: p.shape, Data: q.Image}
	}
	if err := p.session.Run(ctx, images, p.buffers); err != nil {
		return err
	}
	logs, err := p.buffers.LogProbs(p.outputs)
	if err != nil {
		return err
	}
	for i, q := range asked {
		copy(q.Scores, logs.At(i).Data)
	}
	return nil
}
