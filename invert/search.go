package invert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train"
)

// A Search searches for images. It must not be used by several goroutines at a time.
type Search struct {
	objective Objective
	options   Options
	model     *model.Model // the first model of the objective

	n       int // samples in a run of the engine
	lanes   int // concurrent runs
	step    *step
	inputs  []port // of the graph, in order
	session *ort.Session
}

// A Problem is the input of a search.
type Problem struct {
	// x: n x c x h x w, values in [0, 1], with the size of the objective's first model
	Images tensor.Tensor
	Start  tensor.Tensor // initial x', of the same shape
	Labels []int         // correct classes, for Misclassify
	Names  []string      // of samples, for error messages; optional

	Checkpoint train.Checkpoint // optional; the state of another search is ignored
	Progress   func(Progress)   // optional
}

// A Progress is the progress of a search.
type Progress struct {
	Done, Total int64   // steps times samples
	Loss        float64 // best loss so far, the mean over the samples of the current batch
}

// A Result is the result of a search.
type Result struct {
	Images tensor.Tensor // n x c x h x w: the best image of each sample
	Loss   []float64     // of that image; NaN if no step had a finite loss
	// Dropped lists the samples whose loss or gradient became NaN or infinite. Their searches ended
	// there, and their images are the best before that, or the start if Loss is NaN.
	Dropped []int
}

// New prepares a search.
func New(objective Objective, o Options) (*Search, error) {
	s, err := newSearch(objective, o)
	if err != nil {
		return nil, fmt.Errorf("preparing a search: %w", err)
	}
	return s, nil
}

func newSearch(objective Objective, o Options) (*Search, error) {
	if err := objective.check(); err != nil {
		return nil, err
	}
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	s := &Search{objective: objective, options: o, model: objective.models()[0]}
	for _, m := range objective.models() {
		if m.Batch() > 0 && s.n > 0 && m.Batch() != s.n {
			return nil, fmt.Errorf("models with fixed batch sizes %d and %d cannot share a loss", s.n, m.Batch())
		}
		s.n = max(s.n, m.Batch())
	}
	// Build the graph once to return its errors early. The session needs the number of samples.
	_, _, err = buildStep(objective, o, max(1, s.n))
	return s, err
}

// Close releases the engine's session.
func (s *Search) Close() error {
	if s.session == nil {
		return nil
	}
	session := s.session
	s.session = nil
	return session.Close()
}

const (
	maxActivationBytes = 512 << 20
	maxBatch           = 32
)

// batchSize returns the number of samples in a run of the engine and the number of concurrent runs.
// Concurrent runs on one core each use the cores better than one run on all, since operators are
// short. It keeps the number of padding rows small.
func (s *Search) batchSize(samples int) (n, lanes int) {
	lanes = max(1, min(s.model.Workers(), samples))
	for _, m := range s.objective.models() {
		if b := m.Batch(); b > 0 {
			return b, min(lanes, (samples+b-1)/b)
		}
	}
	most := s.options.Batch
	if most == 0 {
		var each int64
		for _, m := range s.objective.models() {
			each += m.ActivationBytes()
		}
		most = int(min(maxBatch, max(1, maxActivationBytes/max(1, 2*each))))
	}
	lanes = min(lanes, most)
	least := (samples + most - 1) / most // minimal number of rounds
	waste := samples * lanes
	for rounds := least; rounds < least+4; rounds++ {
		each := (samples + rounds*lanes - 1) / (rounds * lanes)
		if w := rounds*lanes*each - samples; w < waste {
			n, waste = each, w
		}
	}
	return n, lanes
}

// open creates a session for runs of n samples.
func (s *Search) open(n, lanes int) error {
	if s.session != nil && s.n == n && s.lanes == lanes {
		return nil
	}
	if err := s.Close(); err != nil {
		return err
	}
	graph, step, err := buildStep(s.objective, s.options, n)
	if err != nil {
		return err
	}
	if s.inputs, err = step.inputs(graph.Inputs()); err != nil {
		return err
	}
	o := s.model.EngineOptions()
	if lanes == s.model.Workers() {
		o.Threads = 1
	}
	o.Spin = true
	if s.session, err = s.model.Runtime().NewSession(graph, o); err != nil {
		return fmt.Errorf("model %s: %w", s.model.Graph().Path(), err)
	}
	s.n, s.lanes, s.step = n, lanes, step
	return nil
}

// batch returns the number of samples that are processed together.
func (s *Search) batch() int { return s.n * s.lanes }

// Run runs the search. When the context ends, it saves the checkpoint and returns the context's
// error within a second.
func (s *Search) Run(ctx context.Context, p Problem) (*Result, error) {
	if err := s.check(p); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	targets, err := s.targets(ctx, p)
	if err == nil {
		err = s.open(s.batchSize(p.Images.Shape[0]))
	}
	if err != nil {
		return nil, s.wrapError(ctx, err)
	}
	r := newRun(s, p, targets)
	defer r.free()
	if err := r.run(ctx); err != nil {
		return nil, s.wrapError(ctx, err)
	}
	return r.result(), nil
}

// wrapError returns the context's error if that is the cause.
func (s *Search) wrapError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	return fmt.Errorf("searching: %w", err)
}

func (s *Search) check(p Problem) error {
	x := p.Images
	if x.Rank() != 4 || x.Shape[0] == 0 || !slices.Equal(x.Shape[1:], s.model.ImageShape()) {
		return fmt.Errorf("images have shape %v, and model %s takes n x %v", x.Shape, s.model.Graph().Path(), s.model.ImageShape())
	}
	if !slices.Equal(p.Start.Shape, x.Shape) {
		return fmt.Errorf("the start has shape %v and the images %v", p.Start.Shape, x.Shape)
	}
	for what, t := range map[string]tensor.Tensor{"image": x, "start": p.Start} {
		if i := t.FirstNonFinite(); i >= 0 {
			return fmt.Errorf("the %s of %s holds NaN or infinity", what, p.name(i/tensor.Size(x.Shape[1:])))
		}
	}
	return nil
}

// name returns the name of a sample for error messages.
func (p Problem) name(i int) string {
	if i < len(p.Names) && p.Names[i] != "" {
		return p.Names[i]
	}
	return fmt.Sprintf("sample %d", i)
}

// targets returns the targets in the order of the graph: the centre of the ball first.
func (s *Search) targets(ctx context.Context, p Problem) ([]tensor.Tensor, error) {
	list, err := s.objective.targets(ctx, p)
	if s.options.Ball != (Ball{}) {
		list = slices.Insert(list, 0, p.Images)
	}
	return list, err
}
