package store

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/filelock"
	"github.com/noether-ml/noether/internal/filesys"
)

// A Record is what Put writes: a body, and parts that are read one by one.
type Record struct {
	Key string
	// Of the records of a key the one with the largest version counts. 0 stands for the version
	// after that of the record that counts now.
	Version uint64
	Body    []byte
	Parts   []Part
}

// A Part is a named part of a record: Data, or what Write writes, which may be called several
// times.
type Part struct {
	Name  string
	Data  []byte
	Write func(w io.Writer) error
}

// A writer is a log of this process.
type writer struct {
	name string
	file *filesys.File
	size int64
	lock io.Closer // nil without a lock
}

// rollSize is the size of a log from which a new one is begun rather than a record in it replaced.
// Logs of which no record counts any more are removed.
const rollSize = 1 << 20

// Put writes records. They are on the disk when it returns. After an error none of them was
// written.
func (s *Store) Put(records ...Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.own != nil && s.own.size > rollSize && s.replacesOwn(records) {
		s.former, s.own = append(s.former, s.own), nil
	}
	err := s.append(func(a *appender) error {
		for i := range records {
			if err := a.record(s, &records[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.collect()
}

// replacesOwn reports whether one of the records replaces one in the current log.
func (s *Store) replacesOwn(records []Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(records, func(r Record) bool {
		e, ok := s.index[r.Key]
		return ok && e.log.name == s.own.name
	})
}

// errMoved says that another process has moved the log of this one.
var errMoved = errors.New("another process has moved the log")

// append appends what fill writes to the log of this process, and puts it into the index.
func (s *Store) append(fill func(a *appender) error) error {
	for range 10 {
		a, err := s.appendOnce(fill)
		if errors.Is(err, errMoved) { // so what was appended may be lost
			if _, err := s.keepsOwn(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		l := s.logs[s.own.name]
		if l == nil {
			l = &log{name: s.own.name} // is opened again to read: the writer's file is closed before readers end
			s.logs[l.name] = l
		}
		for _, n := range a.added {
			n.entry.log = l
			s.install(n.key, n.entry, n.moved)
		}
		l.size, l.End, s.created[l.name] = s.own.size, s.own.size, s.own.size
		s.mu.Unlock()
		return nil
	}
	return fmt.Errorf("%s: %w", s.dir, errMoved)
}

func (s *Store) appendOnce(fill func(a *appender) error) (a *appender, err error) {
	if s.own == nil {
		if err := s.create(); err != nil {
			return nil, err
		}
	}
	w := s.own
	a = &appender{file: w.file, at: w.size}
	if s.buffer == nil {
		s.buffer = bufio.NewWriterSize(nil, 1<<16)
	}
	a.buffered = s.buffer
	a.buffered.Reset(a)
	defer a.buffered.Reset(nil)
	if a.at == 0 {
		a.write([]byte(magic))
	}
	err = fill(a)
	if err == nil {
		err = cmp.Or(a.err, a.buffered.Flush())
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		s.cut()
		return nil, err
	}
	w.size = a.at
	if !w.isThere(s.dir) {
		return nil, errMoved
	}
	return a, nil
}

func newName(beginning string) string {
	if beginning != "" {
		beginning += "."
	}
	return fmt.Sprintf("%s%016x%s", beginning, rand.Uint64(), suffix)
}

func (s *Store) create() error {
	name := newName(s.o.Name)
	file, err := filesys.Create(filepath.Join(s.dir, name), 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		if err = filesys.MkdirAll(s.dir, 0o777); err == nil {
			file, err = filesys.Create(filepath.Join(s.dir, name), 0o666)
		}
	}
	if err != nil {
		return err
	}
	s.own = &writer{name: name, file: file, lock: filelock.Shared(filepath.Join(s.dir, name))}
	filesys.SyncDir(s.dir) // takes long, so the lock comes first: other processes see the log already
	s.mu.Lock()
	s.created[name] = 0
	s.mu.Unlock()
	return nil
}

// cut removes what a failed append has written. If that fails too, nothing more is appended to the
// log.
func (s *Store) cut() {
	if s.own.size > 0 && s.own.file.Truncate(s.own.size) == nil {
		return
	}
	if s.own.size == 0 {
		_ = filesys.Remove(filepath.Join(s.dir, s.own.name))
		s.own.close()
	} else {
		s.former = append(s.former, s.own)
	}
	s.own = nil
}

// isThere reports whether the log still has its name. The file is opened, since a network file
// system may answer other questions from its cache.
func (w *writer) isThere(dir string) bool {
	f, err := os.Open(filepath.Join(dir, w.name))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	there, err := f.Stat()
	mine, failed := w.file.Stat()
	return err != nil || failed != nil || os.SameFile(there, mine)
}

func (w *writer) close() {
	w.file.Close()
	if w.lock != nil {
		w.lock.Close()
	}
}

// syncEvery is the number of bytes after which a log is synced while a record is written. Unwritten
// pages would otherwise fill the memory.
const syncEvery = 64 << 20

// An appender writes frames at the end of a log.
type appender struct {
	file     *filesys.File
	buffered *bufio.Writer
	at       int64
	pending  int // bytes since the last sync
	added    []added
	err      error
	scratch  []byte
}

// An added is a record that was appended.
type added struct {
	key   string
	entry entry
	moved bool // from another log
}

// Write writes to the file, for the buffer.
func (a *appender) Write(p []byte) (int, error) {
	n, err := a.file.Write(p)
	if a.pending += n; err == nil && a.pending >= syncEvery {
		a.pending, err = 0, a.file.Sync()
	}
	return n, err
}

func (a *appender) write(p []byte) {
	if a.err == nil {
		_, a.err = a.buffered.Write(p)
		a.at += int64(len(p))
	}
}

func (a *appender) frame(mark string, payload []byte) {
	a.write(appendHeader(nil, mark, payload))
	a.write(payload)
}

func (a *appender) record(s *Store, r *Record) error {
	h := head{key: r.Key, version: r.Version, body: r.Body}
	if h.version == 0 {
		s.mu.Lock()
		h.version, _ = s.version(r.Key)
		s.mu.Unlock()
		h.version++
	}
	at := span{data: a.at}
	for _, p := range r.Parts {
		d := dataWriter{a: a, chunk: a.scratch[:0]}
		write := p.Write
		if write == nil {
			write = func(w io.Writer) error { _, err := w.Write(p.Data); return err }
		}
		if err := write(&d); err != nil {
			return err
		}
		d.flush()
		a.scratch = d.chunk
		h.parts = append(h.parts, partSize{p.Name, d.size})
	}
	at.frame = a.at
	a.frame(recordMark, h.append(nil))
	at.end = a.at
	a.added = append(a.added, added{key: r.Key, entry: entry{version: h.version, span: at}})
	return a.err
}

// A dataWriter writes data frames.
type dataWriter struct {
	a     *appender
	chunk []byte
	size  int64
}

func (d *dataWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), maxData-len(d.chunk))
		d.chunk, p = append(d.chunk, p[:take]...), p[take:]
		if len(d.chunk) == maxData {
			d.flush()
		}
	}
	return n, d.a.err
}

func (d *dataWriter) flush() {
	if len(d.chunk) > 0 {
		d.size += int64(len(d.chunk))
		d.a.frame(dataMark, d.chunk)
		d.chunk = d.chunk[:0]
	}
}
