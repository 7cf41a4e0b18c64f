package checkpoint_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/state"
)

// TestSaveAndLoad checks that Load returns nil before the first Save and the last saved state (that
// of unfinished work, such as a training) afterwards, and that a failed Save leaves it as it was.
func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]state.Checkpoint{
		"file":   checkpoint.File(filepath.Join(t.TempDir(), "state")),
		"memory": &checkpoint.Memory{},
	} {
		if f, err := c.Load(); f != nil || err != nil {
			t.Errorf("%s: before anything is saved, Load returns %v and the error %v, want nil for both", name, f, err)
		}
		for _, text := range []string{"first, which is longer", "second"} {
			if err := c.Save(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("broken")
		if err := c.Save(func(w io.Writer) error { io.WriteString(w, "thi"); return broken }); !errors.Is(err, broken) {
			t.Errorf("%s: a save that fails gives the error %v, want %v", name, err, broken)
		}
		f, err := c.Load()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || f.Close() != nil || string(got) != "second" {
			t.Errorf("%s: state %q, error %v; want the second", name, got, err)
		}
	}
}

// TestFileThatCannotBeOpened checks that Load returns an error and a nil reader for a file that
// exists but cannot be opened.
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
