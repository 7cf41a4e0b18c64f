package invert

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A run is one search in progress: batch after batch, and within a batch step after step.
type run struct {
	s        *Search
	p        Problem
	targets  []tensor.Tensor // n x ...
	pictures tensor.Tensor   // the best of the batches that are done
	loss     []float32       // of those

	batch, at int // the batch in hand and its step
	saved     time.Time

	// What is bound: tensors of the state twice, read from one place and written to the other in turn.
	state              [2][]*ort.Value
	rates, fixed, read []*ort.Value
	in, out            [2][]*ort.Value
}

func newRun(s *Search, p Problem, targets []tensor.Tensor) *run {
	return &run{s: s, p: p, targets: targets, saved: time.Now(),
		pictures: tensor.New(p.Pictures.Shape...), loss: make([]float32, p.Pictures.Shape[0])}
}

func (r *run) samples() int { return r.p.Pictures.Shape[0] }

func (r *run) batches() int { return (r.samples() + r.s.n - 1) / r.s.n }

// rows are the samples of the batch in hand; the last one stands in for those that are missing to a full batch.
func (r *run) rows() (from, to int) { return r.batch * r.s.n, min((r.batch+1)*r.s.n, r.samples()) }

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
			r.begin()
		}
		resumed = false
		r.fill()
		if err := r.descend(ctx); err != nil {
			return errors.Join(err, r.save())
		}
		r.keep()
	}
	return nil
}

// bind makes the tensors that the engine reads and writes.
func (r *run) bind() error {
	var err error
	value := func(shape []int) *ort.Value {
		if err != nil {
			return nil
		}
		var v *ort.Value
		v, err = r.s.model.Runtime().NewValue(onnx.Float, shape...)
		return v
	}
	step := r.s.step
	for _, p := range step.state {
		r.state[0] = append(r.state[0], value(p.shape))
		r.state[1] = append(r.state[1], value(p.shape))
	}
	for _, p := range step.rates {
		r.rates = append(r.rates, value(p.shape))
	}
	for _, p := range step.targets {
		r.fixed = append(r.fixed, value(p.shape))
	}
	r.read = []*ort.Value{value([]int{r.s.n, 1}), value([]int{r.s.n, 1})} // loss and slope
	byName := map[string]*ort.Value{}
	for i, p := range step.rates {
		byName[p.name] = r.rates[i]
	}
	for i, p := range step.targets {
		byName[p.name] = r.fixed[i]
	}
	for side := range 2 {
		for i, p := range step.state {
			byName[p.name] = r.state[side][i]
		}
		for _, p := range r.s.inputs {
			r.in[side] = append(r.in[side], byName[p.name])
		}
		r.out[side] = append(append(r.out[side], r.state[1-side]...), r.read...)
	}
	return err
}

func (r *run) free() {
	for _, list := range [][]*ort.Value{r.state[0], r.state[1], r.rates, r.fixed, r.read} {
		for _, v := range list {
			v.Close()
		}
	}
}

// begin puts the batch in hand at its start.
func (r *run) begin() {
	r.at = 0
	for i, p := range r.s.step.state {
		v := ort.Data[float32](r.state[0][i])
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

// fill gives the engine the targets of the batch in hand.
func (r *run) fill() {
	for i, t := range r.targets {
		r.copyRows(ort.Data[float32](r.fixed[i]), t)
	}
}

// copyRows copies the rows of the batch in hand, and the last of them into what is left.
func (r *run) copyRows(dst []float32, src tensor.Tensor) {
	from, to := r.rows()
	n := copy(dst, src.Slice(from, to).Data)
	for n < len(dst) {
		n += copy(dst[n:], src.At(to-1).Data)
	}
}

// descend takes the steps that are left, and looks at the picture that the last one led to.
func (r *run) descend(ctx context.Context) error {
	o := r.s.options
	from, to := r.rows()
	for ; r.at <= o.Steps; r.at++ {
		for i, p := range r.s.step.rates {
			ort.Data[float32](r.rates[i])[0] = o.rateAt(p.name, r.at)
		}
		side := r.at % 2
		if err := r.s.session.Run(ctx, r.in[side], r.out[side]); err != nil {
			return err
		}
		if r.at == 0 {
			if err := r.checkSlope(to - from); err != nil {
				return err
			}
		}
		r.report(1 - side)
		if r.at < o.Steps && time.Since(r.saved) > o.SaveEvery {
			r.at++
			err := r.save()
			r.at--
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSlope complains where not one of the first samples has a gradient.
func (r *run) checkSlope(n int) error {
	for _, v := range ort.Data[float32](r.read[1])[:n] {
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
	return r.s.objective.idle(ort.Data[float32](r.read[0])[:n], targets)
}

// report tells how far the search has come; side is where the engine wrote.
func (r *run) report(side int) {
	if r.p.Progress == nil {
		return
	}
	from, to := r.rows()
	each := int64(r.s.options.Steps + 1)
	p := Progress{Done: int64(from)*each + int64(r.at+1)*int64(to-from), Total: int64(r.samples()) * each}
	finite := 0
	for _, v := range ort.Data[float32](r.tensorOf("key", side))[:to-from] {
		if v-v == 0 {
			p.Loss += float64(v)
			finite++
		}
	}
	p.Loss /= float64(finite)
	r.p.Progress(p)
}

// tensorOf is a tensor of the state.
func (r *run) tensorOf(name string, side int) *ort.Value {
	for i, p := range r.s.step.state {
		if p.name == name {
			return r.state[side][i]
		}
	}
	return nil
}

// keep takes over what a batch has found. The last loss and slope tell the samples that ran into NaN or infinity: there
// they stay as they are.
func (r *run) keep() {
	from, to := r.rows()
	side := (r.s.options.Steps + 1) % 2
	copy(r.pictures.Slice(from, to).Data, ort.Data[float32](r.tensorOf("best", side)))
	copy(r.loss[from:to], ort.Data[float32](r.tensorOf("key", side)))
	for i := from; i < to; i++ {
		last := ort.Data[float32](r.read[0])[i-from] + ort.Data[float32](r.read[1])[i-from]
		if last-last != 0 {
			r.loss[i] = float32(math.NaN())
		}
	}
	r.at = 0
}

func (r *run) found() *Found {
	f := &Found{Pictures: r.pictures, Loss: make([]float64, len(r.loss))}
	for i, v := range r.loss {
		f.Loss[i] = float64(v)
		if v != v {
			f.Dropped = append(f.Dropped, i)
		}
	}
	return f
}
