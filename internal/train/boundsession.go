package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A boundSession runs one graph, such as that of a training step. It keeps a buffer for each name
// of an input or output and each shape that occurred.
type boundSession struct {
	runtime *ort.Runtime
	session *ort.Session
	names   []string              // of the graph's inputs
	in      []*ort.Value          // values of the inputs, in the order of names
	owned   []*ort.Value          // values that close closes
	cache   map[string]*ort.Value // buffers, by name and shape
}

func (t *Trainer) newBoundSession(graph *onnx.Model) (*boundSession, error) {
	session, err := t.runtime.NewSession(graph, t.program.spec.Engine)
	if err != nil {
		return nil, err
	}
	names := session.Inputs()
	return &boundSession{runtime: t.runtime, session: session, names: names, in: make([]*ort.Value, len(names)), cache: map[string]*ort.Value{}}, nil
}

func (s *boundSession) close() error {
	for _, v := range s.owned {
		v.Close()
	}
	s.owned = nil
	return s.session.Close()
}

// bind sets the value of an input. It ignores a name that is not an input of the graph: a graph
// whose loss does not use the target has no input for the target.
func (s *boundSession) bind(name string, v *ort.Value) {
	if i := slices.Index(s.names, name); i >= 0 {
		s.in[i] = v
	}
}

// buffer returns the buffer for an input or output of a type and shape. A name always has the same
// type.
func (s *boundSession) buffer(name string, t onnx.Type, shape ...int) (*ort.Value, error) {
	key := fmt.Sprint(name, shape)
	v, ok := s.cache[key]
	if !ok {
		var err error
		if v, err = s.runtime.NewValue(t, shape...); err != nil {
			return nil, err
		}
		s.cache[key], s.owned = v, append(s.owned, v)
	}
	return v, nil
}

func (s *boundSession) setFloats(name string, x tensor.Tensor) error {
	v, err := s.buffer(name, onnx.Float, x.Shape...)
	if err != nil {
		return err
	}
	copy(ort.Data[float32](v), x.Data)
	s.bind(name, v)
	return nil
}

func (s *boundSession) setInts(name string, x []int) error {
	v, err := s.buffer(name, onnx.Int64, len(x))
	if err != nil {
		return err
	}
	for i, k := range x {
		ort.Data[int64](v)[i] = int64(k)
	}
	s.bind(name, v)
	return nil
}

func (s *boundSession) setScalar(name string, x float32) error {
	v, err := s.buffer(name, onnx.Float)
	if err != nil {
		return err
	}
	ort.Data[float32](v)[0] = x
	s.bind(name, v)
	return nil
}

// notUnrolled is the unrolledIndex of a graph of a single step. A graph of several steps (see
// program.unrolled) has inputs for each, and unrolledIndex is the number of a step in it, from 0.
const notUnrolled = -1

// feedScalarsAndMasks sets the optimiser's per-step scalars and the dropout masks of n samples.
// step is the number of the step, from 1, without those of epochs that were rolled back.
func (t *Trainer) feedScalarsAndMasks(s *boundSession, n, step, unrolledIndex int) error {
	for j, v := range t.program.spec.Optimiser.scalars(step, t.rate(step)) {
		if err := s.setScalar(inputName(unrolledIndex, scalarName(j)), float32(v)); err != nil {
			return err
		}
	}
	for _, m := range t.program.masks {
		if err := s.setFloats(inputName(unrolledIndex, m.name), m.draw(t.program.spec.Seed, step, n)); err != nil {
			return err
		}
	}
	return nil
}

// inputName returns the name of an input of the given step of an unrolled graph. With notUnrolled
// it returns name.
func inputName(unrolledIndex int, name string) string {
	if unrolledIndex == notUnrolled {
		return name
	}
	return unrolledName(unrolledIndex, name)
}

func (t *Trainer) feed(s *boundSession, b *Batch, unrolledIndex int) error {
	if len(b.Inputs) != len(t.program.inputs) {
		return fmt.Errorf("the batch has %d inputs and the model takes %d", len(b.Inputs), len(t.program.inputs))
	}
	n := b.len()
	if n == 0 {
		return errors.New("the batch has no samples")
	}
	for i, input := range t.program.inputs {
		x := b.Inputs[i]
		if x.Rank() == 0 || x.Shape[0] != n {
			return fmt.Errorf("input %q has shape %v in a batch of %d samples", input.Name, x.Shape, n)
		}
		if err := s.setFloats(inputName(unrolledIndex, input.Name), x); err != nil {
			return err
		}
	}
	if len(b.Tasks) != len(t.program.spec.Tasks) {
		return fmt.Errorf("the batch has targets for %d further tasks, and there are %d", len(b.Tasks), len(t.program.spec.Tasks))
	}
	for i, task := range t.program.spec.Tasks {
		err := t.feedTargets(s, b.Tasks[i], n, task.Loss, t.program.taskClasses[i], task.Output, inputName(unrolledIndex, targetNameOf(i+1)))
		if err != nil {
			return err
		}
	}
	return t.feedMain(s, b.Targets, n, inputName(unrolledIndex, targetName))
}

func (t *Trainer) feedMain(s *boundSession, targets Targets, n int, input string) error {
	return t.feedTargets(s, targets, n, t.program.spec.Loss, t.program.classes, string(t.program.output), input)
}

// feedTargets copies the targets of n samples for a loss on an output to an input. classes is the
// number of classes of the output, -1 if unknown.
func (t *Trainer) feedTargets(s *boundSession, targets Targets, n int, l Loss, classes int, output, input string) error {
	switch {
	case l.perPosition: // a class for each position of the output
		return t.feedMasks(s, targets.Masks, n, classes, input)
	case l.TargetType == onnx.Float:
		if target := targets.Target; target.Rank() == 0 || target.Shape[0] != n {
			return fmt.Errorf("the target has shape %v in a batch of %d samples", target.Shape, n)
		}
		return s.setFloats(input, targets.Target)
	case len(targets.Classes) != n:
		return fmt.Errorf("%d classes in a batch of %d samples", len(targets.Classes), n)
	}
	if err := checkClasses(targets.Classes, classes, output); err != nil {
		return err
	}
	return s.setInts(input, targets.Classes)
}
