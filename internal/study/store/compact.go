package store

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/filesys"
)

// owns reports whether a log is one of this process. The caller holds s.mu or s.writing.
func (s *Store) owns(name string) bool {
	return s.own != nil && s.own.name == name || slices.ContainsFunc(s.former, func(w *writer) bool { return w.name == name })
}

const (
	maxGarbage = 4 << 20 // bytes of former logs that may exceed those of the records that count
	maxFormer  = 16      // former logs
)

// collect removes logs of this process without records that count, and moves the records of the
// others together if too much of them is garbage. The caller holds s.writing.
func (s *Store) collect() error {
	if err := s.sweep(); err != nil {
		return err
	}
	var size, live int64
	sources := map[string]bool{}
	s.mu.Lock()
	for _, w := range s.former {
		size += w.size
		if l := s.logs[w.name]; l != nil {
			live += l.live
		}
		sources[w.name] = true
	}
	s.mu.Unlock()
	if size-live <= live+maxGarbage && len(s.former) <= maxFormer {
		return nil
	}
	return s.move(sources, nil)
}

// Sweep removes logs without records that count, unless other processes use them.
func (s *Store) Sweep() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.sweep()
}

func (s *Store) sweep() error {
	s.mu.Lock()
	if !s.dead {
		s.mu.Unlock()
		return nil
	}
	s.dead = false
	var empty []string
	for name, l := range s.logs {
		if s.isGarbage(l) && (s.own == nil || s.own.name != name) {
			empty = append(empty, name)
		}
	}
	s.mu.Unlock()
	slices.Sort(empty)
	var errs []error
	for _, name := range empty {
		if !s.owns(name) {
			if s.inUse(name) {
				continue
			}
			moved, err := s.take(name)
			if err != nil {
				errs = append(errs, err)
			}
			if moved == nil {
				continue
			}
			if kept, err := s.keepsOwn(); !kept {
				errs = append(errs, err)
				continue
			}
			name = moved.name
		}
		errs = append(errs, s.remove(name, nil))
	}
	return errors.Join(errs...)
}

// take gives a log of another process a new name, and reads what that process has added. If it is
// still running, it finds out after its next record, which it then writes into a new log. take
// returns nil if the log is gone.
func (s *Store) take(name string) (*log, error) {
	moved := newName(beginningOf(name))
	err := filesys.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, moved))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[name]; l != nil { // else Refresh has found the new name already
		delete(s.logs, name)
		l.name = moved
		s.logs[moved] = l
	}
	if err := s.read(moved); errors.Is(err, fs.ErrNotExist) {
		return nil, s.refresh() // another process has taken it in turn, or has cut it
	} else if err != nil {
		return nil, err
	}
	return s.logs[moved], nil
}

// keepsOwn reports whether no other process has taken a log of this one. It is asked after taking
// logs and before removing them: of two processes that take each other's logs, each holding copies
// of the other's records, at least one then finds its own gone, and removes nothing.
func (s *Store) keepsOwn() (bool, error) {
	taken := map[string]bool{}
	for _, w := range append(slices.Clone(s.former), s.own) {
		if w != nil && !w.isThere(s.dir) {
			taken[w.name] = true
		}
	}
	if len(taken) == 0 {
		return true, nil
	}
	s.former = slices.DeleteFunc(s.former, func(w *writer) bool { return taken[w.name] })
	if s.own != nil && taken[s.own.name] {
		s.own = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.created, func(name string, _ int64) bool { return taken[name] })
	return false, s.refresh()
}

