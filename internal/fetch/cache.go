package fetch

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
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// The folder of a cache:
//
//	content/SHA256/data     a file, with the hash of its content
//	content/SHA256/NAME     the same file under a name that it was asked for by
//	content/SHA256/tree/    what it holds, where it is an archive
//	content/SHA256/used     when it was used last: its time; held locked by every process that uses it
//	urls/KEY.json           what a URL held when it was fetched last
//	parts/KEY               a download on its way
func (c *Cache) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

func (c *Cache) prepare() error {
	for _, sub := range []string{"content", "urls", "parts"} {
		if err := os.MkdirAll(c.path(sub), 0o777); err != nil {
			return fmt.Errorf("the cache: %w", err)
		}
	}
	c.sweep()
	return nil
}

// sweep removes downloads that nobody has gone on with for a day, and what evictions that were killed left.
func (c *Cache) sweep() {
	for _, pattern := range []string{"parts/*", "content/*.old", "content/*/.unpacking-*"} {
		files, _ := filepath.Glob(c.path(pattern))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
				os.RemoveAll(f)
			}
		}
	}
}

// key names a URL's files.
func key(t target) string {
	sum := sha256.Sum256([]byte(t.url.String()))
	return hex.EncodeToString(sum[:16])
}

// An entry is what a URL held when it was fetched.
type entry struct {
	URL     string    `json:"url"`
	SHA256  string    `json:"sha256"`
	Version string    `json:"version"`
	Size    int64     `json:"size"`
	When    time.Time `json:"when"`
}

func (c *Cache) lookup(t target) (entry, error) {
	var e entry
	raw, err := os.ReadFile(c.path("urls", key(t)+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil && (len(e.SHA256) != 2*sha256.Size || !plainName(e.SHA256)) {
		err = errors.New("no entry")
	}
	if err != nil {
		return entry{}, err
	}
	return e, nil
}

func (c *Cache) note(t target, e entry) error {
	e.When = time.Now().UTC()
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return atomicfile.Write(c.path("urls", key(t)+".json"), append(raw, '\n'))
}

// has reports whether the cache holds a content, and holds it for this process if so.
func (c *Cache) has(sum string) bool {
	if sum == "" {
		return false
	}
	c.hold(sum)
	_, err := os.Stat(c.path("content", sum, "data"))
	return err == nil
}

// held are the contents that this process uses: nobody evicts them while it lives.
var held struct {
	sync.Mutex
	locks map[string]io.Closer
}

func (c *Cache) hold(sum string) {
	used := c.path("content", sum, "used")
	now := time.Now()
	os.Chtimes(used, now, now)
	held.Lock()
	defer held.Unlock()
	if held.locks[used] != nil {
		return
	}
	if lock := lockShared(used); lock != nil {
		if held.locks == nil {
			held.locks = map[string]io.Closer{}
		}
		held.locks[used] = lock
	}
}

// keep takes a finished download into the cache and returns its hash.
func (c *Cache) keep(part string) (string, error) {
	sum, err := hashOf(part)
	if err != nil {
		return "", err
	}
	if c.has(sum) {
		return sum, nil
	}
	if err := c.enter(sum); err != nil {
		return "", err
	}
	return sum, os.Rename(part, c.path("content", sum, "data"))
}

// enter makes the folder of a content and holds it.
func (c *Cache) enter(sum string) error {
	if err := os.MkdirAll(c.path("content", sum), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(c.path("content", sum, "used"), os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	c.hold(sum)
	return f.Close()
}

func hashOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// named is a content's file under a name: some readers go by the name's end.
func (c *Cache) named(sum, name string) (string, error) {
	if slices.Contains([]string{"data", "used", "tree"}, name) {
		name += ".file"
	}
	path := c.path("content", sum, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, linkOrCopy(c.path("content", sum, "data"), path)
}

// linkOrCopy gives a file a second name; where the file system knows no links, a copy.
func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return atomicfile.WriteFunc(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// A content is a folder of the cache, for eviction.
type content struct {
	dir  string
	size int64
	used time.Time
}

// evict removes what was used least recently until the cache is within its bound, but for what some process uses.
// That something cannot be removed is no error of who fetched something else.
func (c *Cache) evict() {
	folders, err := os.ReadDir(c.path("content"))
	if err != nil {
		return
	}
	var all []content
	var total int64
	for _, f := range folders {
		one := content{dir: c.path("content", f.Name())}
		one.size = diskUse(one.dir)
		if info, err := os.Stat(filepath.Join(one.dir, "used")); err == nil {
			one.used = info.ModTime()
		}
		total += one.size
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b content) int { return a.used.Compare(b.used) })
	for _, one := range all {
		if total <= c.size() {
			return
		}
		if remove(one) {
			total -= one.size
		}
	}
}

// remove removes a content that nobody uses. It is moved aside first, so that nobody finds half of it.
func remove(one content) bool {
	lock, free := tryLock(filepath.Join(one.dir, "used"))
	if !free {
		return false
	}
	if lock != nil {
		defer lock.Close()
	}
	aside := one.dir + ".old"
	os.RemoveAll(aside)
	if os.Rename(one.dir, aside) != nil {
		return false
	}
	return os.RemoveAll(aside) == nil
}

// diskUse adds up the files of a folder, those with several names once.
func diskUse(dir string) int64 {
	var sum int64
	var counted []os.FileInfo
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if filepath.Dir(path) == dir { // where second names are
			if slices.ContainsFunc(counted, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
				return nil
			}
			counted = append(counted, info)
		}
		sum += info.Size()
		return nil
	})
	return sum
}
