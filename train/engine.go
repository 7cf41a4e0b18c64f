package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// An engine executes one graph. It keeps a buffer for each input and shape.
type engine struct {
	runtime *ort.Runtime
	session *ort.Session
	names   []string
	in      []*ort.Value
	owned   []*ort.Value // to be closed
	cache   map[string]*ort.Value
}

// newEngine returns an engine for a graph.
func (t *Trainer) newEngine(graph *onnx.Model) (*engine, error) {
	session, err := t.runtime.NewSession(graph, t.program.spec.Engine)
	if err != nil {
		return nil, err
	}
	names := session.Inputs()
	return &engine{runtime: t.runtime, session: session, names: names, in: make([]*ort.Value, len(names)), cache: map[string]*ort.Value{}}, nil
}

func (e *engine) close() error {
	for _, v := range e.owned {
		v.Close()
	}
	e.owned = nil
	return e.session.Close()
}

// bind sets the value of an input. It ignores names that the graph does not have, such as the
// target of a loss that does not depend on it.
func (e *engine) bind(name string, v *ort.Value) {
	if i := slices.Index(e.names, name); i >= 0 {
		e.in[i] = v
	}
}

// buffer returns the buffer for an input of a shape.
func (e *engine) buffer(name string, t onnx.Type, shape ...int) (*ort.Value, error) {
	key := fmt.Sprint(name, shape)
	v, ok := e.cache[key]
	if !ok {
		var err error
		if v, err = e.runtime.NewValue(t, shape...); err != nil {
			return nil, err
		}
		e.cache[key], e.owned = v, append(e.owned, v)
	}
	return v, nil
}

// setFloats copies a tensor to an input.
func (e *engine) setFloats(name string, x tensor.Tensor) error {
	v, err := e.buffer(name, onnx.Float, x.Shape...)
	if err != nil {
		return err
	}
	copy(ort.Data[float32](v), x.Data)
	e.bind(name, v)
	return nil
}

// setInts copies integers to an input.
func (e *engine) setInts(name string, x []int) error {
	v, err := e.buffer(name, onnx.Int64, len(x))
	if err != nil {
		return err
	}
	for i, k := range x {
		ort.Data[int64](v)[i] = int64(k)
	}
	e.bind(name, v)
	return nil
}

// setScalar sets a scalar input.
func (e *engine) setScalar(name string, x float32) error {
	v, err := e.buffer(name, onnx.Float)
	if err != nil {
		return err
	}
	ort.Data[float32](v)[0] = x
	e.bind(name, v)
	return nil
}

// feedStep sets the rates and the dropout masks of one step for n samples. number counts steps from
// 1; step is the position in an unrolled graph, or -1.
func (t *Trainer) feedStep(e *engine, n, number, step int) error {
	for j, v := range t.program.spec.Optimiser.rates(number, t.rate(number)) {
		if err := e.setScalar(inputName(step, rateName(j)), float32(v)); err != nil {
			return err
		}
	}
	for _, m := range t.program.masks {
		if err := e.setFloats(inputName(step, m.name), m.draw(t.program.spec.Seed, number, n)); err != nil {
			return err
		}
	}
	return nil
}

// inputName returns the name of an input in step step of an unrolled graph, or the name itself for
// -1.
func inputName(step int, name string) string {
	if step < 0 {
		return name
	}
	return unrolledName(step, name)
}

// feed copies a batch to the inputs.
func (t *Trainer) feed(e *engine, b *Batch, step int) error {
	if len(b.Inputs) != len(t.program.inputs) {
		return fmt.Errorf("a batch has %d inputs and the model takes %d", len(b.Inputs), len(t.program.inputs))
	}
	n := b.len()
	if n == 0 {
		return errors.New("a batch has no samples")
	}
	for i, port := range t.program.inputs {
		x := b.Inputs[i]
		if x.Rank() == 0 || x.Shape[0] != n {
			return fmt.Errorf("input %q has shape %v in a batch of %d samples", port.Name, x.Shape, n)
		}
		if err := e.setFloats(inputName(step, port.Name), x); err != nil {
			return err
		}
	}
	if t.program.spec.Loss.Target == onnx.Float {
		if b.Target.Rank() == 0 || b.Target.Shape[0] != n {
			return fmt.Errorf("the target has shape %v in a batch of %d samples", b.Target.Shape, n)
		}
		return e.setFloats(inputName(step, targetName), b.Target)
	}
	if len(b.Classes) != n {
		return fmt.Errorf("%d classes in a batch of %d samples", len(b.Classes), n)
	}
	if err := t.program.checkClasses(b.Classes); err != nil {
		return err
	}
	return e.setInts(inputName(step, targetName), b.Classes)
}
