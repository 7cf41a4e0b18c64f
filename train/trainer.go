package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A Trainer holds a network in training. One goroutine at a time uses it.
type Trainer struct {
	program *program
	runtime *ort.Runtime
	total   int     // steps in all, for the schedule
	done    int     // steps so far
	undone  int     // and steps that were taken back
	scale   float64 // of all rates: epochs that were taken back have made it smaller

	state [2][]*ort.Value // the slots of the program, two of each; state[0] is what holds
	one   *engine         // a step
	many  *engine         // Together of them; nil where that is 1
	loss  *engine         // the loss alone
}

// New prepares training.
func New(rt *ort.Runtime, spec Spec) (*Trainer, error) {
	t, err := newTrainer(rt, spec)
	if err != nil {
		return nil, fmt.Errorf("preparing to train: %w", err)
	}
	return t, nil
}

func newTrainer(rt *ort.Runtime, spec Spec) (*Trainer, error) {
	switch {
	case spec.Model == nil:
		return nil, errors.New("there is no model")
	case spec.Loss.write == nil:
		return nil, errors.New("there is no loss")
	case spec.Optimiser == nil:
		return nil, errors.New("there is no optimiser")
	case spec.Clip < 0 || math.IsNaN(spec.Clip):
		return nil, fmt.Errorf("gradients cannot be clipped at %g", spec.Clip)
	}
	if err := spec.Optimiser.check(); err != nil {
		return nil, err
	}
	if spec.Schedule == nil {
		spec.Schedule = Constant
	}
	p, err := newProgram(spec)
	if err != nil {
		return nil, err
	}
	t := &Trainer{program: p, runtime: rt, scale: 1}
	if err := t.open(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trainer) open() error {
	step, err := t.program.step()
	if err != nil {
		return err
	}
	if t.one, err = t.newEngine(step); err != nil {
		return err
	}
	if k := t.program.spec.Together; k > 1 {
		unrolled, err := t.program.unrolled(step, k)
		if err != nil {
			return err
		}
		if t.many, err = t.newEngine(unrolled); err != nil {
			return err
		}
	}
	evaluation, err := t.program.evaluation()
	if err != nil {
		return err
	}
	if t.loss, err = t.newEngine(evaluation); err != nil {
		return err
	}
	for i := range t.state {
		for _, s := range t.program.slots() {
			v, err := t.runtime.NewValue(onnx.Float, s.shape...)
			if err != nil {
				return err
			}
			t.state[i] = append(t.state[i], v)
		}
	}
	return t.setParameters(func(name string) (tensor.Tensor, error) { return t.program.spec.Model.Tensor(name) })
}

// Restart puts the trainer where New would with a model that has other weights and is the Spec's otherwise. It takes a fraction of the
// time, since the graphs stay.
func (t *Trainer) Restart(m *onnx.Model) error {
	if err := t.setParameters(m.Tensor); err != nil {
		return fmt.Errorf("starting training again: %w", err)
	}
	for i := len(t.program.weights()); i < len(t.state[0]); i++ {
		clear(ort.Data[float32](t.state[0][i]))
	}
	t.done, t.undone, t.total, t.scale = 0, 0, 0, 1
	return nil
}

func (t *Trainer) setParameters(value func(name string) (tensor.Tensor, error)) error {
	for i, s := range t.program.weights() {
		w, err := value(s.name)
		if err != nil {
			return err
		}
		if !slices.Equal(w.Shape, s.shape) {
			return fmt.Errorf("the weights %q have the shape %v, not %v", s.name, s.shape, w.Shape)
		}
		copy(ort.Data[float32](t.state[0][i]), w.Data)
	}
	return nil
}

// Close frees what the engine holds.
func (t *Trainer) Close() error {
	var errs []error
	for _, e := range []*engine{t.one, t.many, t.loss} {
		if e != nil {
			errs = append(errs, e.close())
		}
	}
	for _, side := range t.state {
		for _, v := range side {
			errs = append(errs, v.Close())
		}
	}
	t.one, t.many, t.loss, t.state = nil, nil, nil, [2][]*ort.Value{}
	return errors.Join(errs...)
}

// Done is the number of steps so far.
func (t *Trainer) Done() int { return t.done }

// Plan tells the schedule how many steps there will be in all.
func (t *Trainer) Plan(total int) { t.total = total }

// Step takes one step and returns the mean loss of the batch before it. After an error the weights are what they were.
func (t *Trainer) Step(ctx context.Context, b Batch) (loss float64, err error) {
	losses, err := t.Steps(ctx, []Batch{b})
	if err != nil {
		return 0, err
	}
	return losses[0], nil
}

// Steps takes a step for each batch, several in one run of the engine where the Spec says so and the batches are of
// one size.
func (t *Trainer) Steps(ctx context.Context, batches []Batch) (losses []float64, err error) {
	marks, err := t.steps(ctx, batches)
	for _, m := range marks {
		losses = append(losses, m.Loss)
	}
	return losses, err
}

// steps is Steps with all that is known of each.
func (t *Trainer) steps(ctx context.Context, batches []Batch) (marks []Marks, err error) {
	for len(batches) > 0 {
		e, n := t.one, 1
		if k := t.program.spec.Together; t.many != nil && len(batches) >= k && sameSize(batches[:k]) {
			e, n = t.many, k
		}
		found, err := t.run(ctx, e, batches[:n])
		if err != nil {
			return marks, fmt.Errorf("training, step %d: %w", t.done+1, err)
		}
		marks, batches = append(marks, found...), batches[n:]
	}
	return marks, nil
}

func sameSize(batches []Batch) bool {
	return !slices.ContainsFunc(batches, func(b Batch) bool { return b.len() != batches[0].len() })
}

func (t *Trainer) run(ctx context.Context, e *engine, batches []Batch) ([]Marks, error) {
	for i := range batches {
		step := -1
		if e == t.many {
			step = i
		}
		if err := t.feed(e, &batches[i], step); err != nil {
			return nil, err
		}
		if err := t.feedStep(e, batches[i].len(), t.done+i+1, step); err != nil {
			return nil, err
		}
	}
	for i, s := range t.program.slots() {
		e.bind(s.name, t.state[0][i])
	}
	width := t.program.marks()
	out, err := e.value(marksName, onnx.Float, len(batches)*width)
	if err != nil {
		return nil, err
	}
	if err := e.session.Run(ctx, e.in, append([]*ort.Value{out}, t.state[1]...)); err != nil {
		return nil, err
	}
	marks := make([]Marks, len(batches))
	for i := range marks {
		m := &marks[i]
		values := ort.Data[float32](out)[i*width:]
		m.Loss, m.Accuracy = float64(values[0]), math.NaN()
		if width > 1 {
			m.Accuracy = float64(values[1])
		}
		if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
			return nil, fmt.Errorf("the loss is %g: lower the learning rate, or clip gradients", m.Loss)
		}
	}
	t.state[0], t.state[1] = t.state[1], t.state[0]
	t.done += len(batches)
	return marks, nil
}