// remove removes a log if it is garbage, or calls dispose with its path.
func (s *Store) remove(name string, dispose func(path string) error) error {
	s.mu.Lock()
	garbage := s.isGarbage(s.logs[name])
	s.mu.Unlock()
	if !garbage {
		return nil
	}
	if dispose == nil {
		dispose = filesys.Remove
	}
	if err := dispose(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	delete(s.created, name)
	if l := s.logs[name]; l != nil && l.live > 0 { // Refresh has found a record, which its process writes again
		if err := s.refresh(); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	delete(s.logs, name)
	s.mu.Unlock()
	s.former = slices.DeleteFunc(s.former, func(w *writer) bool {
		if w.name == name {
			w.close()
		}
		return w.name == name
	})
	return nil
}

// move appends the records that count in some logs to the current one, and removes the logs. It
// calls dispose for damaged ones.
func (s *Store) move(sources map[string]bool, dispose func(path string) error) error {
	for range 10 {
		err := s.copyRecords(sources)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, io.EOF) {
			return err
		}
		// Another process has moved a source, or cut it.
		if err := s.Refresh(); err != nil {
			return err
		}
	}
	if kept, err := s.keepsOwn(); !kept {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s.mu.Lock()
		l := s.logs[name]
		damaged := l != nil && (l.Damaged > 0 || l.End == 0 && l.size > 0)
		s.mu.Unlock()
		then := dispose
		if !damaged {
			then = nil
		}
		if err := s.remove(name, then); err != nil {
			return err
		}
	}
	return nil
}

// copyRecords appends the records that count in some logs to the current one.
func (s *Store) copyRecords(sources map[string]bool) error {
	type keyed struct {
		key string
		entry
	}
	var all []keyed
	s.mu.Lock()
	for key, e := range s.index {
		if sources[e.log.name] {
			all = append(all, keyed{key, e})
		}
	}
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.log.name, b.log.name), cmp.Compare(a.data, b.data)) })
	return s.append(func(a *appender) error {
		for _, k := range all {
			file, _, err := s.fileOf(k.log)
			if err != nil {
				return err
			}
			delta := a.at - k.data
			if err := a.copy(io.NewSectionReader(file, k.data, k.end-k.data), k.end-k.data); err != nil {
				return err
			}
			a.added = append(a.added, added{k.key, entry{version: k.version, span: span{k.data + delta, k.frame + delta, k.end + delta}}, true})
		}
		return nil
	})
}

func (a *appender) copy(r io.Reader, size int64) error {
	if a.err != nil {
		return a.err
	}
	n, err := io.CopyN(a.buffered, r, size)
	a.at += n
	return err
}

// Compact moves all records that count into one log, and removes the others. Logs that another
// process uses are left alone. For logs with damaged records it calls dispose with the path, unless
// dispose is nil.
func (s *Store) Compact(dispose func(path string) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.Refresh(); err != nil {
		return err
	}
	s.mu.Lock()
	var free []string
	clean := true
	for name, l := range s.logs {
		switch {
		case !s.owns(name):
			if s.inUse(name) {
				continue
			}
			free = append(free, name)
			clean = clean && l.isClean()
		case s.own != nil && name == s.own.name && !l.isClean():
			s.former, s.own = append(s.former, s.own), nil
		}
	}
	s.mu.Unlock()
	if s.own == nil && len(s.former) == 0 && clean && len(free) <= 1 {
		return nil
	}
	slices.Sort(free)
	sources := map[string]bool{}
	for _, name := range free {
		l, err := s.take(name)
		if err != nil {
			return err
		}
		if l != nil {
			sources[l.name] = true
		}
	}
	for _, w := range s.former {
		sources[w.name] = true
	}
	return s.move(sources, dispose)
}

func (l *log) isClean() bool {
	return l.live > 0 && l.live+int64(len(magic)) == l.size
}

// Close removes the logs of this process without records that count, and ends its use of all
// others.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.own != nil {
		s.former, s.own = append(s.former, s.own), nil
	}
	s.mu.Lock()
	var empty []string
	for _, w := range s.former {
		if l := s.logs[w.name]; l != nil && l.live == 0 {
			empty = append(empty, w.name)
		}
	}
	for _, l := range s.logs {
		if f, ok := l.file.(*os.File); ok {
			f.Close()
		}
		l.file = nil
	}
	s.mu.Unlock()
	var errs []error
	for _, name := range empty {
		errs = append(errs, s.remove(name, nil))
	}
	for _, w := range s.former {
		w.close()
	}
	s.former = nil
	return errors.Join(errs...)
}
