// Package atomicfile writes files whole or not at all.
//
// A run may be killed or a disk may fill at any moment; a file that is half written would be taken for a result later.
// So the content goes to a temporary file in the same folder, is flushed to the disk, and takes its name
// by a rename, which file systems do at once.
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
)

// Write writes data to path, replacing what is there.
func Write(path string, data []byte) error {
	return WriteFunc(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc writes to path what f writes, replacing what is there. If f or the disk fails, path is as it was.
func WriteFunc(path string, f func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	// Not os.CreateTemp: its files are private to the user, and a result should have the permissions of any other file.
	temp := filepath.Join(dir, fmt.Sprintf(".%s.%016x.tmp", name, rand.Uint64()))
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, cause(err, temp))
		}
	}()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err := fill(file, f); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	syncDir(dir)
	return nil
}

// cause is what went wrong, without the name of the temporary file, which tells a user nothing.
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

// fill writes what f writes, flushes it to the disk and closes the file.
func fill(file *os.File, f func(io.Writer) error) error {
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<16)
	if err := f(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// syncDir makes the rename itself last through a loss of power. Not every system lets a folder be flushed, and the
// file is whole either way, so failing is no error.
func syncDir(dir string) {
	if dir == "" {
		dir = "."
	}
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
