package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/noether-ml/noether/internal/filelock"
)

// ErrDamaged is the error of a record that was truncated or altered.
var ErrDamaged = errors.New("the record is damaged")

// A Store is a folder of logs. Its methods may be called concurrently.
type Store struct {
	dir  string
	open func(path string) (*os.File, error)

	writing sync.Mutex // held by the one goroutine that writes
	own     *writer    // the log that this process appends to; nil if there is none
	former  []*writer  // logs of this process that are no longer appended to
	buffer  *bufio.Writer

	mu      sync.Mutex
	o       Options
	logs    map[string]*log  // by name
	index   map[string]entry // the records that count, by key
	before  map[string]entry // index when the logs were forgotten; nil once they are read anew
	damaged map[string]bool  // keys of damaged records
	created map[string]int64 // the synced size of logs that this process has created, by name
	// ceded has, by key, the logs with a record that counts no more since a log of another process
	// has a newer one. That process may still cut it off, or lose it, so these logs must stay.
	ceded   map[string][]*log
	dropped map[string]uint64
	dead    bool // a log without records that count may exist
}

// A log is a log as far as it was read.
type log struct {
	name string
	scan
	size int64 // when it was read
	live int64 // bytes of the records that count
	gone bool  // the log was removed
	file io.ReaderAt
}

// An entry is where a record is.
type entry struct {
	log     *log
	version uint64
	span
}

// Options are those of a Store.
type Options struct {
	Verify bool // read the parts of records when their log is read, not only when they are asked for
	// Name begins the names of the logs that this process writes, and Reads reports whether logs
	// with a beginning are read; nil: all are. With thousands of processes, each need not read what
	// all others have written.
	Name  string
	Reads func(name string) bool
	// Permanent says that no process drops records. One that was there and is gone is then being
	// written again by its process, into a new log, and Get waits for it.
	Permanent bool
}

// New returns the store of a folder, which need not exist. It reads nothing: Refresh does.
func New(dir string, o Options) *Store { return newStore(dir, os.Open, o) }

// In returns the store of a folder, to read only, by the files of a file system.
func In(root *os.Root, dir string) *Store { return newStore(dir, root.Open, Options{}) }

func newStore(dir string, open func(string) (*os.File, error), o Options) *Store {
	return &Store{dir: dir, open: open, o: o, logs: map[string]*log{}, index: map[string]entry{}, damaged: map[string]bool{}, created: map[string]int64{}, ceded: map[string][]*log{}, dropped: map[string]uint64{}}
}

// Read replaces Options.Reads. Logs that are read from now on are not verified.
func (s *Store) Read(reads func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Reads, s.o.Verify = reads, false
}

// suffix ends the names of logs.
const suffix = ".log"

// IsLog reports whether a file name is that of a log.
func IsLog(name string) bool {
	return strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, ".")
}

func beginningOf(name string) string {
	return name[:max(0, strings.LastIndexByte(strings.TrimSuffix(name, suffix), '.'))]
}

// names returns the names of the logs in the folder, sorted. A folder that does not exist has none.
func (s *Store) names() ([]string, error) {
	d, err := s.open(s.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.Readdirnames(-1)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return !IsLog(name) || s.o.Reads != nil && !s.o.Reads(beginningOf(name))
	})
	slices.Sort(all)
	return all, err
}

// Refresh reads what was added since the last call, by this process or another one.
func (s *Store) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh()
}

func (s *Store) refresh() error {
	err := s.readLogs()
	if s.o.Permanent {
		for key, e := range s.before {
			if _, ok := s.index[key]; !ok {
				e.log.gone = true
				s.index[key] = e
			}
		}
	}
	s.before = nil
	return err
}

func (s *Store) readLogs() error {
	for range 10 { // a log that another process moves meanwhile is read in the next round
		names, err := s.names()
		if err != nil {
			return err
		}
		for name := range s.logs {
			if _, there := slices.BinarySearch(names, name); !there { // its records are in another log
				s.forget()
				break
			}
		}
		moved := false
		for _, name := range names {
			if err := s.read(name); errors.Is(err, fs.ErrNotExist) {
				moved = true
			} else if err != nil {
				return err
			}
		}
		if !moved {
			break
		}
	}
	return nil
}

func (s *Store) forget() {
	clear(s.logs) // their files are closed by the garbage collector: a goroutine may be reading them
	if s.before == nil {
		s.before = s.index
	}
	s.index = map[string]entry{}
	clear(s.damaged)
	clear(s.ceded)
}

