package features

import (
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
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A Store is a folder of representations.
type Store struct {
	Dir  string
	Size int64 // bytes that it keeps at most; 0: 20 GB
}

const defaultSize = 20_000_000_000

// Default is the store of the user: the folder noether/representations of the user's cache, or representations in NOETHER_CACHE, of
// NOETHER_REPRESENTATIONS_SIZE bytes.
func Default() (*Store, error) {
	s := &Store{}
	if dir := os.Getenv("NOETHER_CACHE"); dir != "" {
		s.Dir = filepath.Join(dir, "representations")
	} else {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("there is no folder to keep representations in: set NOETHER_CACHE (%w)", err)
		}
		s.Dir = filepath.Join(user, "noether", "representations")
	}
	if text := os.Getenv("NOETHER_REPRESENTATIONS_SIZE"); text != "" {
		if _, err := fmt.Sscan(text, &s.Size); err != nil || s.Size <= 0 {
			return nil, fmt.Errorf("NOETHER_REPRESENTATIONS_SIZE is %q; it is a number of bytes", text)
		}
	}
	return s, nil
}

// keyOf hashes what something depends on, which encodes to canonical JSON.
func keyOf(on any) (string, error) {
	raw, err := json.Marshal(on)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:20]), nil
}

func (s *Store) path(key string) string { return filepath.Join(s.Dir, key[:2], key+".bin") }

// Load returns what Save kept under a name, nil where there is nothing.
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

// Save keeps some bytes under a name, whole or not at all. Whoever loads them checks them.
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

func (s *Store) touch(key string) {
	now := time.Now()
	os.Chtimes(s.path(key), now, now)
}

// write writes a file and makes room for it.
func (s *Store) write(key string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path(key)), 0o777); err != nil {
		return fmt.Errorf("keeping a representation: %w", err)
	}
	var filling error
	err := atomicfile.WriteFunc(s.path(key), func(w io.Writer) error { filling = fill(w); return filling })
	if disk := (*fs.PathError)(nil); filling != nil && !errors.As(filling, &disk) {
		return filling // what could not be made is not the file's affair
	}
	if err != nil {
		return fmt.Errorf("keeping a representation: %w", err)
	}
	return s.evict(key)
}

// abandoned is how old a temporary file is that nobody writes any more.
const abandoned = 24 * time.Hour

// evict removes what was used least recently until the rest fits, and what killed processes left. The file of a key stays. Who has a
// removed file open can read it to its end; one that cannot be removed for that reason goes another time.
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
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		if strings.HasSuffix(path, ".tmp") {
			if time.Since(info.ModTime()) > abandoned {
				os.Remove(path)
			}
			return nil
		}
		files = append(files, file{path, info.Size(), info.ModTime()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("keeping a representation: %w", err)
	}
	most := s.Size
	if most == 0 {
		most = defaultSize
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= most {
			break
		}
		if f.path != s.path(keep) && os.Remove(f.path) == nil {
			total -= f.size
		}
	}
	return nil
}

// ignoreGone takes files that another process has removed meanwhile as no error.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// table opens a table, nil where there is none or it is damaged.
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
