package invert

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// The name in the header of a checkpoint that tells what kind of file it is, and the version of its
// format.
const (
	stateKind    = "invert"
	stateVersion = 2
)

// save saves the results of the finished batches, and the state of the current batch before step
// r.iteration, if the problem has a checkpoint. The problem holds the images to invert and those to
// start from. Of the two copies of the state a step reads one and writes the other.
func (r *run) save() error {
	r.saved = time.Now()
	if r.problem.Checkpoint == nil { // nothing to download from the device for
		return nil
	}
	if err := r.download(r.iteration % 2); err != nil {
		return err
	}
	if err := state.Save(r.problem.Checkpoint, stateKind, stateVersion, r.Code); err != nil {
		return fmt.Errorf("saving the checkpoint: %w", err)
	}
	return nil
}

func (r *run) restore() (bool, error) {
	r.restored = false
	err := state.Load(r.problem.Checkpoint, stateKind, stateVersion, r.Code)
	return r.restored, err
}

func (r *run) Code(c *state.Codec) {
	if !c.Matches(r.fingerprint()) || !c.Matches(r.search.batch()) {
		return
	}
	batch, step := r.batch, r.iteration // index of the current batch, and step
	c.Values(&batch, &step)
	if c.Reads() && (batch < 0 || batch >= r.batches() || step < 0 ||
		step > r.search.options.Steps) {
		c.Fail(fmt.Errorf("batch %d, step %d: there are %d batches of %d steps", batch, step,
			r.batches(), r.search.options.Steps))
		return
	}
	done := min(batch*r.search.batch(), r.samples())
	c.Values(r.images.Slice(0, done).Data, r.loss[:done])
	for i := range done { // samples whose loss or gradient was not finite
		c.Values(&r.dropped[i])
	}
	for i := range r.search.step.state {
		c.Values(r.state[step%2][i])
	}
	if c.Reads() {
		r.batch, r.iteration, r.restored = batch, step, true
	}
}

// fingerprint hashes what the results depend on, except the batch size, which write writes.
func (r *run) fingerprint() string {
	h := sha256.New()
	o := r.search.options
	fmt.Fprintln(h, o.Optimiser, o.Steps, o.StepSize, o.Ball, describe(r.search.objective), r.problem.Labels)
	for _, m := range r.search.objective.models() {
		fmt.Fprintln(h, m.SHA256())
	}
	for _, t := range append([]tensor.Tensor{r.problem.Images, r.problem.Start}, r.constants...) {
		fmt.Fprintln(h, t.Shape)
		_ = binary.Write(h, binary.LittleEndian, t.Data) // writing to a hash does not fail
	}
	return hex.EncodeToString(h.Sum(nil))
}

// describe returns a text that differs for different objectives of the same models.
func describe(objective Objective) string {
	switch o := objective.(type) {
	case Distances:
		text := "distances"
		for _, t := range o {
			text += fmt.Sprintf(" %q %v %v", t.Layer.Name, t.Weight, t.Relative)
		}
		return text
	case Misclassification:
		return fmt.Sprint("misclassification ", o.Outputs == nil, o.Outputs)
	}
	return fmt.Sprintf("%T", objective)
}
