package stir

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/invert"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train"
)

// kept is the checkpoint of a job: the inversions that are done, and the checkpoint of the one in hand.
type kept struct {
	to    train.Checkpoint
	shape []int                    // of the images
	done  map[string]*invert.Found // by the names of inversions
	now   []byte
}

const (
	keptKind    = "stir"
	keptVersion = 1
	mostKept    = 1 << 16 // inversions of one job
)

// readKept reads what an earlier run of the same job has saved.
func readKept(from train.Checkpoint, shape []int) (*kept, error) {
	k := &kept{to: from, shape: shape, done: map[string]*invert.Found{}}
	if from == nil {
		return k, nil
	}
	return k, state.Load(from, keptKind, keptVersion, func(r *state.Reader) bool {
		if !slices.Equal(r.Ints(), shape) {
			return false // of other pictures: some could not be read then, or cannot now
		}
		for range min(r.Int(), mostKept) {
			name := r.String()
			k.done[name] = readFound(r, shape)
		}
		k.now = r.Raw()
		return true
	})
}

// add keeps what an inversion has found.
func (k *kept) add(name string, f *invert.Found) error {
	k.done[name] = f
	return k.Save(nothing)
}

// Load is the state of the inversion in hand.
func (k *kept) Load() (io.ReadCloser, error) {
	if len(k.now) == 0 {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(k.now)), nil
}

// Save replaces the state of the inversion in hand.
func (k *kept) Save(now func(io.Writer) error) error {
	k.now = nil // it has been taken up
	if k.to == nil {
		return nil
	}
	return k.to.Save(func(to io.Writer) error {
		w := state.Stream(to, keptKind, keptVersion)
		w.Ints(k.shape)
		w.Int(len(k.done))
		for _, name := range slices.Sorted(maps.Keys(k.done)) {
			w.String(name)
			writeFound(w, k.done[name])
		}
		if err := w.Nested(now); err != nil {
			return err
		}
		return w.Close()
	})
}

// nothing is the state where no inversion is in hand.
func nothing(io.Writer) error { return nil }

// readFound reads what an inversion of images of that shape has found.
func readFound(r *state.Reader, shape []int) *invert.Found {
	f := &invert.Found{Images: tensor.New(shape...), Loss: make([]float64, shape[0])}
	r.Float32sInto(f.Images.Data)
	r.FloatsInto(f.Loss)
	for i, v := range f.Loss {
		if v != v {
			f.Dropped = append(f.Dropped, i)
		}
	}
	return f
}

func writeFound(w *state.Writer, f *invert.Found) {
	w.Float32s(f.Images.Data)
	w.Floats(f.Loss)
}

const (
	sharedKind    = "stir: inversion"
	sharedVersion = 1
)

// loadShared is an inversion that a job with another second model has saved, nil if there is none.
func loadShared(from train.Checkpoint, shape []int) (found *invert.Found, err error) {
	err = state.Load(from, sharedKind, sharedVersion, func(r *state.Reader) bool {
		if !slices.Equal(r.Ints(), shape) {
			return false
		}
		found = readFound(r, shape)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("a shared inversion: %w", err)
	}
	return found, nil
}

func saveShared(to train.Checkpoint, f *invert.Found) error {
	return to.Save(func(to io.Writer) error {
		w := state.Stream(to, sharedKind, sharedVersion)
		w.Ints(f.Images.Shape)
		writeFound(w, f)
		return w.Close()
	})
}
