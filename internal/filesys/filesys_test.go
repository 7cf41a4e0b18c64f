package filesys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestObserve checks that an observer of the folder run is told of every change of it until stop is
// called, and of none in the folder runs, and that it can prevent a change: Remove.
func TestObserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen []string
	refused := errors.New("refused")
	stop, err := Observe(filepath.Join(dir, "run"), func(c Change, do func() error) error {
		name, _ := filepath.Rel(dir, c.Path)
		seen = append(seen, fmt.Sprintf("%v %s", c.Op, filepath.ToSlash(name)))
		if c.Op == OpRemove {
			return refused
		}
		return do()
	})
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	writeAndRename := func() error {
		f, err := Create(in("run/cells/a"), 0o666)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte("abc"))
		return errors.Join(err, f.Sync(), f.Close(), Rename(in("run/cells/a"), in("run/cells/b")))
	}
	if err := errors.Join(MkdirAll(in("run/cells"), 0o777), MkdirAll(in("runs"), 0o777), writeAndRename()); err != nil {
		t.Fatal(err)
	}
	SyncDir(in("run/cells"))
	if err := Remove(in("run/cells/b")); err != refused {
		t.Errorf("Remove returns the error %v, want %v", err, refused)
	}
	if got, err := os.ReadFile(in("run/cells/b")); err != nil || string(got) != "abc" {
		t.Errorf("the file holds %q, error %v; want abc", got, err)
	}
	if err := errors.Join(RemoveAll(in("run/cells")), RemoveAll(in("run/none"))); err != nil {
		t.Error(err)
	}
	stop()
	if err := MkdirAll(in("run/more"), 0o777); err != nil {
		t.Error(err)
	}
	want := []string{"mkdir run", "mkdir run/cells", "sync run", "create run/cells/a", "write run/cells/a", "sync run/cells/a",
		"rename run/cells/a", "sync run/cells", "remove run/cells/b", "remove all run/cells"}
	if !slices.Equal(seen, want) {
		t.Errorf("observed %q, want %q", seen, want)
	}
}

func TestMkdirAllBelowAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(path, "y"), 0o777); err == nil {
		t.Error("MkdirAll makes a folder below a file, want an error")
	}
}
