package tempfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNewRemovesFoldersOfKilledProcesses checks which folders New removes: those for the same
// purpose ("test") that have the file mark, if it is older than a minute and no process has locked
// it. New writes and locks that file in noether-PURPOSE-NUMBER, and returns a folder inside.
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
		folder("noether-test-3", mark, time.Now()),
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
