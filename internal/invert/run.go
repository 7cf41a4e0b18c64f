package invert

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A run is a search in progress. It takes one batch after the other, each through all steps. An
// iteration is the index of a step. The best image of a sample is the one with the smallest
// criterion: the loss or, for misclassification, the margin (see Result).
type run struct {
	search    *Search
	problem   Problem
	constants []tensor.Tensor // such as f(x), in the order of stepBuilder.constants, one row for each sample
	images    tensor.Tensor   // best images of the finished batches: those of the smallest criterion
	loss      []float32       // their values of losses.criterion
	dropped   []bool          // whether the loss or gradient norm of a sample became NaN or infinite

	batch, iteration int       // indices of the current batch and step
	saved            time.Time // when the last checkpoint was written
	restored         bool      // whether a checkpoint was read

	// The tensors of the current batch. A step reads one copy of the state and writes the other.
	state          [2][][]float32 // the two copies, each in the order of stepBuilder.state
	scheduleValues [][]float32    // such as the step length, in the order of stepBuilder.schedule
	constantRows   [][]float32    // in the order of stepBuilder.constants
	measured       [][]float32    // loss and gradient norm of each sample, which a step writes
	shards         []shard
}

// A shard holds the inputs and outputs of one of the calls of ONNX Runtime that run concurrently:
// its rows of the tensors of a batch.
type shard struct {
	// in[0] and out[0] are for even steps, which read the first copy of the state and write the
	// second; in[1] and out[1] are for odd ones. The index is called parity.
	in, out   [2][]*engine.Array
	state     [2][]*engine.Array // in the order of stepBuilder.state; they stay on the engine's device
	constants []*engine.Array    // in the order of stepBuilder.constants; likewise on the device
	others    []*engine.Array    // of the schedule, and those that a step writes besides the state
}

func newRun(s *Search, p Problem, constants []tensor.Tensor) *run {
	return &run{search: s, problem: p, constants: constants, saved: time.Now(),
		images: tensor.New(p.Images.Shape...), loss: make([]float32, p.Images.Shape[0]), dropped: make([]bool, p.Images.Shape[0])}
}

func (r *run) samples() int { return r.problem.Images.Shape[0] }

func (r *run) batches() int { return (r.samples() + r.search.batch() - 1) / r.search.batch() }

