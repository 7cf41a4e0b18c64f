package rundir

import (
	"os"
	"sync"
	"sync/atomic"
)

// A Store is the measure.Store of a pass: an unnamed file in the run folder, made at the first
// write. It disappears with the process. On systems that cannot unlink open files it is removed
// like other temporary files.
type Store struct {
	Dir  string       // folder of the file
	end  atomic.Int64 // end of the reserved range
	once sync.Once
	file *os.File
	fail error
}

// Reserve implements measure.Store.
func (s *Store) Reserve(n int64) (at int64) { return s.end.Add(n) - n }

// ReadAt implements measure.Store.
func (s *Store) ReadAt(p []byte, at int64) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	n, err := s.file.ReadAt(p, at)
	return n, SaveError(err)
}

// WriteAt implements measure.Store. A failure is a SaveError, which ends the run.
func (s *Store) WriteAt(p []byte, at int64) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(p, at)
	return n, SaveError(err)
}

func (s *Store) open() error {
	s.once.Do(func() {
		if s.file, s.fail = os.CreateTemp(s.Dir, ".store-*.tmp"); s.fail == nil {
			_ = os.Remove(s.file.Name()) // fails on systems that cannot unlink open files
		}
	})
	return SaveError(s.fail)
}

// Close removes the file. A nil Store may be closed.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.once.Do(func() { s.fail = os.ErrClosed })
	if s.file != nil {
		s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
