//go:build unix

package video

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNamedPipe checks that a named pipe in the place of a video, from which ffmpeg would read
// forever, is an error.
func TestNamedPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.mp4")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, filepath.Dir(pipe)} {
		if _, err := Open(t.Context(), Options{Paths: []string{path}}); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
