package tempfolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNewRemovesFoldersOfKilledProcesses checks which folders New removes: those for the same
// purpose ("test") that have the file mark, if no process has locked it. New writes and locks that file in noether-PURPOSE-NUMBER, and returns a folder inside.
func TestNewRemovesFoldersOfKilledProcesses(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	used, removeUsed, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	monthAgo := time.Now().Add(-30 * 24 * time.Hour)
	// folder writes a file into a folder and returns the path of the folder.
	folder := func(name, file string, modified time.Time) string {
		path := filepath.Join(temporary, name, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	if err := os.Chtimes(filepath.Join(filepath.Dir(used), mark), time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	killed := folder("noether-test-1", mark, monthAgo)
	kept := []string{
		used,
		folder("noether-test-2", "results.csv", monthAgo),
		folder("noether-other-4", mark, monthAgo),
	}
	next, removeNext, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("the folder of a killed process is still there")
	}
	for _, dir := range append(kept, next) {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	removeUsed()
	removeNext()
	for _, dir := range []string{used, next} {
		if _, err := os.Stat(filepath.Dir(dir)); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

func TestNoFolderForTemporaryFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", missing)
	t.Setenv("TMP", missing)
	if _, _, err := New("test"); err == nil || !strings.HasPrefix(err.Error(), "making a temporary folder: ") {
		t.Errorf("error is %v", err)
	}
}

// TestBeside checks that Beside removes the folder of a killed process at once, and no other.
func TestBeside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	dir, remove, err := Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	other := path + ".part-1"
	killed := filepath.Join(filepath.Dir(path), ".out.part-1")
	for _, folder := range []string{killed, other} {
		if err := errors.Join(os.Mkdir(folder, 0o777), os.WriteFile(filepath.Join(folder, mark), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	monthAgo := time.Now().Add(-30 * 24 * time.Hour) // for systems without locks
	if err := os.Chtimes(filepath.Join(killed, mark), monthAgo, monthAgo); err != nil {
		t.Fatal(err)
	}
	_, removeNext, err := Beside(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("the folder of a killed process is still there")
	}
	for _, kept := range []string{dir, other} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	remove()
	removeNext()
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".out*")); err != nil || len(left) > 0 {
		t.Errorf("left %v: %v", left, err)
	}
}

// TestConcurrentFolders checks that no folder in use is removed, by callers at the same time.
func TestConcurrentFolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				dir, remove, err := Beside(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o666); err != nil {
					t.Error(err)
				}
				remove()
			}
		})
	}
	wait.Wait()
}
