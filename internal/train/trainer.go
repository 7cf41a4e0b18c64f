package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A Trainer holds a network in training. A Trainer must not be used by several goroutines at a
// time.
type Trainer struct {
	program    *program
	runtime    *ort.Runtime
	total      int     // planned steps, for the schedule
	done       int     // steps so far, without those that were rolled back
	rolledBack int     // steps that were rolled back
	rateScale  float64 // factor of all learning rates, reduced by rollbacks

	// Two buffers for each state tensor; state[0] holds the current values.
	state      [2][]*ort.Value
	single     *boundSession // of one step
	multi      *boundSession // of Spec.StepsPerRun steps; nil if that is 0 or 1
	evaluation *boundSession // of the losses alone
	// Of a step towards adversarial examples; nil without Spec.Adversarial.
	search *boundSession
	clean  *boundSession // of the log-probabilities of unperturbed x, for TRADES; else nil

	// In tests: where searches for adversarial examples start.
	fixedStart func(x tensor.Tensor) tensor.Tensor
}

// New prepares training: it builds the graphs, opens their sessions and copies the weights. Close
// the trainer after use.
func New(rt *ort.Runtime, spec Spec) (*Trainer, error) {
	t, err := newTrainer(rt, spec)
	if err != nil {
		return nil, fmt.Errorf("preparing to train: %w", err)
	}
	return t, nil
}

// On is New for graphs that a procedure.Compiler runs, with a number of threads; 0: that of the
// compiler. Only ONNX Runtime trains graphs.
func On(graphs any, threads int, spec Spec) (*Trainer, error) {
	c, ok := graphs.(ort.Compiler)
	if !ok {
		return nil, fmt.Errorf("preparing to train: %T cannot train graphs, only ONNX Runtime can", graphs)
	}
	spec.Engine = c.Options
	if threads > 0 {
		spec.Engine.Threads = threads
	}
	return New(c.Runtime, spec)
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
	case !(spec.Mixup >= 0) || math.IsInf(spec.Mixup, 0):
		return nil, fmt.Errorf("the parameter of mixup is %g: it must be at least 0 and finite", spec.Mixup)
	case spec.Mixup > 0 && spec.Adversarial != nil:
		return nil, errors.New("mixup and adversarial training cannot be combined")
	}
	if err := spec.Optimiser.check(); err != nil {
		return nil, err
	}
	if err := spec.checkTasks(); err != nil {
		return nil, err
	}
	if spec.Adversarial != nil {
		if err := spec.Adversarial.check(spec); err != nil {
			return nil, err
		}
	}
	if spec.Schedule == nil {
		spec.Schedule = Constant
	}
	p, err := engine.Within(rt.RunLimit(), func() (*program, error) { return newProgram(spec) })
	if err != nil {
		return nil, err
	}
	t := &Trainer{program: p, runtime: rt, rateScale: 1}
	if err := t.open(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trainer) open() error {
	step, err := engine.Within(t.runtime.RunLimit(), t.program.step)
	if err != nil {
		return err
	}
	if t.single, err = t.newBoundSession(step); err != nil {
		return err
	}
	if k := t.program.spec.StepsPerRun; k > 1 {
		unrolled, err := t.program.unrolled(step, k) // the graph of a step, repeated k times
		if err != nil {
			return err
		}
		if t.multi, err = t.newBoundSession(unrolled); err != nil {
			return err
		}
	}
	evaluation, err := t.program.evaluation()
	if err != nil {
		return err
	}
	if t.evaluation, err = t.newBoundSession(evaluation); err != nil {
		return err
	}
	if t.program.spec.Adversarial != nil {
		if err := t.openSearch(); err != nil {
			return err
		}
	}
	for i := range t.state {
		for _, s := range t.program.stateTensors() {
			v, err := t.runtime.NewValue(onnx.Float, s.shape...)
			if err != nil {
				return err
			}
			t.state[i] = append(t.state[i], v)
		}
		// Place gives the state memory on the device.
		if err := t.single.session.Place(t.state[i]...); err != nil {
			return err
		}
	}
	return t.setParameters(func(name string) (tensor.Tensor, error) { return t.program.spec.Model.Tensor(name) })
}

// Restart resets the trainer to the state after New, with the weights of another model of the same
// architecture. It is faster than New, since the graphs and sessions stay.
func (t *Trainer) Restart(m *onnx.Model) error {
	if err := t.setParameters(m.Tensor); err != nil {
		return fmt.Errorf("restarting training: %w", err)
	}
	// The optimiser's state follows the weights.
	for i := len(t.program.weights()); i < len(t.state[0]); i++ {
		clear(ort.Data[float32](t.state[0][i]))
	}
	if err := t.upload(); err != nil {
		return fmt.Errorf("restarting training: %w", err)
	}
	t.done, t.rolledBack, t.total, t.rateScale = 0, 0, 0, 1
	return nil
}

// upload copies the current state to the device. Call it after every change of the state's
// elements.
func (t *Trainer) upload() error {
	for _, v := range t.state[0] {
		if err := v.Upload(); err != nil {
			return err
		}
	}
	return nil
}

