package fetch

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
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// intact are the files and folders that this process has verified, by hash and path. If the inode,
// size or time of one has changed since, it is verified again.
var intact struct {
	sync.Mutex
	files map[string]os.FileInfo
}

// isIntact reports whether the content of a file has the given SHA-256. The error says why the file
// cannot be read.
func isIntact(path, sum string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if remembersIntact(path, sum, info) {
		return true, nil
	}
	actual, err := FileHash(path)
	if err != nil || actual != sum {
		return false, err
	}
	rememberIntact(path, sum)
	return true, nil
}

// remembersIntact reports whether this process has verified a file, which has not changed since.
func remembersIntact(path, sum string, info os.FileInfo) bool {
	intact.Lock()
	defer intact.Unlock()
	verified := intact.files[sum+" "+path]
	return verified != nil && os.SameFile(verified, info) && verified.Size() == info.Size() && verified.ModTime().Equal(info.ModTime())
}

func rememberIntact(path, sum string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	intact.Lock()
	defer intact.Unlock()
	if intact.files == nil {
		intact.files = map[string]os.FileInfo{}
	}
	intact.files[sum+" "+path] = info
}

// serves reports whether the cache has the content with a SHA-256 in a form that suffices for a
// target: the downloaded file or, if t.tree is set, also just the files of the archive in a folder.
func (c *Cache) serves(ctx context.Context, t target, sum string) bool {
	return sum != "" && t.tree && c.treeIsIntact(ctx, sum) || c.has(sum)
}

// treeSums are the SHA-256 of the files of an archive, by name with slashes.
type treeSums map[string][sha256.Size]byte

func (c *Cache) treeSumsFile(sum string) string { return c.path("content", sum, "tree.sha256") }

// Unlike JSON, gob keeps names that are not UTF-8.
func (c *Cache) writeTreeSums(sum string, sums treeSums) error {
	return atomicfile.WriteFunc(c.treeSumsFile(sum), func(w io.Writer) error {
		return gob.NewEncoder(w).Encode(sums)
	})
}

func (c *Cache) readTreeSums(sum string) (sums treeSums, err error) {
	f, err := os.Open(c.treeSumsFile(sum))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = gob.NewDecoder(f).Decode(&sums)
	return sums, err
}

func (c *Cache) rememberTree(sum string) { rememberIntact(c.path("content", sum, "tree"), sum) }

// treeIsIntact reports whether the cache holds exactly the files of an archive, whose hash is sum.
// Each process verifies them once. hold protects them from eviction.
func (c *Cache) treeIsIntact(ctx context.Context, sum string) bool {
	c.hold(sum)
	tree := c.path("content", sum, "tree")
	info, err := os.Stat(tree)
	if err != nil {
		return false
	}
	if remembersIntact(tree, sum, info) {
		return true
	}
	sums, err := c.readTreeSums(sum)
	if err != nil || verifyTree(ctx, tree, sums) != nil {
		return false
	}
	c.rememberTree(sum)
	return true
}

// verifyTree returns an error unless a folder holds exactly the files that have hashes in sums.
func verifyTree(ctx context.Context, tree string, sums treeSums) error {
	var seen atomic.Int64
	files, ctx := errgroup.WithContext(ctx)
	files.SetLimit(runtime.GOMAXPROCS(0))
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		sum, known := sums[filepath.ToSlash(name)]
		if !known || !d.Type().IsRegular() {
			return fmt.Errorf("%s is not of the archive", path)
		}
		files.Go(func() error {
			actual, err := FileHash(path)
			if err == nil && actual != hex.EncodeToString(sum[:]) {
				err = fmt.Errorf("%s is damaged", path)
			}
			seen.Add(1)
			return err
		})
		return ctx.Err()
	})
	if err := errors.Join(err, files.Wait()); err != nil {
		return err
	}
	if int(seen.Load()) != len(sums) {
		return fmt.Errorf("%s lacks files of the archive", tree)
	}
	return nil
}
