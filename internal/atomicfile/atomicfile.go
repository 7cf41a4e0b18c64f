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
	"sync"

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
	path, err := write(path, f)
	if err == nil {
		filesys.SyncDir(filepath.Dir(path))
	}
	return err
}

// WriteEntry writes data to one of many files of a folder. It does what Write does, with two
// differences that save time. It does not sync the folder: after a loss of power the old file may be
// there, or none. The caller calls filesys.SyncDir once for many files of a folder. And it does not
// look at what is there before it replaces it, so that a symbolic link, a device or a FIFO is
// replaced by the file.
func WriteEntry(path string, data []byte) error {
	return replace(path, writing(data))
}

// WriteUnread does what WriteEntry does, for a file that nobody reads before another file refers to
// it. If nothing is at path, it makes no temporary file: a writer that fails or is killed leaves a
// part of the data at path, and the next one replaces it.
func WriteUnread(path string, data []byte) error {
	file, err := filesys.Create(path, 0o666)
	if err != nil {
		return WriteEntry(path, data)
	}
	// After an error the file stays: another process may have replaced it by a complete one.
	if err := errors.Join(writing(data)(file), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err, path))
	}
	sweepOnce(path)
	return nil
}

// writing returns a function that writes data to a file and syncs it.
func writing(data []byte) func(*filesys.File) error {
	return func(file *filesys.File) error {
		if _, err := file.Write(data); err != nil {
			return err
		}
		return file.Sync()
	}
}

// write writes a file without syncing its folder, and returns the path of the file, which differs
// if the given path is a symbolic link.
func write(path string, f func(io.Writer) error) (string, error) {
	info, failed := os.Lstat(path)
	if failed == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		info, failed = os.Stat(path)
	}
	if failed == nil && info.IsDir() {
		return path, fmt.Errorf("writing %s: it is a folder", path)
	}
	if failed == nil && !info.Mode().IsRegular() {
		return path, writeDirectly(path, f)
	}
	return path, replace(path, func(file *filesys.File) error { return fill(file, f) })
}

// replace writes a temporary file by fill, and renames it to path.
func replace(path string, fill func(*filesys.File) error) (err error) {
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
	defer file.Close() // if fill panics
	err = fill(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = filesys.Replace(temp, path)
	}
	if err != nil {
		filesys.Remove(temp)
		return err
	}
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
	buffered := borrowBuffer(file)
	defer returnBuffer(buffered)
	if err := f(buffered); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// buffers holds buffers of finished files for reuse. A run writes tens of thousands of small files,
// and the garbage collector would run again and again for a buffer of each.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 1<<16) }}

// borrowBuffer returns an empty buffer that writes to w.
func borrowBuffer(w io.Writer) *bufio.Writer {
	b := buffers.Get().(*bufio.Writer)
	b.Reset(w)
	return b
}

// returnBuffer makes a buffer available to other files.
func returnBuffer(b *bufio.Writer) {
	b.Reset(nil)
	buffers.Put(b)
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
	buffered := borrowBuffer(&syncing{file: file})
	defer returnBuffer(buffered)
	if err := f(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Sync()
}
