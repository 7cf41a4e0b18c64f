package results

import (
	"os"
	"sync"
	"sync/atomic"
)

// A Store is the measure.Store of a pass: an unnamed file in the run folder, made at the first use,
// in which accumulators keep what need not be in memory. The system removes it when the process
// ends. On systems that cannot unlink open files, a later run removes it like other temporary
// files.
type Store struct {
	Dir  string       // folder of the file
	end  atomic.Int64 // number of bytes that are reserved
	once sync.Once
	file *os.File
	err  error
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

// WriteAt implements measure.Store. Its errors, like those of ReadAt, end the run, since
// IsSaveError reports true for them.
func (s *Store) WriteAt(p []byte, at int64) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(p, at)
	return n, SaveError(err)
}

func (s *Store) open() error {
	s.once.Do(func() {
		if s.file, s.err = os.CreateTemp(s.Dir, ".store-*.tmp"); s.err == nil {
			_ = os.Remove(s.file.Name()) // fails on systems that cannot unlink open files
		}
	})
	return SaveError(s.err)
}

// Close closes and removes the file. It does nothing for a nil Store.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.once.Do(func() { s.err = os.ErrClosed })
	if s.file != nil {
		s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
