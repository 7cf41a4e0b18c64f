package results

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStaleFilesUseFileSystemClock checks that the age of a temporary file is measured by the clock
// of the file system, which sets the times of files, whatever this machine's clock says. After an
// hour a temporary file counts as stale: left by a run that was killed.
func TestStaleFilesUseFileSystemClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := Create(dir, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	server := time.Now().Add(-30 * time.Hour) // the file server's clock
	// Temporary files have names of this form; the digits are random.
	for name, age := range map[string]time.Duration{"states/.recent.log.0123456789abcdef.tmp": 10 * time.Minute, "states/.stale.log.0123456789abcdef.tmp": 2 * time.Hour, "cells/old.log": 200 * time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, server.Add(-age), server.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range f.staleFiles(server) {
		os.Remove(f.Path(file))
	}
	for name, kept := range map[string]bool{"states/.recent.log.0123456789abcdef.tmp": true, "states/.stale.log.0123456789abcdef.tmp": false, "cells/old.log": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != kept {
			t.Errorf("%s: error %v; it exists: %t, want %t", name, err, err == nil, kept)
		}
	}
}

// TimeWrite times writing a file of so many bytes in the folder states.
func TestTimeWriteLeavesNoFile(t *testing.T) {
	t.Parallel()
	f, err := Create(t.TempDir(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	took, err := f.TimeWrite(1 << 20)
	if elapsed := time.Since(start); err != nil || took <= 0 || took > elapsed {
		t.Errorf("writing took %v, error %v; want a positive time, at most that of the call, %v", took, err, elapsed)
	}
	if left, err := os.ReadDir(f.Path("states")); err != nil || len(left) > 0 {
		t.Errorf("files %v, error %v; want none", left, err)
	}
	if err := os.RemoveAll(f.Path("states")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.TimeWrite(1); err == nil {
		t.Error("TimeWrite returns no error without the folder states")
	}
}
