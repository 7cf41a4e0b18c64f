package invert

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A run is one search in progress. It processes batch after batch, each with all steps.
type run struct {
	s       *Search
	p       Problem
	targets []tensor.Tensor // n x ...
	images  tensor.Tensor   // best images of the finished batches
	loss    []float32       // their losses
	dropped []bool          // samples whose loss or slope became NaN or infinite

	batch, iteration int // current batch and step
	saved            time.Time

	// the state of the current batch, twice: a step reads one and writes the other
	state [2][][]float32
	// other inputs, and outputs loss and slope, of the current batch
	rateValues, targetRows, measured [][]float32
	// concurrent runs of the engine
	lanes []lane
}

// A lane holds the inputs and outputs of one concurrent run: its rows of the tensors, for steps
// that read the first or the second copy of the state.
type lane struct{ in, out [2][]*ort.Value }

func newRun(s *Search, p Problem, targets []tensor.Tensor) *run {
	return &run{s: s, p: p, targets: targets, saved: time.Now(),
		images: tensor.New(p.Images.Shape...), loss: make([]float32, p.Images.Shape[0]), dropped: make([]bool, p.Images.Shape[0])}
}

func (r *run) samples() int { return r.p.Images.Shape[0] }

func (r *run) batches() int { return (r.samples() + r.s.batch() - 1) / r.s.batch() }

// rows returns the range of the samples of the current batch. A batch that is not full is padded
// with its last sample.
func (r *run) rows() (from, to int) {
	return r.batch * r.s.batch(), min((r.batch+1)*r.s.batch(), r.samples())
}

func (r *run) run(ctx context.Context) error {
	if err := r.bind(); err != nil {
		return err
	}
	resumed, err := r.restore()
	if err != nil {
		return err
	}
	for ; r.batch < r.batches(); r.batch++ {
		if !resumed {
			r.initialise()
		}
		resumed = false
		r.copyTargets()
		if err := r.optimise(ctx); err != nil {
			return errors.Join(err, r.save())
		}
		r.storeBatch()
	}
	return nil
}

