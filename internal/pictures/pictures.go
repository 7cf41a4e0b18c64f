// Package pictures reads the pictures of a run folder: files in its subfolder pictures, and the
// entries of the archive pictures.zip, which have the paths that the files would have.
package pictures

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Archive is the name of the archive in a run folder.
const Archive = "pictures.zip"

// A Set is the pictures of a run folder, as a file system. A file takes the place of an entry of
// the same path.
type Set struct {
	folder  fs.FS
	archive *zip.Reader // nil if there is none
	file    fs.File     // of the archive
}

// Open opens the pictures of a run folder. With an error, which is about the archive, it returns
// the files alone.
func Open(folder fs.FS) (*Set, error) {
	s := &Set{folder: folder}
	err := s.openArchive()
	if err != nil {
		s.Close()
		err = fmt.Errorf("reading %s: %w", Archive, err)
	}
	return s, err
}

func (s *Set) openArchive() error {
	info, err := fs.Stat(s.folder, Archive)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() { // a FIFO would block
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return err
	}
	if s.file, err = s.folder.Open(Archive); err != nil {
		return err
	}
	if info, err = s.file.Stat(); err != nil {
		return err
	}
	r, ok := s.file.(io.ReaderAt)
	if !ok {
		return errors.New("it cannot be read at an offset")
	}
	s.archive, err = zip.NewReader(r, info.Size())
	return err
}

// Close closes the archive.
func (s *Set) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Open opens a picture.
func (s *Set) Open(name string) (fs.File, error) {
	f, err := s.folder.Open(name)
	if s.archive != nil && errors.Is(err, fs.ErrNotExist) {
		return s.archive.Open(name)
	}
	return f, err
}

// Stat describes a picture.
func (s *Set) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(s.folder, name)
	if s.archive != nil && errors.Is(err, fs.ErrNotExist) {
		return fs.Stat(s.archive, name)
	}
	return info, err
}

// Glob returns the pictures whose paths match a pattern, sorted.
func (s *Set) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(s.folder, pattern)
	if s.archive == nil || err != nil {
		return names, err
	}
	archived, err := fs.Glob(s.archive, pattern)
	names = append(names, archived...)
	slices.Sort(names)
	return slices.Compact(names), err
}
