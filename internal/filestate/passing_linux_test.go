package filestate

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSumsAfterErrorsThatPass checks the sum of a file that cannot be opened for a moment, since
// the process has too many open files. It is not parallel to other tests, which share the limit.
func TestSumsAfterErrorsThatPass(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	want, err := Sums(t.Context(), dir, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(filepath.Join(dir, "a")); err == nil {
		t.Error("a file can be opened beyond the limit", f.Close())
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	got, err := Sums(t.Context(), dir, []string{"a"})
	if err != nil || len(got) != 1 || got[0] != want[0] {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
