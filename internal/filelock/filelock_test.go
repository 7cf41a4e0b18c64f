//go:build unix

package filelock

import (
	"path/filepath"
	"testing"
)

// TestLocks checks that TryExclusive reports a folder as free if and only if there is no lock on
// it. It then takes an exclusive lock, unless there is no such folder. Shared takes a shared lock.
func TestLocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := Shared(dir), Shared(dir)
	if a == nil || b == nil {
		t.Fatal("the file system of temporary files has no locks")
	}
	if _, free := TryExclusive(dir); free {
		t.Error("a folder with two shared locks is free")
	}
	a.Close()
	if _, free := TryExclusive(dir); free {
		t.Error("a folder with a shared lock is free")
	}
	b.Close()
	lock, free := TryExclusive(dir)
	if !free || lock == nil {
		t.Fatal("a folder without locks is not free")
	}
	defer lock.Close()
	if Shared(dir) != nil {
		t.Error("Shared takes a lock beside an exclusive one, want nil")
	}
	if lock, free := TryExclusive(filepath.Join(dir, "none")); !free || lock != nil {
		t.Errorf("a file that does not exist: lock %v, free %v", lock, free)
	}
}
