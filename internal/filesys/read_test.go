//go:build unix

package filesys

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpen checks that a named pipe, whose opening would wait forever, and a socket are errors,
// also by a link, and that files and folders are opened.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	listener, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, err := range []error{syscall.Mkfifo(in("pipe"), 0o600), os.Symlink("pipe", in("link")), os.WriteFile(in("file"), []byte("text"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"pipe": "a named pipe", "link": "a named pipe", "socket": "a socket", "none": "no such file"} {
		if _, err := Open(in(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opening %s: error %v, want one with %q", name, err, want)
		}
		if _, err := ReadFile(in(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %s: error %v, want one with %q", name, err, want)
		}
	}
	if text, err := ReadFile(in("file")); string(text) != "text" || err != nil {
		t.Errorf("the file holds %q, error %v", text, err)
	}
	folder, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	folder.Close()
}
