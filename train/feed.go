package train

import (
	"errors"
	"fmt"

	"github.com/noether-ml/noether/onnx"
)

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
