package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/filesys"
)

// checkContent checks that a file has the given content and is alone in its folder.
func checkContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want the file alone", entries, err)
	}
}

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data.json")
	for _, want := range []string{"one", "", strings.Repeat("long", 1<<16)} {
		if err := Write(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		checkContent(t, path, want)
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data.json")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	diskFull := errors.New("no space left on device")
	err := WriteFunc(path, func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
		return diskFull
	})
	if !errors.Is(err, diskFull) || !strings.Contains(err.Error(), "writing "+path) {
		t.Errorf("error %v, want %v with the path", err, diskFull)
	}
	checkContent(t, path, "old")
}

func TestNoSuchFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "x")
	if err := Write(path, nil); !errors.Is(err, os.ErrNotExist) || err.Error() != "writing "+path+": no such file or directory" {
		t.Errorf("error %v, want %v with the path", err, os.ErrNotExist)
	}
}

func TestNameWithoutFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("data.json", []byte("x")); err != nil {
		t.Fatal(err)
	}
	checkContent(t, "data.json", "x")
}

// TestPermissions checks that a file has the permissions that the user's umask gives any new file,
// not those of a private temporary one.
func TestPermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, atomic := filepath.Join(dir, "plain"), filepath.Join(dir, "atomic")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(atomic, nil); err != nil {
		t.Fatal(err)
	}
	p, err := os.Stat(plain)
	if err != nil {
		t.Fatal(err)
	}
	a, err := os.Stat(atomic)
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode() != a.Mode() {
		t.Errorf("mode %v, want %v", a.Mode(), p.Mode())
	}
}

func TestPathIsAFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, nil); err == nil || err.Error() != "writing "+path+": it is a folder" {
		t.Errorf("error %v, want one that says that %s is a folder", err, path)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSyncs checks that a file is synced to disk before it is renamed to its path, and its folder
// after that.
func TestSyncs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ops []filesys.Op
	stop, err := filesys.Observe(dir, func(c filesys.Change, do func() error) error {
		ops = append(ops, c.Op)
		return do()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	want := []filesys.Op{filesys.OpCreate, filesys.OpWrite, filesys.OpSync, filesys.OpRename, filesys.OpSync}
	if err := Write(filepath.Join(dir, "file"), []byte("1")); err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v (%v), want %v", ops, err, want)
	}
}
