// Package tempfolder makes temporary folders. Making one also removes the folders for the same
// purpose that killed processes left.
package tempfolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filelock"
)

// mark is the name of the file that distinguishes the folders of this package from others with the
// same prefix. A process that uses a folder holds a shared lock on the file.
const mark = ".noether-temporary"

// New makes a temporary folder for a purpose, a word in lower case that is part of its path. The
// caller calls remove at the end, which removes the folder. New also removes folders for the same
// purpose whose process has ended.
func New(purpose string) (dir string, remove func(), err error) {
	dir, remove, err = In(os.TempDir(), "noether-"+purpose+"-")
	if err != nil {
		return "", nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	return dir, remove, nil
}

// Beside makes a temporary folder in the folder of a path, so that a file or folder in it can be
// renamed to the path. Otherwise it is as New.
func Beside(path string) (dir string, remove func(), err error) {
	return In(filepath.Dir(path), "."+filepath.Base(path)+".part-")
}

// In makes a temporary folder inside a folder of the parent whose name starts with prefix. Otherwise it
// is as New.
func In(parent, prefix string) (dir string, remove func(), err error) {
	Sweep(filepath.Join(escaped.Replace(parent), escaped.Replace(prefix)+"*"))
	const tries = 100
	for try := 1; ; try++ {
		root, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", nil, err
		}
		dir, marked := filepath.Join(root, "files"), filepath.Join(root, mark)
		err = errors.Join(os.WriteFile(marked, nil, 0o666), os.Mkdir(dir, 0o777))
		lock := filelock.Shared(marked) // nil if there is none, as on a file system without locks
		remove := func() {
			if lock != nil {
				lock.Close()
			}
			os.RemoveAll(root)
		}
		if _, gone := os.Stat(marked); errors.Is(gone, os.ErrNotExist) && try < tries {
			remove() // another process has swept it before it was locked
			continue
		}
		if err != nil {
			remove()
			return "", nil, err
		}
		return dir, remove, nil
	}
}

// escaped quotes what has a meaning in patterns of filepath.Match.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Sweep removes the folders of this package that match a pattern of filepath.Glob, except those that a
// process uses. Errors are ignored: another user may own the folder.
func Sweep(pattern string) {
	found, _ := filepath.Glob(filepath.Join(pattern, mark))
	for _, marked := range found {
		if info, err := os.Lstat(marked); err != nil || !info.Mode().IsRegular() {
			continue
		}
		lock, free := filelock.TryExclusive(marked)
		if !free {
			continue
		}
		os.Remove(marked) // first, as a process that has just made it looks for it
		os.RemoveAll(filepath.Dir(marked))
		if lock != nil {
			lock.Close()
		}
	}
}
