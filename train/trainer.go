package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A Spec says what is trained, and how.
type Spec struct {
	// Model is the network: float32 inputs with the batch first, and weights as initializers, whose values are where training
	// starts.
	Model *onnx.Model
	// Output is the tensor that the loss is of; empty: the model's only output.
	Output string
	// Parameters are the names of the weights to train; none: all that the output depends on and that have axes, but the
	// running statistics of BatchNormalization.
	Parameters []string
	// TrainingMode is what PyTorch's train() is: BatchNormalization normalises by the batch, its running statistics follow with
	// the momentum of the node, and Dropout drops. Without it the one normalises by the statistics that the model has, as
	// one wants it where a trained network is tuned in small batches, and the other does nothing.
	TrainingMode bool
	Seed         uint64 // of what Dropout drops
	Loss         Loss
	Optimiser    Optimiser
	// Penalty, if any, writes the nodes of a number that is added to a batch's mean loss in a step, such as a constraint on what
	// the batch makes units do; tensors of the model have the names that they have there. Losses are without it.
	Penalty func(b *onnx.Builder) onnx.Value
	// Schedule scales the optimiser's rate; nil: Constant.
	Schedule Schedule
	// Clip is the largest norm that the gradients of all parameters may have together; larger ones are scaled down. 0: none.
	Clip float64
	// Together is how many steps are one run of the engine; 0: 1. Small networks gain by several, at the price of a larger
	// graph. What is computed is the same.
	Together int
	// Engine says how the graphs are executed.
	Engine ort.Options

	plain bool // standard operators alone, as devices other than the processor have them
}

// A Batch is some samples: what the model's inputs are fed, in order, each b x ..., and what the loss compares with.
type Batch struct {
	Inputs  []tensor.Tensor
	Target  tensor.Tensor // where the loss compares with numbers
	Classes []int         // where it compares with classes
}

// len is the number of samples.
func (b *Batch) len() int {
	if len(b.Inputs) == 0 {
		return 0
	}
	return b.Inputs[0].Shape[0]
}

// Marks are how well a network does.
type Marks struct {
	Loss     float64 // the mean over samples
	Accuracy float64 // the share of samples whose class is the network's first; NaN where the loss knows no classes
}

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

// feedStep gives a step, the number'th of all, its rates and masks for n samples.
func (t *Trainer) feedStep(e *engine, n, number, step int) error {
	for j, v := range t.program.spec.Optimiser.rates(number, t.rate(number)) {
		if err := e.number(stepName(step, rateName(j)), float32(v)); err != nil {
			return err
		}
	}
	for _, m := range t.program.masks {
		if err := e.floats(stepName(step, m.name), m.draw(t.program.spec.Seed, number, n)); err != nil {
			return err
		}
	}
	return nil
}

func stepName(step int, name string) string {
	if step < 0 {
		return name
	}
	return at(step, name)
}

// feed copies a batch to where the engine reads it.
func (t *Trainer) feed(e *engine, b *Batch, step int) error {
	if len(b.Inputs) != len(t.program.inputs) {
		return fmt.Errorf("a batch has %d inputs, and the model takes %d", len(b.Inputs), len(t.program.inputs))
	}
	n := b.len()
	if n == 0 {
		return errors.New("a batch has no samples")
	}
	for i, port := range t.program.inputs {
		x := b.Inputs[i]
		if x.Rank() == 0 || x.Shape[0] != n {
			return fmt.Errorf("input %q has the shape %v in a batch of %d", port.Name, x.Shape, n)
		}
		if err := e.floats(stepName(step, port.Name), x); err != nil {
			return err
		}
	}
	if t.program.spec.Loss.Target == onnx.Float {
		if b.Target.Rank() == 0 || b.Target.Shape[0] != n {
			return fmt.Errorf("the target has the shape %v in a batch of %d", b.Target.Shape, n)
		}
		return e.floats(stepName(step, targetName), b.Target)
	}
	if len(b.Classes) != n {
		return fmt.Errorf("%d classes in a batch of %d", len(b.Classes), n)
	}
	if err := t.program.checkClasses(b.Classes); err != nil {
		return err
	}
	return e.ints(stepName(step, targetName), b.Classes)
}

// Losses are the losses of the samples of a batch, without training.
func (t *Trainer) Losses(ctx context.Context, b Batch) ([]float64, error) {
	seen, err := t.assess(ctx, b)
	return seen.losses, err
}

// An assessment is what a network makes of a batch.
type assessment struct {
	losses  []float64 // of the samples
	hits    []float64 // 1 where the class of a sample is the network's first, else 0; nil where targets are no classes
	penalty float64   // of the Spec
}

func (t *Trainer) assess(ctx context.Context, b Batch) (seen assessment, err error) {
	if err := t.feed(t.loss, &b, -1); err != nil {
		return seen, fmt.Errorf("evaluating: %w", err)
	}
	for i, s := range t.program.weights() {
		t.loss.bind(s.name, t.state[0][i])
	}
	into := map[string]*ort.Value{}
	var outputs []*ort.Value
	for _, name := range t.loss.session.Outputs() {
		n := b.len()
		if name == penaltyName {
			n = 1
		}
		if into[name], err = t.loss.value(name, onnx.Float, n); err != nil {
			return seen, err
		}
		outputs = append(outputs, into[name])
	}
	if err := t.loss.session.Run(ctx, t.loss.in, outputs); err != nil {
		return seen, fmt.Errorf("evaluating: %w", err)
	}
	seen.losses = doubles(ort.Data[float32](into[lossName]))
	if v := into[hitsName]; v != nil {
		seen.hits = doubles(ort.Data[float32](v))
	}
	if v := into[penaltyName]; v != nil {
		seen.penalty = float64(ort.Data[float32](v)[0])
	}
	return seen, nil
}

func doubles(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
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
func (t *Trainer) Model() (*onnx.Model, error) { return t.program.spec.Model.WithWeights(t.Weights()) }
