package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A boundSession runs one graph. It has a buffer for each input name and shape.
type boundSession struct {
	runtime *ort.Runtime
	session *ort.Session
	names   []string
	in      []*ort.Value
	owned   []*ort.Value // to be closed
	cache   map[string]*ort.Value
}

// newBoundSession returns a session for a graph, without values bound to its inputs.
func (t *Trainer) newBoundSession(graph *onnx.Model) (*boundSession, error) {
	session, err := t.runtime.NewSession(graph, t.program.spec.Engine)
	if err != nil {
		return nil, err
	}
	names := session.Inputs()
	return &boundSession{runtime: t.runtime, session: session, names: names, in: make([]*ort.Value, len(names)), cache: map[string]*ort.Value{}}, nil
}

func (e *boundSession) close() error {
	for _, v := range e.owned {
		v.Close()
	}
	e.owned = nil
	return e.session.Close()
}

// bind sets the value of an input. It ignores names that are not inputs of the graph: a loss that
// does not use its target leaves a graph without the input for it.
func (e *boundSession) bind(name string, v *ort.Value) {
	if i := slices.Index(e.names, name); i >= 0 {
		e.in[i] = v
	}
}

// buffer returns the buffer for an input of a shape.
func (e *boundSession) buffer(name string, t onnx.Type, shape ...int) (*ort.Value, error) {
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
func (e *boundSession) setFloats(name string, x tensor.Tensor) error {
	v, err := e.buffer(name, onnx.Float, x.Shape...)
	if err != nil {
		return err
	}
	copy(ort.Data[float32](v), x.Data)
	e.bind(name, v)
	return nil
}

// setInts copies integers to an input.
func (e *boundSession) setInts(name string, x []int) error {
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
func (e *boundSession) setScalar(name string, x float32) error {
	v, err := e.buffer(name, onnx.Float)
	if err != nil {
		return err
	}
	ort.Data[float32](v)[0] = x
	e.bind(name, v)
	return nil
}

// feedScalarsAndMasks sets the optimiser's per-step scalars (such as the learning rate) and the
// dropout masks of n samples. iteration counts steps from 1; unrolledIndex is the step's position in
// an unrolled graph, or -1.
func (t *Trainer) feedScalarsAndMasks(e *boundSession, n, iteration, unrolledIndex int) error {
	for j, v := range t.program.spec.Optimiser.rates(iteration, t.rate(iteration)) {
		if err := e.setScalar(inputName(unrolledIndex, rateName(j)), float32(v)); err != nil {
			return err
		}
	}
	for _, m := range t.program.masks {
		if err := e.setFloats(inputName(unrolledIndex, m.name), m.draw(t.program.spec.Seed, iteration, n)); err != nil {
			return err
		}
	}
	return nil
}

// inputName returns the name of an input of the given step of an unrolled graph. With -1 it returns
// name.
func inputName(unrolledIndex int, name string) string {
	if unrolledIndex < 0 {
		return name
	}
	return unrolledName(unrolledIndex, name)
}

// feed copies a batch to the inputs.
func (t *Trainer) feed(e *boundSession, b *Batch, unrolledIndex int) error {
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
		if err := e.setFloats(inputName(unrolledIndex, port.Name), x); err != nil {
			return err
		}
	}
	if t.program.spec.Loss.TargetType == onnx.Float {
		if b.Target.Rank() == 0 || b.Target.Shape[0] != n {
			return fmt.Errorf("the target has shape %v in a batch of %d samples", b.Target.Shape, n)
		}
		return e.setFloats(inputName(unrolledIndex, targetName), b.Target)
	}
	if len(b.Classes) != n {
		return fmt.Errorf("%d classes in a batch of %d samples", len(b.Classes), n)
	}
	if err := t.program.checkClasses(b.Classes); err != nil {
		return err
	}
	return e.setInts(inputName(unrolledIndex, targetName), b.Classes)
}
