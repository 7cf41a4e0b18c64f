package probe

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/state"
)

type jobCheckpoint struct {
	mutex sync.Mutex
	store state.Checkpoint // where the checkpoint is saved; may be nil
	// job states the numbers of samples and layers. A checkpoint with other numbers is ignored.
	job      string
	done     map[string]outcome // of finished probes, by name
	training map[string][]byte  // training states of the others, by name
	saved    time.Time          // time of the last save
	dirty    bool               // whether there are changes since the last save
}

const (
	stateKind     = "probe: job"     // names the format of a saved checkpoint
	stateVersion  = 1                // of that format
	maxProbes     = 1 << 20          // in one job
	saveInterval  = time.Minute      // between two saves of the checkpoint
	stateInterval = 10 * time.Second // between two states of one probe
)

// loadCheckpoint returns the checkpoint of a job, with the outcomes and states that an earlier run
// of the same job has saved.
func loadCheckpoint(from state.Checkpoint, job string) (*jobCheckpoint, error) {
	k := &jobCheckpoint{store: from, job: job, done: map[string]outcome{}, training: map[string][]byte{}, saved: time.Now()}
	return k, state.Load(from, stateKind, stateVersion, k.code)
}

func (k *jobCheckpoint) code(c *state.Codec) {
	if !c.Matches(k.job) { // the set of readable samples has changed
		return
	}
	state.Map(c, k.done, maxProbes, func(found *outcome) {
		n := len(*found)
		if c.Len(&n, 1<<16); c.Reads() {
			*found = make(outcome, n)
		}
		for i := range *found {
			c.Values(&(*found)[i])
		}
	})
	state.Map(c, k.training, maxProbes, func(raw *[]byte) { c.Values(raw) })
}

func (k *jobCheckpoint) outcome(name string) outcome {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.done[name]
}

func (k *jobCheckpoint) finish(name string, found outcome) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.done[name], k.dirty = found, true
	delete(k.training, name)
	return k.saveIfDue()
}

func (k *jobCheckpoint) flush() error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !k.dirty {
		return nil
	}
	return k.save()
}

func (k *jobCheckpoint) saveIfDue() error {
	if time.Since(k.saved) < saveInterval {
		return nil
	}
	return k.save()
}

func (k *jobCheckpoint) save() error {
	k.saved, k.dirty = time.Now(), false
	return state.Save(k.store, stateKind, stateVersion, k.code)
}

func (k *jobCheckpoint) probe(ctx context.Context, name string) *probeCheckpoint {
	return &probeCheckpoint{k, ctx, name, time.Now()}
}

// A probeCheckpoint is the state.Checkpoint of one probe. Saving a state takes much longer than a
// short epoch, so a save is due after stateInterval, or when the context has ended.
type probeCheckpoint struct {
	*jobCheckpoint
	ctx  context.Context
	name string    // of the probe
	last time.Time // when the last state of the probe was saved
}

func (k *probeCheckpoint) Due() bool {
	return k.ctx.Err() != nil || time.Since(k.last) >= stateInterval
}

func (k *probeCheckpoint) Load() (io.ReadCloser, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	saved, ok := k.training[k.name]
	if !ok {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(saved)), nil
}

func (k *probeCheckpoint) Save(write func(io.Writer) error) error {
	var buffer bytes.Buffer
	if err := write(&buffer); err != nil {
		return err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.training[k.name], k.dirty, k.last = buffer.Bytes(), true, time.Now()
	return k.saveIfDue()
}