// download copies the current state from the device. Call it after the last of several steps,
// before the elements are read.
func (t *Trainer) download() error {
	for _, v := range t.state[0] {
		if err := v.Download(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trainer) setParameters(value func(name string) (tensor.Tensor, error)) error {
	for i, s := range t.program.weights() {
		w, err := value(s.name)
		if err != nil {
			return err
		}
		if !slices.Equal(w.Shape, s.shape) {
			return fmt.Errorf("the weights %q have shape %v, not %v", s.name, s.shape, w.Shape)
		}
		copy(ort.Data[float32](t.state[0][i]), w.Data)
	}
	return t.upload()
}

// Close releases the resources of ONNX Runtime.
func (t *Trainer) Close() error {
	var errs []error
	for _, buffers := range t.state { // before the session on whose device they are
		for _, v := range buffers {
			errs = append(errs, v.Close())
		}
	}
	for _, e := range []*boundSession{t.single, t.multi, t.evaluation, t.search, t.clean} {
		if e != nil {
			errs = append(errs, e.close())
		}
	}
	t.single, t.multi, t.evaluation, t.search, t.clean, t.state = nil, nil, nil, nil, nil, [2][]*ort.Value{}
	return errors.Join(errs...)
}

// Step takes one step and returns the mean loss of the batch, Spec.Penalty included, with the
// weights before the step. After an error of the step the weights are unchanged.
func (t *Trainer) Step(ctx context.Context, b Batch) (loss float64, err error) {
	metrics, err := t.steps(ctx, []Batch{b})
	if err == nil {
		err = t.download()
	}
	if err != nil {
		return 0, err
	}
	return metrics[0].Loss, nil
}

// steps takes a step for each batch and returns their metrics. Batches of one size are grouped into
// runs of Spec.StepsPerRun steps. The state stays on the device: see download.
func (t *Trainer) steps(ctx context.Context, batches []Batch) (metrics []Metrics, err error) {
	for len(batches) > 0 {
		e, n := t.single, 1
		if k := t.program.spec.StepsPerRun; t.multi != nil && len(batches) >= k && sameSize(batches[:k]) {
			e, n = t.multi, k
		}
		results, err := t.run(ctx, e, batches[:n])
		if err != nil {
			return metrics, fmt.Errorf("training, step %d: %w", t.done+1, err)
		}
		metrics, batches = append(metrics, results...), batches[n:]
	}
	return metrics, nil
}

func sameSize(batches []Batch) bool {
	return !slices.ContainsFunc(batches, func(b Batch) bool { return b.len() != batches[0].len() })
}

// run takes the steps of one run of a session: one step, or those of an unrolled graph.
func (t *Trainer) run(ctx context.Context, e *boundSession, batches []Batch) ([]Metrics, error) {
	for i := range batches {
		unrolledIndex := notUnrolled
		if e == t.multi {
			unrolledIndex = i
		}
		if err := t.feed(e, &batches[i], unrolledIndex); err != nil {
			return nil, err
		}
		if t.program.spec.Mixup > 0 {
			if err := t.mix(e, &batches[i], t.done+i+1+t.rolledBack, unrolledIndex); err != nil {
				return nil, err
			}
		}
		if t.search != nil {
			if err := t.bindAdversarial(ctx, &batches[i]); err != nil {
				return nil, err
			}
		}
		if err := t.feedScalarsAndMasks(e, batches[i].len(), t.done+i+1, unrolledIndex); err != nil {
			return nil, err
		}
	}
	for i, s := range t.program.stateTensors() {
		e.bind(s.name, t.state[0][i])
	}
	width := t.program.metricCount()
	out, err := e.buffer(metricsName, onnx.Float, len(batches)*width)
	if err != nil {
		return nil, err
	}
	if err := e.session.Run(ctx, e.in, append([]*ort.Value{out}, t.state[1]...)); err != nil {
		return nil, err
	}
	metrics := make([]Metrics, len(batches))
	for i := range metrics {
		m := &metrics[i]
		values := ort.Data[float32](out)[i*width:]
		m.Loss, m.Accuracy, m.MeanIoU = float64(values[0]), math.NaN(), math.NaN()
		if width > 1 {
			m.Accuracy = float64(values[1])
		}
		if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
			return nil, fmt.Errorf("the loss is %g: lower the learning rate, or clip gradients", m.Loss)
		}
	}
	t.state[0], t.state[1] = t.state[1], t.state[0]
	t.done += len(batches)
	return metrics, nil
}

func (t *Trainer) rate(number int) float64 {
	return t.rateScale * t.program.spec.Optimiser.baseRate() * t.program.spec.Schedule(number+t.rolledBack, t.total)
}

// checkFinite returns an error if a step has produced NaN or infinity. The loss of that step,
// computed before the update, may still be finite.
func (t *Trainer) checkFinite() error {
	for i, s := range t.program.stateTensors() {
		if (tensor.Tensor{Data: ort.Data[float32](t.state[0][i])}).FirstNonFinite() >= 0 {
			return fmt.Errorf("%q has become NaN or infinite: lower the learning rate, or clip gradients", s.name)
		}
	}
	return nil
}

// Weights returns copies of the parameters and, with Spec.TrainingMode, of the running statistics
// of BatchNormalization.
func (t *Trainer) Weights() map[string]tensor.Tensor {
	out := map[string]tensor.Tensor{}
	for i, s := range t.program.weights() {
		w := tensor.New(s.shape...)
		copy(w.Data, ort.Data[float32](t.state[0][i]))
		out[s.name] = w
	}
	return out
}

// SetWeights sets some or all of the tensors that Weights returns. The optimiser's state stays.
func (t *Trainer) SetWeights(values map[string]tensor.Tensor) error {
	return t.setParameters(func(name string) (tensor.Tensor, error) {
		if w, ok := values[name]; ok {
			return w, nil
		}
		return t.Weights()[name], nil
	})
}

// Model returns the network with its current weights.
func (t *Trainer) Model() (*onnx.Model, error) {
	return rewrite.WithWeights(t.program.spec.Model, t.Weights())
}
