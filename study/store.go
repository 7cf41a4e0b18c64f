package study

import (
	"os"
	"sync"
	"sync/atomic"
)

// A store is a measure.Store of the accumulators of a pass: a file without a name in the run folder, made when something is
// first written. It is gone when the run is, however that ends; where the system wants files to keep their names, it is swept
// with other temporary files.
type store struct {
	dir  string
	end  atomic.Int64 // of what has been reserved
	once sync.Once
	file *os.File
	fail error
}

// Reserve implements measure.Store.
func (s *store) Reserve(n int64) (at int64) { return s.end.Add(n) - n }

// ReadAt implements measure.Store.
func (s *store) ReadAt(p []byte, at int64) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	n, err := s.file.ReadAt(p, at)
	return n, asSaveError(err)
}

// WriteAt implements measure.Store. That it fails is the folder's fault, which ends a run.
func (s *store) WriteAt(p []byte, at int64) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(p, at)
	return n, asSaveError(err)
}

func (s *store) open() error {
	s.once.Do(func() {
		if s.file, s.fail = os.CreateTemp(s.dir, ".store-*.tmp"); s.fail == nil {
			_ = os.Remove(s.file.Name()) // which not every system does while it is open
		}
	})
	return asSaveError(s.fail)
}

func asSaveError(err error) error {
	if err == nil {
		return nil
	}
	return &saveError{err}
}

// close gives the room back.
func (s *store) close() {
	if s == nil {
		return
	}
	s.once.Do(func() { s.fail = os.ErrClosed })
	if s.file != nil {
		s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
