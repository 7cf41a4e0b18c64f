package invert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/unsaved"
	"github.com/noether-ml/noether/tensor"
)

// A Search minimises an objective by gradient descent on images. A Search must not be used by
// several goroutines at a time.
type Search struct {
	write     stepWriter
	objective Objective
	options   Options
	model     *model.Model // the first model of the objective

	// n is the number of samples in a run of ONNX Runtime. Before open it is the fixed batch size
	// of the models, or 0 if they have none.
	n       int
	shards  int          // concurrent runs
	step    *stepBuilder // writes the graph of one gradient step
	inputs  []tensorInfo // of the graph, in order
	session engine.Session
}

// A Problem is the input of a search.
type Problem struct {
	// Images are the images x, n x c x h x w with values in [0, 1] and the size of the objective's
	// first model.
	Images tensor.Tensor
	Start  tensor.Tensor // initial images x', of the same shape
	Labels []int         // correct classes, for the objective Misclassify
	Names  []string      // of samples, for error messages; optional

	Checkpoint state.Checkpoint // optional; the state of another search is ignored
	Progress   func(Progress)   // optional
}

// A Progress tells how far a search is.
type Progress struct {
	Done, Total int64   // numbers of steps, summed over samples
	Loss        float64 // mean of the best losses (see Result) of the current batch so far
}

// A Result is the result of a search.
type Result struct {
	Images tensor.Tensor // n x c x h x w: the best image of each sample
	// Loss is the loss of that image; NaN if no step had a finite loss. For Misclassify it is the
	// margin: the log-probability of the correct class minus the largest of another class.
	Loss []float64
	// Dropped lists the samples whose loss or gradient became NaN or infinite. Their searches ended
	// at that step. Their images are the best before it, or the start if Loss is NaN.
	Dropped []int
}

// New returns a search for an objective. It returns an error if the options are not valid or the
// objective has no gradient that can be computed.
func New(objective Objective, o Options) (*Search, error) {
	s, err := newSearch(writeStep, objective, o)
	if err != nil {
		return nil, fmt.Errorf("preparing a search: %w", err)
	}
	return s, nil
}

