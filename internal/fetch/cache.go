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
	"strings"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/filelock"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/tempfolder"
)

// path returns a path within the folder of the cache, which contains
//
//	content/SHA256/data         a file whose content has this hash
//	content/SHA256/NAME         a hard link to data under a requested name
//	content/SHA256/with-HASH/   a model, whose data this is, and its external weight files; HASH
//	                            is computed from their names and hashes
//	content/SHA256/tree/        the files of an archive
//	content/SHA256/tree.sha256  the hashes of these files
//	content/SHA256/used         an empty file, modified at the last use, and each process
//	                            that uses the content holds a shared lock on it
//	urls/KEY.json               the content of a URL at the last download, an entry
//	urls/KEY.lock               a file that is locked during a download, or while an archive is
//	                            unpacked
//	parts/KEY                   an unfinished download
//	parts/KEY.version           the version of the content that it is a part of, an ETag or a
//	                            time (see body.version)
//
// A content is a folder content/SHA256, and its hash is SHA256.
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

// sweep removes unfinished downloads and temporary files of killed processes that were not modified
// for a day, and folders of unpacking that no process has locked.
func (c *Cache) sweep() {
	tempfolder.Sweep(c.path("content", "*", unpackingPrefix+"*"))
	for _, pattern := range []string{"parts/*", "urls/.*.tmp", "content/*.old", "content/*/.*.tmp", "content/*/.unpacking-*", "content/*/tree.old-*"} {
		files, _ := filepath.Glob(c.path(pattern))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
				os.RemoveAll(f)
			}
		}
	}
}

// key returns the name of the files in the cache of a target, a URL to download.
func key(t target) string {
	sum := sha256.Sum256([]byte(t.url.String()))
	return hex.EncodeToString(sum[:16])
}

type entry struct {
	URL     string    `json:"url"`     // without user, password and query, see Redact
	SHA256  string    `json:"sha256"`  // of the content
	Version string    `json:"version"` // see body.version
	Size    int64     `json:"size"`    // bytes
	When    time.Time `json:"when"`    // of the download
}

func (c *Cache) readEntry(t target) (entry, error) {
	var e entry
	raw, err := os.ReadFile(c.path("urls", key(t)+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil && (len(e.SHA256) != 2*sha256.Size || !plainName(e.SHA256)) {
		err = errors.New("not an entry of the cache")
	}
	if err != nil {
		return entry{}, err
	}
	return e, nil
}

func (c *Cache) writeEntry(t target, e entry) error {
	e.When = time.Now().UTC()
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return atomicfile.Write(c.path("urls", key(t)+".json"), append(raw, '\n'))
}

// has reports whether the cache has the data of a content, which it verifies against the hash.
// Damaged data are removed. If the cache has the content, it is locked for this process.
func (c *Cache) has(sum string) bool {
	if sum == "" {
		return false
	}
	c.hold(sum)
	data := c.path("content", sum, "data")
	switch intact, err := isIntact(data, sum); {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case !intact:
		c.log("the copy in the cache of the content with the SHA-256 %s is damaged; it is removed", sum)
		os.Remove(data)
		return false
	}
	return true
}

// held are the locks on the contents that this process uses, by the path of their file "used". They
// protect the contents from eviction.
var held struct {
	sync.Mutex
	locks map[string]io.Closer
}

// hold sets the time of the last use of a content and locks it for this process.
func (c *Cache) hold(sum string) {
	used := c.path("content", sum, "used")
	now := time.Now()
	os.Chtimes(used, now, now)
	held.Lock()
	defer held.Unlock()
	if held.locks[used] != nil {
		return
	}
	if lock := filelock.Shared(used); lock != nil {
		if held.locks == nil {
			held.locks = map[string]io.Closer{}
		}
		held.locks[used] = lock
	}
}

func (c *Cache) store(part string) (string, error) {
	sum, err := FileHash(part)
	if err != nil {
		return "", err
	}
	if c.has(sum) {
		return sum, nil
	}
	if err := c.enter(sum); err != nil {
		return "", err
	}
	data := c.path("content", sum, "data")
	if err := os.Rename(part, data); err != nil {
		return "", err
	}
	rememberIntact(data, sum)
	return sum, nil
}

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

// FileHash returns the SHA-256 of a file in hexadecimal digits.
func FileHash(file string) (string, error) {
	f, err := filesys.Open(file)
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

// namedPath provides the data of a content under a file name, since some readers depend on the
// extension, and returns the path.
func (c *Cache) namedPath(sum, name string) (string, error) {
	if slices.Contains([]string{"data", "used", "tree", "tree.sha256"}, name) {
		name += ".file"
	}
	path := c.path("content", sum, name)
	return path, c.provide(sum, path)
}

// provide links or copies the data of a content to path, unless an intact copy is there.
func (c *Cache) provide(sum, path string) error {
	data := c.path("content", sum, "data")
	if info, err := os.Stat(path); err == nil {
		stored, err := os.Stat(data)
		if err == nil && os.SameFile(info, stored) {
			return nil
		}
		if ok, _ := isIntact(path, sum); ok {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return linkOrCopy(data, path)
}

// linkOrCopy makes a hard link, or a copy on file systems without links.
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

type content struct {
	dir  string
	size int64     // bytes
	used time.Time // last use
}

// evict removes the least recently used contents until the cache is within its bound. Contents that
// a process uses stay, and so do, without an error, those that cannot be removed.
func (c *Cache) evict() {
	folders, err := os.ReadDir(c.path("content"))
	if err != nil {
		return
	}
	var contents []content
	var total int64
	for _, f := range folders {
		folder := content{dir: c.path("content", f.Name())}
		folder.size = diskUse(folder.dir)
		if info, err := os.Stat(filepath.Join(folder.dir, "used")); err == nil {
			folder.used = info.ModTime()
		}
		total += folder.size
		contents = append(contents, folder)
	}
	slices.SortFunc(contents, func(a, b content) int { return a.used.Compare(b.used) })
	for _, oldest := range contents {
		if total <= c.size() {
			return
		}
		if oldest.remove() {
			total -= oldest.size
		}
	}
}

// remove removes the content if no process uses it, and reports whether it did. It renames the
// folder first, so that no process finds it half removed.
func (f content) remove() bool {
	lock, free := filelock.TryExclusive(filepath.Join(f.dir, "used"))
	if !free {
		return false
	}
	if lock != nil {
		defer lock.Close()
	}
	old := f.dir + ".old"
	os.RemoveAll(old)
	if os.Rename(f.dir, old) != nil {
		return false
	}
	return os.RemoveAll(old) == nil
}

// diskUse returns the bytes of all files of the folder of a content. A file with several hard links
// is counted once.
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
		// The files of an archive, which may be a million, have no hard links.
		if sub, _ := filepath.Rel(dir, path); filepath.Dir(sub) == "." || strings.HasPrefix(sub, bundlePrefix) {
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
