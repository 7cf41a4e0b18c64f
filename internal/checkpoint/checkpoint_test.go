package checkpoint_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/measure/procedure"
)

// What was saved last is loaded; what fails half way replaces nothing; and before anything is saved there is nothing.
func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]procedure.Checkpoint{
		"file":   checkpoint.File(filepath.Join(t.TempDir(), "state")),
		"memory": &checkpoint.Memory{},
	} {
		if f, err := c.Load(); f != nil || err != nil {
			t.Errorf("%s: before anything is saved: %v, %v", name, f, err)
		}
		for _, text := range []string{"first, which is longer", "second"} {
			if err := c.Save(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("broken")
		if err := c.Save(func(w io.Writer) error { io.WriteString(w, "thi"); return broken }); !errors.Is(err, broken) {
			t.Errorf("%s: a save that fails gives %v", name, err)
		}
		f, err := c.Load()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || f.Close() != nil || string(got) != "second" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A file that is there and cannot be opened is an error and no nil that is not nil.
func TestFileThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	if err := checkpoint.File(path).Save(func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if f, err := checkpoint.File(filepath.Join(path, "below")).Load(); f != nil || err == nil {
		t.Errorf("a file below a file: %v, %v", f, err)
	}
}
