package stir

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// A jobCheckpoint is the checkpoint of a job, one run of the measure on two models. It holds the
// finished inversions, and the state of the current one. A jobCheckpoint implements
// state.Checkpoint for the search of the current inversion.
type jobCheckpoint struct {
	store   state.Checkpoint
	shape   []int                     // of the images: n x c x h x w
	done    map[string]*invert.Result // by name of the inversion
	current []byte                    // loaded state of the current search
}

const (
	stateKind     = "stir" // written at the start of a file, to recognise it
	stateVersion  = 2
	maxInversions = 1 << 16 // in one job
)

// loadCheckpoint returns the checkpoint of a job, with what an earlier run of the same job has
// saved for images of the given shape. from may be nil; then nothing is loaded or saved.
func loadCheckpoint(from state.Checkpoint, shape []int) (*jobCheckpoint, error) {
	k := &jobCheckpoint{store: from, shape: shape, done: map[string]*invert.Result{}}
	if from == nil {
		return k, nil
	}
	return k, state.Load(from, stateKind, stateVersion, func(r *state.Reader) bool {
		if !slices.Equal(r.Ints(), shape) {
			return false // the set of readable images has changed: the state is ignored
		}
		for range min(r.Int(), maxInversions) {
			name := r.String()
			k.done[name] = readResult(r, shape)
		}
		k.current = r.Raw()
		return true
	})
}

// add stores the result of an inversion.
func (k *jobCheckpoint) add(name string, f *invert.Result) error {
	k.done[name] = f
	return k.Save(noState)
}

// Load returns the state of the current search, or nil if none was saved.
func (k *jobCheckpoint) Load() (io.ReadCloser, error) {
	if len(k.current) == 0 {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(k.current)), nil
}

// Save replaces the state of the current search, and writes it with all finished inversions.
func (k *jobCheckpoint) Save(write func(io.Writer) error) error {
	k.current = nil // the search has read it before it saves
	if k.store == nil {
		return nil
	}
	return state.Save(k.store, stateKind, stateVersion, func(w *state.Writer) error {
		w.Ints(k.shape)
		w.Int(len(k.done))
		for _, name := range slices.Sorted(maps.Keys(k.done)) {
			w.String(name)
			writeResult(w, k.done[name])
		}
		return w.Nested(write)
	})
}

// noState writes an empty state, for the time between two searches.
func noState(io.Writer) error { return nil }

// r.Fail makes the loading of the state return an error.
func readResult(r *state.Reader, shape []int) *invert.Result {
	f := &invert.Result{Images: tensor.New(shape...), Loss: make([]float64, shape[0])}
	r.Float32sInto(f.Images.Data)
	r.FloatsInto(f.Loss)
	for _, i := range r.Ints() {
		if i < 0 || i >= shape[0] {
			r.Fail(fmt.Errorf("image %d of %d is listed as dropped", i, shape[0]))
			return f
		}
		f.Dropped = append(f.Dropped, i) // its loss or gradient became NaN or infinite
	}
	return f
}

func writeResult(w *state.Writer, f *invert.Result) {
	w.Float32s(f.Images.Data)
	w.Floats(f.Loss)
	w.Ints(f.Dropped)
}

const (
	sharedKind    = "stir: inversion" // as stateKind
	sharedVersion = 2
)

// loadShared reads an inversion that another job with the same reference model, the one whose
// representation the images shall have, has saved. It returns nil if there is none for images of
// the given shape.
func loadShared(from state.Checkpoint, shape []int) (found *invert.Result, err error) {
	err = state.Load(from, sharedKind, sharedVersion, func(r *state.Reader) bool {
		if !slices.Equal(r.Ints(), shape) {
			return false
		}
		found = readResult(r, shape)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("loading a shared inversion: %w", err)
	}
	return found, nil
}

// saveShared saves an inversion for other jobs with the same reference model.
func saveShared(to state.Checkpoint, f *invert.Result) error {
	return state.Save(to, sharedKind, sharedVersion, func(w *state.Writer) error {
		w.Ints(f.Images.Shape)
		writeResult(w, f)
		return nil
	})
}