func (r *run) rows() (from, to int) {
	return r.batch * r.search.batch(), min((r.batch+1)*r.search.batch(), r.samples())
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
		r.copyConstants()
		if err := r.upload(); err != nil {
			return err
		}
		if err := r.optimise(ctx); err != nil {
			if errors.Is(err, engine.ErrDeviceLost) {
				return err // the state was on the device too
			}
			return errors.Join(err, r.save())
		}
		if err := r.storeBatch(); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) bind() error {
	step, shards := r.search.step, r.search.shards
	rows := func(infos []tensorInfo) [][]float32 {
		var list [][]float32
		for _, p := range infos {
			list = append(list, make([]float32, shards*tensor.Size(p.shape)))
		}
		return list
	}
	r.state = [2][][]float32{rows(step.state), rows(step.state)}
	r.constantRows = rows(step.constants)
	for _, p := range step.schedule {
		// All shards share these inputs.
		r.scheduleValues = append(r.scheduleValues, make([]float32, tensor.Size(p.shape)))
	}
	observed := []tensorInfo{{"loss", []int{r.search.n, 1}}, {"gradient norm", []int{r.search.n, 1}}}
	r.measured = rows(observed)
	r.shards = make([]shard, shards)
	for k := range r.shards {
		if err := r.bindShard(k, observed); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) bindShard(k int, observed []tensorInfo) error {
	l, step := &r.shards[k], r.search.step
	values := [2]map[string]*engine.Array{{}, {}} // by name, for each copy of the state
	wrap := func(list *[]*engine.Array, infos []tensorInfo, data [][]float32, copies ...int) error {
		for i, p := range infos {
			if err := r.wrapRows(list, k, p, data[i]); err != nil {
				return err
			}
			for _, c := range copies {
				values[c][p.name] = (*list)[len(*list)-1]
			}
		}
		return nil
	}
	err := errors.Join(wrap(&l.state[0], step.state, r.state[0], 0), wrap(&l.state[1], step.state, r.state[1], 1),
		wrap(&l.constants, step.constants, r.constantRows, 0, 1), wrap(&l.others, step.schedule, r.scheduleValues, 0, 1),
		wrap(&l.others, observed, r.measured, 0, 1))
	if err != nil {
		return err
	}
	for parity := range 2 {
		for _, p := range r.search.inputs {
			l.in[parity] = append(l.in[parity], values[parity][p.name])
		}
		for _, p := range slices.Concat(step.state, observed) {
			l.out[parity] = append(l.out[parity], values[1-parity][p.name])
		}
	}
	if p, ok := r.search.session.(engine.Placer); ok {
		return p.Place(slices.Concat(l.state[0], l.state[1], l.constants)...)
	}
	return nil
}

// Data of the size of one shard are shared by all.
func (r *run) wrapRows(list *[]*engine.Array, shard int, p tensorInfo, data []float32) error {
	if size := tensor.Size(p.shape); len(data) > size {
		data = data[shard*size : (shard+1)*size]
	}
	a := &engine.Array{Shape: p.shape, Data: data}
	*list = append(*list, a)
	return r.search.session.Bind(a)
}

func (r *run) upload() error {
	for _, l := range r.shards {
		for _, v := range slices.Concat(l.constants, l.state[r.iteration%2]) {
			if err := v.Upload(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) download(parity int, names ...string) error {
	for _, l := range r.shards {
		for i, p := range r.search.step.state {
			if len(names) > 0 && !slices.Contains(names, p.name) {
				continue
			}
			if err := l.state[parity][i].Download(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) free() {
	for _, l := range r.shards {
		for _, v := range slices.Concat(l.state[0], l.state[1], l.constants, l.others) {
			v.Close()
		}
	}
}

func (r *run) initialise() {
	r.iteration = 0
	for i, p := range r.search.step.state {
		v := r.state[0][i]
		switch p.name {
		case "x", "best":
			r.copyRows(v, r.problem.Start)
		case "criterion": // of the best images: none so far
			for k := range v {
				v[k] = float32(math.Inf(1))
			}
		default:
			clear(v)
		}
	}
}

func (r *run) copyConstants() {
	for i, t := range r.constants {
		r.copyRows(r.constantRows[i], t)
	}
}

// A smaller last batch is filled up with copies of its last row.
func (r *run) copyRows(dst []float32, src tensor.Tensor) {
	from, to := r.rows()
	n := copy(dst, src.Slice(from, to).Data)
	for n < len(dst) {
		n += copy(dst[n:], src.At(to-1).Data)
	}
}

// optimise takes the remaining steps and one more, which evaluates the last images.
func (r *run) optimise(ctx context.Context) error {
	o := r.search.options
	from, to := r.rows()
	for ; r.iteration <= o.Steps; r.iteration++ {
		for i, p := range r.search.step.schedule {
			r.scheduleValues[i][0] = o.scheduleAt(p.name, r.iteration)
		}
		parity := r.iteration % 2
		if err := r.runShards(ctx, parity); err != nil {
			return err
		}
		if r.iteration == 0 {
			if err := r.checkGradient(to - from); err != nil {
				return err
			}
		}
		if err := r.report(1 - parity); err != nil {
			return err
		}
		if r.iteration < o.Steps && time.Since(r.saved) > o.SaveEvery {
			r.iteration++ // the state is that before the next step
			err := r.save()
			r.iteration--
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) runShards(ctx context.Context, parity int) error {
	errs := make([]error, len(r.shards))
	run := func(k int) {
		errs[k] = r.search.session.Run(ctx, engine.Batch{Inputs: r.shards[k].in[parity], Outputs: r.shards[k].out[parity]})
	}
	var wait sync.WaitGroup
	for k := range r.shards[1:] {
		wait.Go(func() { run(k + 1) })
	}
	run(0)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) checkGradient(n int) error {
	for _, v := range r.measured[1][:n] {
		if v != 0 {
			return nil
		}
	}
	if r.batch > 0 {
		return nil
	}
	constants := r.constants
	if r.search.options.Ball != (Ball{}) {
		constants = constants[1:] // the centre of the ball that the search must not leave
	}
	return r.search.objective.checkGradient(r.measured[0][:n], constants)
}

// parity is the index of the copy of the state that was written last.
func (r *run) report(parity int) error {
	if r.problem.Progress == nil {
		return nil
	}
	if err := r.download(parity, "criterion"); err != nil {
		return err
	}
	from, to := r.rows()
	steps := int64(r.search.options.Steps + 1) // of each sample
	p := Progress{Done: int64(from)*steps + int64(r.iteration+1)*int64(to-from), Total: int64(r.samples()) * steps}
	finite := 0
	for _, v := range r.stateTensor("criterion", parity)[:to-from] {
		if v-v == 0 { // neither NaN nor infinite
			p.Loss += float64(v)
			finite++
		}
	}
	p.Loss /= float64(finite)
	r.problem.Progress(p)
	return nil
}

func (r *run) stateTensor(name string, parity int) []float32 {
	for i, p := range r.search.step.state {
		if p.name == name {
			return r.state[parity][i]
		}
	}
	return nil
}

// Once the loss or gradient norm is NaN or infinite, an image does not change any more. So the last
// step's values decide whether it is dropped.
func (r *run) storeBatch() error {
	from, to := r.rows()
	parity := (r.search.options.Steps + 1) % 2
	if err := r.download(parity, "best", "criterion"); err != nil {
		return err
	}
	copy(r.images.Slice(from, to).Data, r.stateTensor("best", parity))
	copy(r.loss[from:to], r.stateTensor("criterion", parity))
	for i := from; i < to; i++ {
		last := r.measured[0][i-from] + r.measured[1][i-from]
		r.dropped[i] = last-last != 0 // NaN or infinite
	}
	r.iteration = 0
	return nil
}

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