// rate is the learning rate of a step.
func (t *Trainer) rate(number int) float64 {
	return t.scale * t.program.spec.Optimiser.base() * t.program.spec.Schedule(number+t.undone, t.total)
}

// finite finds weights that a step has spoilt although its loss, which is of before, was a number.
func (t *Trainer) finite() error {
	for i, s := range t.program.slots() {
		if v := sumOfNothing(ort.Data[float32](t.state[0][i])); v != 0 {
			return fmt.Errorf("%q has become NaN or infinite: lower the learning rate, or clip gradients", s.name)
		}
	}
	return nil
}

// sumOfNothing is 0, or NaN where a number is NaN or infinite. Four sums are under way at a time, as each waits for its last term.
func sumOfNothing(list []float32) float32 {
	var a, b, c, d float32
	for ; len(list) >= 4; list = list[4:] {
		a += list[0] - list[0]
		b += list[1] - list[1]
		c += list[2] - list[2]
		d += list[3] - list[3]
	}
	for _, v := range list {
		a += v - v
	}
	return a + b + c + d
}

// Weights are what the parameters have become and, in training mode, the running statistics; copied.
func (t *Trainer) Weights() map[string]tensor.Tensor {
	out := map[string]tensor.Tensor{}
	for i, s := range t.program.weights() {
		w := tensor.New(s.shape...)
		copy(w.Data, ort.Data[float32](t.state[0][i]))
		out[s.name] = w
	}
	return out
}

// SetWeights gives what Weights returns other values, all or some; what the optimiser remembers stays.
func (t *Trainer) SetWeights(values map[string]tensor.Tensor) error {
	return t.setParameters(func(name string) (tensor.Tensor, error) {
		if w, ok := values[name]; ok {
			return w, nil
		}
		return t.Weights()[name], nil
	})
}

// Model is the network as trained so far.
func (t *Trainer) Model() (*onnx.Model, error) {
	return rewrite.WithWeights(t.program.spec.Model, t.Weights())
}
