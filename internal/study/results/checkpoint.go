package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
)

// A checkpoint belongs to one cell or is shared by several.
type checkpoint struct {
	writer *Writer
	cell   *plan.Cell
	key    string
}

// Load implements state.Checkpoint. It returns nil, nil if there is no usable checkpoint.
func (k *checkpoint) Load() (io.ReadCloser, error) {
	if err := k.writer.refresh(); err != nil {
		return nil, err
	}
	it, state, err := k.writer.Folder.stateOf(k.key)
	if err == nil {
		_, err = io.Copy(io.Discard, it.Part(statePart))
	}
	var bad *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &bad):
		return nil, err
	case err != nil:
		k.writer.Options.Warnf("%v; what it held is computed again", err)
		return nil, nil
	}
	k.cell.Data.Unreadable.Add(state.Unreadable...)
	return io.NopCloser(it.Part(statePart)), nil
}

// Save implements state.Checkpoint.
func (k *checkpoint) Save(state func(io.Writer) error) error {
	body, err := json.Marshal(taskState{Unreadable: k.cell.Data.Unreadable.Names()})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", k.key, err)
	}
	return SaveError(k.writer.Folder.states.Put(store.Record{Key: k.key, Body: body, Parts: []store.Part{{Name: statePart, Write: state}}}))
}

// Checkpoint returns the checkpoint of a procedure's cell.
func (r *Writer) Checkpoint(c *plan.Cell) state.Checkpoint {
	return &checkpoint{r, c, taskKey(c, plan.Shard{}, "")}
}

// SharedCheckpoint returns the checkpoint shared by all cells whose plan.SharedName for the key is
// equal: cells that differ only in the second of two compared models.
func (r *Writer) SharedCheckpoint(c *plan.Cell, key string) state.Checkpoint {
	return &checkpoint{r, c, sharedPrefix + r.Plan.SharedName(c, key)}
}
