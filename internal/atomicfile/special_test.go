//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDevice checks that Write writes to a device instead of replacing it by a file. Writing to
// /dev/full gives ENOSPC, the error of a full disk.
func TestDevice(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	if err := Write("/dev/full", []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want %v", err, syscall.ENOSPC)
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Fatalf("the device was replaced: %v, %v", info, err)
	}
	if err := Write("/dev/null", []byte("x")); err != nil {
		t.Error(err)
	}
}

func TestFIFO(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, _ := os.ReadFile(path)
		read <- string(data)
	}()
	if err := Write(path, []byte("scores")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "scores" {
		t.Errorf("read %q, want %q", got, "scores")
	}
}

func TestSymbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "to", "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Dir(target), 0o777), os.WriteFile(target, []byte("old"), 0o666), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	checkContent(t, target, "new") // and that nothing else is in its folder
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
}
