package rundir

import (
	"os"
	"sync"
	"sync/atomic"
)

// A Store is a measure.Store of the accumulators of a pass: a file without a name in the run
// folder, made when something is first written. It is gone when the run is, however that ends;
// where the system wants files to keep their names, it is swept with other temporary files.
type Store struct {
	Dir  string
	end  atomic.Int64 // of what has been reserved
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

// WriteAt implements measure.Store. That it fails is the folder's fault, which ends a run.
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
			_ = os.Remove(s.file.Name()) // which not every system does while it is open
		}
	})
	return SaveError(s.fail)
}

// Close gives the room back.
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
