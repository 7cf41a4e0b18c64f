// Package tempfolder makes temporary folders. Each call of New also removes the folders for the
// same purpose that killed processes left.
package tempfolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/noether-ml/noether/internal/filelock"
)

// mark is the name of the file that distinguishes the folders of this package from others with the
// same prefix. A process that uses a folder holds a shared lock on the file.
const mark = ".noether-temporary"

// unlockedFor bounds the time between writing a mark and locking it. Folders with a younger mark
// are not removed.
const unlockedFor = time.Minute

// New makes a temporary folder for a purpose, a word in lower case that is part of its path. The
// caller calls remove at the end, which removes the folder. New also removes folders for the same
// purpose whose process has ended.
func New(purpose string) (dir string, remove func(), err error) {
	prefix := "noether-" + purpose + "-"
	sweep(prefix)
	defer func() {
		if err != nil {
			err = fmt.Errorf("making a temporary folder: %w", err)
		}
	}()
	root, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(root, "files")
	marked := filepath.Join(root, mark)
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(marked, nil, 0o666)); err != nil {
		os.RemoveAll(root)
		return "", nil, err
	}
	lock := filelock.Shared(marked) // nil if there is none, as on a file system without locks
	return dir, func() {
		if lock != nil {
			lock.Close()
		}
		os.RemoveAll(root)
	}, nil
}

// sweep removes the folders whose names start with prefix, except those that a process uses. Errors
// are ignored: another user may own the folder.
func sweep(prefix string) {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", mark))
	for _, marked := range found {
		if info, err := os.Lstat(marked); err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < unlockedFor {
			continue
		}
		lock, free := filelock.TryExclusive(marked)
		if !free {
			continue
		}
		os.RemoveAll(filepath.Dir(marked))
		if lock != nil {
			lock.Close()
		}
	}
}