func newSearch(write stepWriter, objective Objective, o Options) (*Search, error) {
	if err := objective.check(); err != nil {
		return nil, err
	}
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	s := &Search{write: write, objective: objective, options: o, model: objective.models()[0]}
	for _, m := range objective.models() {
		// Batch is the fixed batch size of a model; 0: any.
		if m.Batch() > 0 && s.n > 0 && m.Batch() != s.n {
			return nil, fmt.Errorf("models with fixed batch sizes %d and %d cannot share a loss", s.n, m.Batch())
		}
		s.n = max(s.n, m.Batch())
	}
	// Build the graph once to return its errors early.
	_, _, err = buildStep(write, objective, o, max(1, s.n))
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

// batchSize returns the number of samples in a run and the number of concurrent runs. Since
// operators take little time, concurrent runs on one core each are faster than one run on all
// cores. The latter are a round, and Options.Batch bounds its samples (exceeded by less than
// shards, by padding).
func (s *Search) batchSize(samples int) (n, shards int) {
	shards = max(1, min(s.model.Workers(), samples))
	if s.served() { // which has its own threads, and keeps one run in mind for its gradient
		shards = 1
	}
	for _, m := range s.objective.models() {
		if b := m.Batch(); b > 0 {
			return b, min(shards, (samples+b-1)/b)
		}
	}
	limit := s.options.Batch
	if limit == 0 {
		var bytes int64 // of the activations of one sample
		for _, m := range s.objective.models() {
			bytes += m.ActivationBytes()
		}
		limit = int(min(maxBatch, max(1, maxActivationBytes/max(1, 2*bytes)))) // 2: with gradients
	}
	shards = min(shards, limit)
	// Four numbers of rounds are tried, from the smallest with at most limit samples in a round.
	minRounds := (samples + limit - 1) / limit
	minPadding := samples * shards
	for rounds := minRounds; rounds < minRounds+4; rounds++ {
		size := (samples + rounds*shards - 1) / (rounds * shards)
		if padding := rounds*shards*size - samples; padding < minPadding {
			n, minPadding = size, padding
		}
	}
	return n, shards
}

// served reports whether a model is no graph.
func (s *Search) served() bool {
	return slices.ContainsFunc(s.objective.models(), func(m *model.Model) bool { return m.Graph() == nil })
}

func (s *Search) open(n, shards int) error {
	if s.session != nil && s.n == n && s.shards == shards {
		return nil
	}
	if err := s.Close(); err != nil {
		return err
	}
	graph, step, err := buildStep(s.write, s.objective, s.options, n)
	if err != nil {
		return err
	}
	if s.inputs, err = step.inputs(graph.Inputs()); err != nil {
		return err
	}
	if len(step.served) > 0 {
		session, err := step.openServed(s.options.Graphs, graph, s.inputs)
		if err != nil {
			return err
		}
		s.session, s.n, s.shards, s.step = session, n, shards, step
		return nil
	}
	threads := 0
	if shards == s.model.Workers() {
		threads = 1
	}
	const spin = true // runs follow closely
	if s.session, err = s.model.Compile(graph, threads, spin); err != nil {
		return fmt.Errorf("model %s: %w", s.model.Path(), err)
	}
	s.n, s.shards, s.step = n, shards, step
	return nil
}

func (s *Search) batch() int { return s.n * s.shards }

// Run runs the search. If the context ends, it saves the checkpoint and returns the context's
// error.
func (s *Search) Run(ctx context.Context, p Problem) (*Result, error) {
	if err := s.check(p); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	constants, err := s.constants(ctx, p)
	if err != nil {
		return nil, s.wrapError(ctx, err)
	}
	defer unsaved.Hold(ctx)() // after a signal the program waits until the checkpoint is saved
	for {
		result, err := s.runBatches(ctx, p, constants)
		if !errors.Is(err, engine.ErrDeviceMemory) || !s.halveBatch() {
			return result, s.wrapError(ctx, err)
		}
	}
}

func (s *Search) runBatches(ctx context.Context, p Problem, constants []tensor.Tensor) (*Result, error) {
	if err := s.open(s.batchSize(p.Images.Shape[0])); err != nil {
		return nil, err
	}
	r := newRun(s, p, constants)
	defer r.free()
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// halveBatch makes batches smaller for lack of device memory, if that is possible.
func (s *Search) halveBatch() bool {
	if s.batch() <= 1 || slices.ContainsFunc(s.objective.models(), func(m *model.Model) bool { return m.Batch() > 0 }) {
		return false
	}
	s.options.Batch = (s.batch() + 1) / 2
	s.model.Note("model %s: the device has too little memory to search for %d images at once: searching for %d", s.model.Path(), s.batch(), s.options.Batch)
	return true
}

// wrapError returns the context's error if that is the cause of err, else err with a prefix.
func (s *Search) wrapError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	}
	return fmt.Errorf("searching: %w", err)
}

func (s *Search) check(p Problem) error {
	x := p.Images
	if x.Rank() != 4 || x.Shape[0] == 0 || !slices.Equal(x.Shape[1:], s.model.ImageShape()) {
		return fmt.Errorf("images have shape %v, but model %s takes n x %v", x.Shape, s.model.Path(), s.model.ImageShape())
	}
	if !slices.Equal(p.Start.Shape, x.Shape) {
		return fmt.Errorf("the start has shape %v, but the images have shape %v", p.Start.Shape, x.Shape)
	}
	for what, t := range map[string]tensor.Tensor{"image": x, "start": p.Start} {
		if i := t.FirstNonFinite(); i >= 0 {
			return fmt.Errorf("the %s of %s contains NaN or infinity", what, p.name(i/tensor.Size(x.Shape[1:])))
		}
	}
	return nil
}

func (p Problem) name(i int) string {
	if i < len(p.Names) && p.Names[i] != "" {
		return p.Names[i]
	}
	return fmt.Sprintf("sample %d", i)
}

// constants returns the constant inputs in the order of the graph: first the centre of the ball, if
// any.
func (s *Search) constants(ctx context.Context, p Problem) ([]tensor.Tensor, error) {
	list, err := s.objective.constants(ctx, p)
	if s.options.Ball != (Ball{}) {
		list = slices.Insert(list, 0, p.Images)
	}
	return list, err
}