func (s *Store) read(name string) error {
	f, err := s.open(filepath.Join(s.dir, name))
	if errors.Is(err, syscall.ELOOP) { // a link to itself is no log
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	size := info.Size()
	if synced, ok := s.created[name]; ok { // what is being appended may still be cut off
		size = min(size, synced)
	}
	l := s.logs[name]
	if l == nil {
		l = &log{name: name}
		s.logs[name] = l
	} else if l.size == size {
		return nil
	} else if l.size > size { // its owner has cut off a failed append
		s.forget()
		return fs.ErrNotExist
	}
	found, err := scanLog(f, l.End, size, s.o.Verify, func(h head, at span) {
		s.install(h.key, entry{l, h.version, at}, false)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	l.size, l.End, l.Damaged, l.Keys = size, found.End, l.Damaged+found.Damaged, append(l.Keys, found.Keys...)
	for _, key := range found.Keys {
		s.damaged[key] = true
	}
	s.dead = s.dead || l.live == 0
	return nil
}

// install puts a record into the index, unless one of the same key counts more. Of two copies the
// one in a log of this process counts: it alone decides when that is removed.
func (s *Store) install(key string, e entry, force bool) {
	if gone, ok := s.dropped[key]; ok && e.version <= gone {
		return
	}
	if old, ok := s.index[key]; ok {
		if !force && !old.log.gone && (old.version > e.version || old.version == e.version && (!s.isMine(e) || s.isMine(old))) {
			s.cede(key, e.log, old.log)
			return
		}
		s.cede(key, old.log, e.log)
		s.kill(old)
	}
	s.index[key] = e
	e.log.live += e.end - e.data
}

// cede notes that a record in one log counts no more since another log has one of the same key.
func (s *Store) cede(key string, from, to *log) {
	if _, mine := s.created[to.name]; from != to && !mine && !slices.Contains(s.ceded[key], from) {
		s.ceded[key] = append(s.ceded[key], from)
	}
}

// isMine reports whether a record is in a log that this process has created.
func (s *Store) isMine(e entry) bool {
	_, mine := s.created[e.log.name]
	return mine
}

// isGarbage reports whether a log can be removed: each of its records was dropped, or the one that
// counts is in a log of this process.
func (s *Store) isGarbage(l *log) bool {
	if l == nil || l.live > 0 {
		return false
	}
	for key, logs := range s.ceded {
		if e, ok := s.index[key]; !ok || s.isMine(e) {
			delete(s.ceded, key)
		} else if slices.Contains(logs, l) {
			return false
		}
	}
	return true
}

// kill notes that a record no longer counts.
func (s *Store) kill(e entry) {
	e.log.live -= e.end - e.data
	s.dead = s.dead || e.log.live == 0
}

// Keys returns the keys of all records, in no order.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.index))
}

// Version returns the version of the record of a key. Without one it returns false, and the version
// of the record that was dropped, or 0.
func (s *Store) Version(key string) (version uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version(key)
}

func (s *Store) version(key string) (uint64, bool) {
	if e, ok := s.index[key]; ok {
		return e.version, true
	}
	return s.dropped[key], false
}

// Drop makes the records of keys count no more, for this Store. Sweep removes logs that have no
// others.
func (s *Store) Drop(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if e, ok := s.index[key]; ok {
			s.dropped[key] = e.version
			delete(s.index, key)
			s.kill(e)
		}
	}
}

// HasParts reports whether the record of a key has parts that are not empty.
func (s *Store) HasParts(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.index[key]
	return ok && e.data < e.frame
}

// Damaged reports whether a log has a damaged record of a key.
func (s *Store) Damaged(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged[key]
}

// Damage returns an error if a log has damaged records, and nil else.
func (s *Store) Damage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.logs {
		if l.Damaged > 0 {
			return fmt.Errorf("%s is damaged in %d places", filepath.Join(s.dir, name), l.Damaged)
		}
	}
	return nil
}

// A Log describes a log.
type Log struct {
	Name    string
	Records []string // keys of the records that count
	Damaged int      // damaged records and stretches
	Keys    []string // of damaged records, where they are known
	Tail    int64    // bytes after the last record, as a kill leaves them
	InUse   bool     // another process appends to it, or may do so
}

// Logs describes the logs, sorted by name.
func (s *Store) Logs() []Log {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[*log][]string{}
	for key, e := range s.index {
		keys[e.log] = append(keys[e.log], key)
	}
	var out []Log
	for _, name := range slices.Sorted(maps.Keys(s.logs)) {
		l := s.logs[name]
		slices.Sort(keys[l])
		out = append(out, Log{name, keys[l], l.Damaged, l.Keys, l.size - l.End, s.inUse(name)})
	}
	return out
}

// inUse reports whether another process uses a log. Where the file system has no locks, nobody
// knows, and it returns false. The caller holds s.writing.
func (s *Store) inUse(name string) bool {
	if s.owns(name) {
		return false
	}
	held, _ := filelock.Held(filepath.Join(s.dir, name))
	return held
}

// maxOpen is the number of logs up to which they are kept open for reading.
const maxOpen = 256

func (s *Store) fileOf(l *log) (file io.ReaderAt, path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = filepath.Join(s.dir, l.name)
	if l.file != nil {
		return l.file, path, nil
	}
	f, err := s.open(path)
	if err != nil {
		return nil, path, err
	}
	if len(s.logs) <= maxOpen {
		l.file = f
	}
	return f, path, nil
}
