package filestate

import (
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/filesys"
)

// longHashing is the number of bytes from which a notice says that hashing takes time: some ten
// seconds on two cores.
const longHashing = 8 << 30

type noticeKey struct{}

// WithNotice returns a context in which Sums calls tell before it hashes many bytes.
func WithNotice(ctx context.Context, tell func(text string)) context.Context {
	return context.WithValue(ctx, noticeKey{}, tell)
}

// A Part is a part of a file in a folder.
type Part struct {
	Name         string // relative to the folder
	Offset, Size int64  // in bytes
}

// whole is the Size of a Part that is a whole file.
const whole = -1

// A Sum is the SHA-256 of a file or of a part of it, in the state that the file had then.
type Sum struct {
	SHA256 [sha256.Size]byte
	State  State
}

// minCached is the number of bytes from which hashes are kept in the cache: fewer are hashed in
// less than a tenth of a second.
const minCached = 64 << 20

// Sums hashes the content of files, whose names are relative to a folder, on all cores. Hashes of
// large files, and of many, are kept in the user's cache, and a file whose state is the same is not
// read again. A file that may not be read has a hash of zeros. Errors contain the path of the file.
func Sums(ctx context.Context, dir string, names []string) ([]Sum, error) {
	parts := make([]Part, len(names))
	for i, name := range names {
		parts[i] = Part{name, 0, whole}
	}
	return SumsOfParts(ctx, dir, parts)
}

// SumsOfParts is Sums for parts of files.
func SumsOfParts(ctx context.Context, dir string, parts []Part) ([]Sum, error) {
	sums := make([]Sum, len(parts))
	err := each(ctx, len(parts), func(i int) (err error) {
		sums[i].State, err = Of(filepath.Join(dir, parts[i].Name))
		return err
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, len(parts))
	bytes := int64(0)
	for i, s := range sums {
		if sizes[i] = parts[i].Size; sizes[i] == whole {
			sizes[i] = s.State.Size
		}
		bytes += sizes[i]
	}
	var cached *table
	if bytes >= minCached {
		cached = loadTable(dir)
	}
	var missing []int
	missingBytes := int64(0)
	for i, p := range parts {
		if known, ok := cached.find(p); ok && known.State == sums[i].State {
			sums[i] = known
			continue
		}
		missing = append(missing, i)
		missingBytes += sizes[i]
	}
	if tell, ok := ctx.Value(noticeKey{}).(func(string)); ok && missingBytes > longHashing {
		tell(fmt.Sprintf("hashing %.0f GB in %s, once: later runs read only files that have changed", float64(missingBytes)/1e9, dir))
	}
	err = each(ctx, len(missing), func(k int) error {
		i := missing[k]
		sum, err := hash(ctx, dir, parts[i], sums[i].State)
		if errors.Is(err, fs.ErrPermission) {
			return nil // a property of the file, which gets a hash of zeros
		}
		if err == nil { // else the next attempt needs the state
			sums[i] = sum
		}
		return err
	})
	if err == nil && len(missing) > 0 && cached != nil {
		cached.save(parts, sums)
	}
	return sums, err
}

func each(ctx context.Context, n int, f func(i int) error) error {
	group, until := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		if until.Err() != nil {
			break
		}
		group.Go(func() error { return Retry(until, func() error { return f(i) }) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// hash returns the hash of a part of a file in a state. It is an error if the file is changed
// meanwhile.
func hash(ctx context.Context, dir string, p Part, state State) (Sum, error) {
	path := filepath.Join(dir, p.Name)
	f, err := filesys.Open(path)
	if err != nil {
		return Sum{}, err
	}
	defer f.Close()
	h := sha256.New()
	size := p.Size
	if size == whole {
		size = state.Size
	}
	content := io.NewSectionReader(f, p.Offset, size)
	if _, err := io.CopyBuffer(writerOnly{h}, reader{ctx, content}, make([]byte, min(size+1, 256<<10))); err != nil {
		return Sum{}, err
	}
	return Sum{[sha256.Size]byte(h.Sum(nil)), state}, state.Check(path)
}

// A writerOnly hides other methods, so that io.CopyBuffer uses its buffer.
type writerOnly struct{ io.Writer }

type reader struct {
	ctx context.Context
	f   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

// A table is the file of the cache for the files of one folder. The cache saves time and nothing
// else: a table that cannot be read or written is as good as none. A nil table has no file.
type table struct {
	file string
	sums map[Part]Sum
}

// unused is the age at which a table that no run has used is removed.
const unused = 90 * 24 * time.Hour

func loadTable(folder string) *table {
	dir := os.Getenv("NOETHER_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "noether")
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil
	}
	key := sha256.Sum256([]byte(absolute))
	t := &table{file: filepath.Join(dir, "fingerprints", hex.EncodeToString(key[:12])+".gob")}
	if f, err := os.Open(t.file); err == nil {
		defer f.Close()
		if gob.NewDecoder(f).Decode(&t.sums) != nil {
			t.sums = nil
		}
		now := time.Now()
		_ = os.Chtimes(t.file, now, now)
	}
	return t
}

func (t *table) find(p Part) (Sum, bool) {
	if t == nil {
		return Sum{}, false
	}
	s, ok := t.sums[p]
	return s, ok
}

// save adds hashes to the table, and removes tables that no run has used for long.
func (t *table) save(parts []Part, sums []Sum) {
	if t.sums == nil {
		t.sums = map[Part]Sum{}
	}
	for i, p := range parts {
		t.sums[p] = sums[i]
	}
	dir := filepath.Dir(t.file)
	if os.MkdirAll(dir, 0o777) != nil {
		return
	}
	_ = atomicfile.WriteFunc(t.file, func(w io.Writer) error { return gob.NewEncoder(w).Encode(t.sums) })
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > unused {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}
