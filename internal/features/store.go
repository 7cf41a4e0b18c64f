package features

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A Store is a folder on disk of representations and of what was computed from them, such as
// trained probes (small networks that predict a property of a sample from its vector). Several
// processes may use it at the same time.
type Store struct {
	Dir  string
	Size int64 // largest total size in bytes; 0: 20 GB
}

const defaultSize = 20_000_000_000 // bytes

// Default returns the user's store: $NOETHER_CACHE/representations or, if NOETHER_CACHE is not set,
// noether/representations in the user's cache folder. $NOETHER_REPRESENTATIONS_SIZE sets its
// largest size in bytes; it is an error if that is not a positive integer.
func Default() (*Store, error) {
	s := &Store{}
	if dir := os.Getenv("NOETHER_CACHE"); dir != "" {
		s.Dir = filepath.Join(dir, "representations")
	} else {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no cache folder for representations: set NOETHER_CACHE: %w", err)
		}
		s.Dir = filepath.Join(user, "noether", "representations")
	}
	if text := os.Getenv("NOETHER_REPRESENTATIONS_SIZE"); text != "" {
		var err error
		if s.Size, err = strconv.ParseInt(strings.TrimSpace(text), 0, 64); err != nil || s.Size <= 0 {
			return nil, fmt.Errorf("NOETHER_REPRESENTATIONS_SIZE is %q: it must be a positive number of bytes", text)
		}
	}
	return s, nil
}

// keyOf returns the first 20 bytes, in hexadecimal, of the SHA-256 of the JSON encoding of a value.
func keyOf(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:20]), nil
}

func (s *Store) path(key string) string { return filepath.Join(s.Dir, key[:2], key+".bin") }

// Load returns the bytes that Save stored under a name, or nil if there are none.
func (s *Store) Load(name string) ([]byte, error) {
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.touch(key)
	return raw, err
}

// Save stores bytes under a name, atomically. It adds no checksum.
func (s *Store) Save(name string, data []byte) error {
	key, err := keyOf(name)
	if err != nil {
		return err
	}
	return s.write(key, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// touch marks a file as just used, for evict.
func (s *Store) touch(key string) {
	now := time.Now()
	os.Chtimes(s.path(key), now, now)
}

// write writes the file of a key, whose content fill writes, and evicts others if the store is
// full.
func (s *Store) write(key string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path(key)), 0o777); err != nil {
		return fmt.Errorf("storing a representation: %w", err)
	}
	var fillErr error
	err := atomicfile.WriteFunc(s.path(key), func(w io.Writer) error { fillErr = fill(w); return fillErr })
	if disk := (*fs.PathError)(nil); fillErr != nil && !errors.As(fillErr, &disk) {
		return fillErr // not an error of writing the file
	}
	if err != nil {
		return fmt.Errorf("storing a representation: %w", err)
	}
	return s.evict(key)
}

// maxTempAge is the age at which the temporary file of a killed process is removed.
const maxTempAge = 24 * time.Hour

// evict removes the least recently used files until the total size is at most the limit, and
// temporary files of killed processes. It does not remove the file of the given key. A file that is
// open in another process may remain until the next call.
func (s *Store) evict(keep string) error {
	type file struct {
		path string
		size int64
		used time.Time
	}
	var files []file
	var total int64
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreNotExist(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreNotExist(err)
		}
		if strings.HasSuffix(path, ".tmp") {
			if time.Since(info.ModTime()) > maxTempAge {
				os.Remove(path)
			}
			return nil
		}
		files = append(files, file{path, info.Size(), info.ModTime()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("storing a representation: %w", err)
	}
	limit := cmp.Or(s.Size, defaultSize)
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			break
		}
		if f.path != s.path(keep) && os.Remove(f.path) == nil {
			total -= f.size
		}
	}
	return nil
}

// ignoreNotExist returns nil for the error of a file that another process has removed.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// table opens the table of a key: one vector of dim values for each sample. A table of at most
// memory bytes is read into memory. It returns nil if there is none or if it is damaged.
func (s *Store) table(key string, dim int, memory int64) (*Table, error) {
	t, err := openTable(s.path(key), dim, memory)
	switch {
	case err == nil:
		s.touch(key)
		return t, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errDamaged), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		os.Remove(s.path(key))
		return nil, nil
	}
	return nil, fmt.Errorf("opening a representation: %w", err)
}
