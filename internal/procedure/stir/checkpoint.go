package stir

import (
	"fmt"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// A jobCheckpoint is the checkpoint of a job, one run of the measure on two models. It holds the
// finished inversions, and the state of the current one.
type jobCheckpoint struct {
	state.Part
	done map[string]*invert.Result // by name of the inversion
}

const (
	stateKind     = "stir" // written at the start of a file, to recognise it
	stateVersion  = 2
	maxInversions = 1 << 16 // in one job
)

// loadCheckpoint returns the checkpoint of a job, with what an earlier run of the same job has
// saved for images of the given shape, n x c x h x w. from may be nil; then nothing is loaded or
// saved.
func loadCheckpoint(from state.Checkpoint, shape []int) (*jobCheckpoint, error) {
	k := &jobCheckpoint{done: map[string]*invert.Result{}}
	k.Part = state.Part{Store: from, Kind: stateKind, Version: stateVersion,
		Code: func(c *state.Codec) {
			if c.Matches(shape) { // else the set of readable images has changed
				state.Map(c, k.done, maxInversions, func(f **invert.Result) {
					codeResult(c, f,
						shape)
				})
			}
		}}
	return k, k.Restore()
}

func (k *jobCheckpoint) add(name string, f *invert.Result) error {
	k.done[name] = f
	return k.End()
}

func codeResult(c *state.Codec, f **invert.Result, shape []int) {
	if c.Reads() {
		*f = &invert.Result{Images: tensor.New(shape...), Loss: make([]float64, shape[0])}
	}
	c.Values((*f).Images.Data, (*f).Loss, &(*f).Dropped)
	for _, i := range (*f).Dropped { // its loss or gradient became NaN or infinite
		c.Check(i >= 0 && i < shape[0], "image %d of %d is listed as dropped", i, shape[0])
	}
}

const (
	sharedKind    = "stir: inversion" // as stateKind
	sharedVersion = 2
)

// loadShared reads an inversion that another job with the same reference model, the one whose
// representation the images shall have, has saved. It returns nil if there is none for images of
// the given shape.
func loadShared(from state.Checkpoint, shape []int) (found *invert.Result, err error) {
	err = state.Load(from, sharedKind, sharedVersion, func(c *state.Codec) {
		if c.Matches(shape) {
			codeResult(c, &found, shape)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("loading a shared inversion: %w", err)
	}
	return found, nil
}

func saveShared(to state.Checkpoint, f *invert.Result) error {
	return state.Save(to, sharedKind, sharedVersion, func(c *state.Codec) {
		c.Values(&f.Images.Shape)
		codeResult(c, &f, f.Images.Shape)
	})
}
