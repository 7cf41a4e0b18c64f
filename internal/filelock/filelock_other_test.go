//go:build !unix

package filelock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFreeIfNotModified checks that a file that was not modified for a week counts as free.
func TestFreeIfNotModified(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	free := func(path string) bool {
		lock, free := TryExclusive(path)
		if lock != nil {
			t.Errorf("TryExclusive(%q) returns a lock, want none", path)
		}
		return free
	}
	if !free(path) {
		t.Error("a file that does not exist is not free")
	}
	if free("a\x00b") {
		t.Error("a path that cannot be examined is free")
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if free(path) {
		t.Error("a new file is free")
	}
	old := time.Now().Add(-2 * idle)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if !free(path) {
		t.Error("an old file is not free")
	}
}
