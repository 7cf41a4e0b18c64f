package probe

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/train"
)

// kept is the checkpoint of a job: what came of the probes that are done, and the training of those in hand.
type kept struct {
	mutex sync.Mutex
	to    train.Checkpoint
	job   string // what the job depends on besides its cell: another job's checkpoint is of no use
	done  map[string]outcome
	now   map[string][]byte
	saved time.Time
	dirty bool
}

const (
	keptKind    = "probe: job"
	keptVersion = 1
	mostKept    = 1 << 20 // probes of one job
	every       = time.Minute
	everyState  = 10 * time.Second // of one probe
)

// readKept reads what an earlier run of the same job has saved.
func readKept(from train.Checkpoint, job string) (*kept, error) {
	k := &kept{to: from, job: job, done: map[string]outcome{}, now: map[string][]byte{}, saved: time.Now()}
	if from == nil {
		return k, nil
	}
	return k, state.Load(from, keptKind, keptVersion, func(r *state.Reader) bool {
		if r.String() != job {
			return false // of other samples: some could not be read then, or cannot now
		}
		for range min(r.Int(), mostKept) {
			name := r.String()
			found := make(outcome, min(r.Int(), 1<<16))
			for i := range found {
				found[i] = r.Floats()
			}
			k.done[name] = found
		}
		for range min(r.Int(), mostKept) {
			name := r.String()
			k.now[name] = r.Raw()
		}
		return true
	})
}

func (k *kept) outcome(name string) outcome {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.done[name]
}

// add keeps what came of a probe.
func (k *kept) add(name string, found outcome) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.done[name], k.dirty = found, true
	delete(k.now, name)
	return k.saveIfDue()
}

// flush saves what has not been saved.
func (k *kept) flush() error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !k.dirty {
		return nil
	}
	return k.save()
}

func (k *kept) saveIfDue() error {
	if time.Since(k.saved) < every {
		return nil
	}
	return k.save()
}

func (k *kept) save() error {
	k.saved, k.dirty = time.Now(), false
	if k.to == nil {
		return nil
	}
	return k.to.Save(k.write)
}

func (k *kept) write(to io.Writer) error {
	w := state.Stream(to, keptKind, keptVersion)
	w.String(k.job)
	w.Int(len(k.done))
	for _, name := range slices.Sorted(maps.Keys(k.done)) {
		w.String(name)
		w.Int(len(k.done[name]))
		for _, list := range k.done[name] {
			w.Floats(list)
		}
	}
	w.Int(len(k.now))
	for _, name := range slices.Sorted(maps.Keys(k.now)) {
		w.String(name)
		if err := w.Nested(func(to io.Writer) error {
			_, err := to.Write(k.now[name])
			return err
		}); err != nil {
			return err
		}
	}
	return w.Close()
}

// of is where the training of one probe is kept.
func (k *kept) of(ctx context.Context, name string) *keptOne {
	return &keptOne{k, ctx, name, time.Now()}
}

// keptOne is a train.Checkpoint. A state is many times what an epoch of a few steps computes, so it takes one now and then, and the
// last before the work is stopped.
type keptOne struct {
	*kept
	ctx  context.Context
	name string
	last time.Time
}

// Due implements train.Sparing.
func (k *keptOne) Due() bool { return k.ctx.Err() != nil || time.Since(k.last) >= everyState }

// Load implements train.Checkpoint.
func (k *keptOne) Load() (io.ReadCloser, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now, ok := k.now[k.name]
	if !ok {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(now)), nil
}

// Save implements train.Checkpoint.
func (k *keptOne) Save(write func(io.Writer) error) error {
	var now bytes.Buffer
	if err := write(&now); err != nil {
		return err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.now[k.name], k.dirty, k.last = now.Bytes(), true, time.Now()
	return k.saveIfDue()
}
