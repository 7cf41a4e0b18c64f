package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// A Worker is the process that does the work. The nil Worker, of a process without a supervisor,
// may be used: it notes nothing, and no model has crashed it.
type Worker struct {
	mutex   sync.Mutex
	working []string          // models that the engine works on, one element for each call of Enter
	notes   *os.File          // memory that the parent reads after a crash
	crashed map[string]string // by model: how it crashed an earlier child
}

// Enter notes that the engine works on a model until leave is called.
func (w *Worker) Enter(model string) (leave func()) {
	if w == nil {
		return func() {}
	}
	w.change(func() { w.working = append(w.working, model) })
	return func() {
		w.change(func() {
			i := slices.Index(w.working, model)
			w.working = slices.Delete(w.working, i, i+1)
		})
	}
}

// Crashed returns how a model crashed an earlier child, or nil.
func (w *Worker) Crashed(model string) error {
	if w == nil || w.crashed[model] == "" {
		return nil
	}
	return fmt.Errorf("the engine crashed on it (%s): check it with onnx.checker, or export it again", w.crashed[model])
}

// change changes the list of models, and overwrites the one that the parent reads. An error, which
// memory does not give, leaves the earlier one.
func (w *Worker) change(f func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	f()
	if raw, err := json.Marshal(w.working); err == nil {
		_, _ = w.notes.WriteAt(append(raw, '\n'), 0)
	}
}

// readNotes returns the models that a child worked on at its end.
func readNotes(f *os.File) (working []string, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	err = json.NewDecoder(f).Decode(&working)
	if errors.Is(err, io.EOF) { // the child has noted nothing
		err = nil
	}
	return working, err
}
