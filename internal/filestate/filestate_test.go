package filestate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestChanges changes a file of 1,000 bytes in every way that leaves its size, and checks that its
// state tells, although the time of its last modification is set back.
func TestChanges(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the system has no time of the last change of an inode")
	}
	for name, change := range map[string]func(path string) error{
		"written in place": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte{7}, 500)
				err = errors.Join(err, f.Close())
			}
			return err
		},
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", make([]byte, 1000), 0o666); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"replaced and put back": func(path string) error {
			err := os.Rename(path, path+".old")
			return errors.Join(err, os.WriteFile(path, make([]byte, 1000), 0o666), os.Remove(path), os.Rename(path+".old", path))
		},
		"removed": os.Remove,
	} {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, bytes.Repeat([]byte{1}, 1000))
		s, err := Of(path) // at once: the file is younger than a tick of the clock
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(path); err != nil {
			t.Errorf("%s: before: %v", name, err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		modified := time.Unix(0, s.Modified)
		if err := os.Chtimes(path, modified, modified); err != nil && name != "removed" {
			t.Fatal(err)
		}
		if err := s.Check(path); !errors.As(err, new(*ChangedError)) {
			t.Errorf("%s: %v, want a ChangedError", name, err)
		}
	}
}

// TestSums checks hashes of files and of parts against those of crypto/sha256, that large files are
// not read again, and that a change anywhere in one is found.
func TestSums(t *testing.T) {
	t.Setenv("NOETHER_CACHE", t.TempDir())
	dir := t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), minCached/16)
	write(t, filepath.Join(dir, "small"), []byte("small"))
	write(t, filepath.Join(dir, "large"), large)
	sums := func() [2][32]byte {
		t.Helper()
		s, err := Sums(t.Context(), dir, []string{"small", "large"})
		if err != nil {
			t.Fatal(err)
		}
		return [2][32]byte{s[0].SHA256, s[1].SHA256}
	}
	if got := sums(); got != [2][32]byte{sha256.Sum256([]byte("small")), sha256.Sum256(large)} {
		t.Errorf("the hashes are %x", got)
	}
	// A cached hash that is wrong shows that the file was not read again.
	known := loadTable(dir)
	part := Part{"large", 0, whole}
	forged := known.sums[part]
	forged.SHA256 = [32]byte{1}
	known.save([]Part{part}, []Sum{forged})
	if got := sums(); got[1] != forged.SHA256 {
		t.Error("the large file was read again")
	}
	large[len(large)/2]++
	write(t, filepath.Join(dir, "large"), large)
	if got := sums(); got[1] != sha256.Sum256(large) {
		t.Error("a byte in the middle of a file has changed, and its hash has not")
	}
	parts, err := SumsOfParts(t.Context(), dir, []Part{{"small", 1, 3}})
	if err != nil || parts[0].SHA256 != sha256.Sum256([]byte("mal")) {
		t.Errorf("the hash of a part is %x, %v", parts, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sums(ctx, dir, []string{"small"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// TestRetry checks that errors that may pass are tried again, and others not.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		errs  []error
		calls int
		want  error
	}{
		{[]error{syscall.EMFILE, &fs.PathError{Op: "open", Path: "a", Err: syscall.ENOENT}, nil}, 3, nil},
		{[]error{syscall.EACCES}, 1, syscall.EACCES},
		{[]error{syscall.EIO, syscall.EIO, syscall.EIO, syscall.EIO, syscall.EIO}, 5, syscall.EIO},
	} {
		calls := 0
		err := Retry(t.Context(), func() error { calls++; return c.errs[calls-1] })
		if calls != c.calls || !errors.Is(err, c.want) {
			t.Errorf("%v: %d calls, %v; want %d, %v", c.errs, calls, err, c.calls, c.want)
		}
	}
}

// TestNotRegular checks that a named pipe is an error, and does not wait for a writer.
func TestNotRegular(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Of(path); err == nil {
		t.Error("a named pipe has a state")
	}
}