// bind allocates the tensors and wraps each lane's rows for the engine.
func (r *run) bind() error {
	step, lanes := r.s.step, r.s.lanes
	rows := func(ports []port) [][]float32 {
		var list [][]float32
		for _, p := range ports {
			list = append(list, make([]float32, lanes*tensor.Size(p.shape)))
		}
		return list
	}
	r.state = [2][][]float32{rows(step.state), rows(step.state)}
	r.targetRows = rows(step.targets)
	for _, p := range step.rates {
		r.rateValues = append(r.rateValues, make([]float32, tensor.Size(p.shape))) // shared by all lanes
	}
	observed := []port{{"loss", []int{r.s.n, 1}}, {"slope", []int{r.s.n, 1}}}
	r.measured = rows(observed)
	r.lanes = make([]lane, lanes)
	for k := range r.lanes {
		for side := range 2 {
			tensors := map[string][]float32{}
			add := func(ports []port, data [][]float32) {
				for i, p := range ports {
					tensors[p.name] = data[i]
				}
			}
			add(step.state, r.state[side])
			add(step.targets, r.targetRows)
			add(step.rates, r.rateValues)
			for _, p := range r.s.inputs {
				if err := r.wrapRows(&r.lanes[k].in[side], k, p, tensors[p.name]); err != nil {
					return err
				}
			}
			add(step.state, r.state[1-side])
			add(observed, r.measured)
			for _, p := range slices.Concat(step.state, observed) {
				if err := r.wrapRows(&r.lanes[k].out[side], k, p, tensors[p.name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wrapRows wraps a lane's rows of a tensor and appends them to a list.
func (r *run) wrapRows(list *[]*ort.Value, lane int, p port, data []float32) error {
	if size := tensor.Size(p.shape); len(data) > size {
		data = data[lane*size : (lane+1)*size]
	}
	v, err := ort.Wrap(r.s.model.Runtime(), data, p.shape...)
	*list = append(*list, v)
	return err
}

// free releases the engine's values.
func (r *run) free() {
	for _, l := range r.lanes {
		for _, v := range slices.Concat(l.in[0], l.in[1], l.out[0], l.out[1]) {
			v.Close()
		}
	}
}

// initialise sets the state of the current batch to its start.
func (r *run) initialise() {
	r.iteration = 0
	for i, p := range r.s.step.state {
		v := r.state[0][i]
		switch p.name {
		case "x", "best":
			r.copyRows(v, r.p.Start)
		case "key":
			for k := range v {
				v[k] = float32(math.Inf(1))
			}
		default:
			clear(v)
		}
	}
}

// copyTargets copies the targets of the current batch.
func (r *run) copyTargets() {
	for i, t := range r.targets {
		r.copyRows(r.targetRows[i], t)
	}
}

// copyRows copies the rows of the current batch, and pads with the last one.
func (r *run) copyRows(dst []float32, src tensor.Tensor) {
	from, to := r.rows()
	n := copy(dst, src.Slice(from, to).Data)
	for n < len(dst) {
		n += copy(dst[n:], src.At(to-1).Data)
	}
}

// optimise takes the remaining steps of the current batch, and evaluates the image after the last
// one.
func (r *run) optimise(ctx context.Context) error {
	o := r.s.options
	from, to := r.rows()
	for ; r.iteration <= o.Steps; r.iteration++ {
		for i, p := range r.s.step.rates {
			r.rateValues[i][0] = o.rateAt(p.name, r.iteration)
		}
		side := r.iteration % 2
		if err := r.runLanes(ctx, side); err != nil {
			return err
		}
		if r.iteration == 0 {
			if err := r.checkGradient(to - from); err != nil {
				return err
			}
		}
		r.report(1 - side)
		if r.iteration < o.Steps && time.Since(r.saved) > o.SaveEvery {
			r.iteration++
			err := r.save()
			r.iteration--
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// runLanes runs one step of all lanes concurrently.
func (r *run) runLanes(ctx context.Context, side int) error {
	errs := make([]error, len(r.lanes))
	var wait sync.WaitGroup
	for k := range r.lanes[1:] {
		wait.Go(func() { errs[k+1] = r.s.session.Run(ctx, r.lanes[k+1].in[side], r.lanes[k+1].out[side]) })
	}
	errs[0] = r.s.session.Run(ctx, r.lanes[0].in[side], r.lanes[0].out[side])
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkGradient returns an error if no sample of the first batch has a gradient.
func (r *run) checkGradient(n int) error {
	for _, v := range r.measured[1][:n] {
		if v != 0 {
			return nil
		}
	}
	if r.batch > 0 {
		return nil
	}
	targets := r.targets
	if r.s.options.Ball != (Ball{}) {
		targets = targets[1:]
	}
	return r.s.objective.checkGradient(r.measured[0][:n], targets)
}

// report reports the progress. side is the copy of the state that was written last.
func (r *run) report(side int) {
	if r.p.Progress == nil {
		return
	}
	from, to := r.rows()
	each := int64(r.s.options.Steps + 1)
	p := Progress{Done: int64(from)*each + int64(r.iteration+1)*int64(to-from), Total: int64(r.samples()) * each}
	finite := 0
	for _, v := range r.stateTensor("key", side)[:to-from] {
		if v-v == 0 {
			p.Loss += float64(v)
			finite++
		}
	}
	p.Loss /= float64(finite)
	r.p.Progress(p)
}

// stateTensor returns a tensor of the state.
func (r *run) stateTensor(name string, side int) []float32 {
	for i, p := range r.s.step.state {
		if p.name == name {
			return r.state[side][i]
		}
	}
	return nil
}

// storeBatch stores the results of the current batch. A sample does not move any more once its loss
// or slope is NaN or infinite, so those of the last step decide whether it is dropped.
func (r *run) storeBatch() {
	from, to := r.rows()
	side := (r.s.options.Steps + 1) % 2
	copy(r.images.Slice(from, to).Data, r.stateTensor("best", side))
	copy(r.loss[from:to], r.stateTensor("key", side))
	for i := from; i < to; i++ {
		last := r.measured[0][i-from] + r.measured[1][i-from]
		r.dropped[i] = last-last != 0
	}
	r.iteration = 0
}

// result returns the result of the search.
func (r *run) result() *Result {
	f := &Result{Images: r.images, Loss: make([]float64, len(r.loss))}
	for i, v := range r.loss {
		f.Loss[i] = float64(v)
		if math.IsInf(f.Loss[i], 1) {
			f.Loss[i] = math.NaN() // no step had a finite loss
		}
		if r.dropped[i] {
			f.Dropped = append(f.Dropped, i)
		}
	}
	return f
}
