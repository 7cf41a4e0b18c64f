package filesys

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWithFile checks that WithFile, and ReadSmall for files of less than 8 KiB, read whole files.
func TestWithFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	// Sizes around that of a new buffer, 1<<13 bytes, and one above maxReadBuffer, the largest
	// buffer that is kept for reuse.
	for _, size := range []int{0, 1, 1<<13 - 1, 1 << 13, 1<<13 + 1, 3 * maxReadBuffer, 5} {
		want := bytes.Repeat([]byte{byte(size), 7}, size)[:size]
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		err := WithFile(path, func(content []byte) error {
			if !bytes.Equal(content, want) {
				t.Errorf("WithFile reads a file of %d bytes wrongly, as %d bytes", size, len(content))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		small, ok := ReadSmall(path)
		if ok != (size < 1<<13) || ok && !bytes.Equal(small, want) {
			t.Errorf("ReadSmall of a file of %d bytes: %v, %d bytes", size, ok, len(small))
		}
	}
	stop := errors.New("stop")
	if err := WithFile(path, func([]byte) error { return stop }); err != stop {
		t.Errorf("error %v, want that of the function", err)
	}
	var failed *fs.PathError
	if err := WithFile(path+".none", nil); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &failed) || failed.Path != path+".none" {
		t.Errorf("error %v of a missing file", err)
	}
	if err := WithFile(filepath.Dir(path), func([]byte) error { return nil }); err == nil {
		t.Error("a folder is read")
	}
	if _, ok := ReadSmall(filepath.Dir(path)); ok {
		t.Error("a folder is read by ReadSmall")
	}
}
