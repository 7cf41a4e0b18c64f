package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	put := func(text string, fail error) error {
		return Write(path, func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			return fail
		})
	}
	boom := errors.New("boom")
	for _, c := range []struct {
		text string
		fail error
		want string
	}{{"one", nil, "one"}, {"half", boom, "one"}, {"two", nil, "two"}} {
		if err := put(c.text, c.fail); !errors.Is(err, c.fail) {
			t.Errorf("writing %q: %v", c.text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("after %q the file holds %q, %v", c.text, got, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestWriteWhereItCannot(t *testing.T) {
	t.Parallel()
	if err := Write(filepath.Join(t.TempDir(), "none", "f"), func(io.Writer) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
