// Package atomicfile writes files whole or not at all.
//
// A run (an execution of a study) may be killed, or a disk may fill, at any moment. So that no
// half-written file looks like a result, the content is written to a temporary file in the same
// folder, which is synced (fsync) and then renamed. A rename is atomic.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/filesys"
)

// Write writes data to path as WriteFunc does.
func Write(path string, data []byte) error {
	return WriteFunc(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc writes to path what f writes, replacing what is there. If f or the disk fails, path is
// unchanged. A folder at path is an error. A symbolic link stays, and its target is replaced; a
// link whose target does not exist is itself replaced. Devices and FIFOs are written to directly,
// as cp does. The first call of a process for a folder also removes the temporary files that killed
// processes left in the folder more than StaleAfter (an hour) ago.
func WriteFunc(path string, f func(io.Writer) error) error {
	info, failed := os.Lstat(path)
	if failed == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		info, failed = os.Stat(path)
	}
	if failed == nil && info.IsDir() {
		return fmt.Errorf("writing %s: it is a folder", path)
	}
	if failed == nil && !info.Mode().IsRegular() {
		return writeDirectly(path, f)
	}
	return replace(path, f)
}

// replace writes what f writes to a temporary file, and renames it to path.
func replace(path string, f func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	// os.CreateTemp would create a file that only the user can read.
	temp := filepath.Join(dir, fmt.Sprintf(".%s.%016x.tmp", name, rand.Uint64()))
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, cause(err, temp))
		}
	}()
	file, err := filesys.Create(temp, 0o666)
	if err != nil {
		return err
	}
	defer file.Close() // if f panics
	err = fill(file, f)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = filesys.Rename(temp, path)
	}
	if err != nil {
		filesys.Remove(temp)
		return err
	}
	filesys.SyncDir(filepath.Dir(path))
	sweepOnce(path)
	return nil
}

// writeDirectly writes to a device or a FIFO.
func writeDirectly(path string, f func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriter(file)
	if err := f(buffered); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// cause returns the error without the name of the temporary file temp.
func cause(err error, temp string) error {
	var file *fs.PathError
	var rename *os.LinkError
	switch {
	case errors.As(err, &file) && file.Path == temp:
		return file.Err
	case errors.As(err, &rename) && rename.Old == temp:
		return rename.Err
	}
	return err
}

// syncEvery is the number of bytes of a large file after which it is synced. Unwritten pages would
// otherwise fill the memory, and the sync at the end take minutes.
const syncEvery = 64 << 20

// A syncing writes to a file and syncs it after every syncEvery bytes.
type syncing struct {
	file    *filesys.File
	pending int // bytes since the last sync
}

func (s *syncing) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if s.pending += n; err == nil && s.pending >= syncEvery {
		s.pending, err = 0, s.file.Sync()
	}
	return n, err
}

// fill writes what f writes, and syncs the file.
func fill(file *filesys.File, f func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(&syncing{file: file}, 1<<16)
	if err := f(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Sync()
}
