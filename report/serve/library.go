package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// What is looked at for runs.
const (
	deepest  = 8     // folders beneath each other
	mostRuns = 10000 // in all
	fresh    = 2 * time.Second
)

// A library is what the folders hold.
type library struct {
	roots []root

	mutex sync.Mutex
	found []*run
	at    time.Time
}

// A root is one of the folders served.
type root struct {
	measures []measure.Descriptor // of runs whose records hold none
	dir      string               // absolute
	name     string               // told apart from the others
	open     *os.Root
}

func openLibrary(dirs []string, measures []measure.Descriptor) (*library, error) {
	l := &library{}
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		open, err := os.OpenRoot(abs)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("serving %s: %w", dir, err)
		}
		l.roots = append(l.roots, root{measures, abs, filepath.Base(abs), open})
	}
	return l, nil
}

func (l *library) close() error {
	var errs []error
	for _, r := range l.roots {
		errs = append(errs, r.open.Close())
	}
	return errors.Join(errs...)
}

// runs lists the runs, the latest first. The folders are walked through again after a while, so
// that new runs appear.
func (l *library) runs() []*run {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if time.Since(l.at) < fresh {
		return l.found
	}
	known := map[string]*run{}
	for _, r := range l.found {
		known[r.id] = r
	}
	l.found = nil
	for i := range l.roots {
		l.walk(&l.roots[i], known)
	}
	slices.SortStableFunc(l.found, func(a, b *run) int { return b.started.Compare(a.started) })
	l.at = time.Now()
	return l.found
}

// walk finds run folders: those with a record. It does not look into them, nor follow links to
// other folders.
func (l *library) walk(from *root, known map[string]*run) {
	fs.WalkDir(from.open.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read is not served
		case !entry.IsDir():
			return nil
		case strings.Count(name, "/") >= deepest || len(l.found) >= mostRuns || name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		}
		r := &run{id: idOf(from.dir, name), root: from, path: name}
		if before := known[r.id]; before != nil {
			r = before
		}
		record, err := r.record()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			r.started = record.Started
			l.found = append(l.found, r)
		}
		return fs.SkipDir
	})
}

// idOf names a run in addresses: always the same, and with nothing in it of what somebody called a
// folder.
func idOf(root, name string) string {
	sum := sha256.Sum256([]byte(root + "\x00" + name))
	return hex.EncodeToString(sum[:8])
}

// run returns the run of an id.
func (l *library) run(id string) (*run, error) {
	for _, r := range l.runs() {
		if r.id == id {
			return r, nil
		}
	}
	return nil, problemf(404, "there is no such run")
}

// A run is a run folder.
type run struct {
	id      string
	root    *root
	path    string // within the root, with slashes
	started time.Time

	mutex sync.Mutex
	seen  os.FileInfo // of the run.json that is known
	known scores.Record
}

// name is what people call the run: its path, with the folder's own name where it is the folder.
func (r *run) name() string {
	if r.path == "." {
		return r.root.name
	}
	return path.Join(r.root.name, r.path)
}

// mostBytes bounds a file that is read whole.
const mostBytes = 1 << 30

// read reads a file of the run folder. No link leads out of the root.
func (r *run) read(name string) ([]byte, error) {
	full := path.Join(r.path, name)
	info, err := r.root.open.Stat(full)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil, fmt.Errorf("%s is no file that can be served", name)
	}
	return fs.ReadFile(r.root.open.FS(), full)
}

// record reads run.json, unless it is known and has not changed.
func (r *run) record() (scores.Record, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	info, err := r.root.open.Stat(path.Join(r.path, "run.json"))
	if err != nil {
		return scores.Record{}, err
	}
	if r.seen != nil && sameFile(r.seen, info) {
		return r.known, nil
	}
	data, err := r.read("run.json")
	if err != nil {
		return scores.Record{}, err
	}
	record, err := scores.ParseRecord(data)
	if err != nil {
		return scores.Record{}, err
	}
	if record.Measures == nil {
		record.Measures = r.root.measures
	}
	r.known, r.seen = record, info
	return record, nil
}

// sameFile reports whether a file is what it was. Records are replaced, never changed, and two may
// be written between two ticks of the clock that stamps them.
func sameFile(before, now os.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// cells reads the finished cells of the study as it is now, without what is derived from them.
func (r *run) cells(record scores.Record) ([]scores.Cell, error) {
	var out []scores.Cell
	for _, name := range r.finished(record) {
		data, err := r.read(path.Join("cells", name))
		if err != nil {
			return nil, err
		}
		cell, err := scores.ParseCell(data)
		if err != nil {
			return nil, fmt.Errorf("cells/%s: %w", name, err)
		}
		out = append(out, cell)
	}
	return out, nil
}

// finished lists the files of finished cells.
func (r *run) finished(record scores.Record) []string {
	entries, _ := fs.ReadDir(r.root.open.FS(), path.Join(r.path, "cells"))
	planned := make(map[string]bool, len(record.Keys))
	for _, key := range record.Keys {
		planned[key] = true
	}
	var out []string
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".json")
		if ok && !strings.HasSuffix(key, ".samples") && !strings.HasPrefix(key, ".") && (record.Keys == nil || planned[key]) {
			out = append(out, e.Name())
		}
	}
	return out
}

// rows reads the scores: those of a finished run from scores.csv, else those of the cells that are
// done.
func (r *run) rows(record scores.Record) ([]scores.Row, error) {
	if record.Finished != nil {
		if data, err := r.read("scores.csv"); err == nil {
			return scores.ReadCSV(strings.NewReader(string(data)))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	cells, err := r.cells(record)
	if err != nil {
		return nil, err
	}
	return scores.Table(record.Study, cells, record.Failed...), nil
}

// whole reads the record with the text of the study, and the scores.
func (r *run) whole() (scores.Record, []scores.Row, error) {
	record, err := r.record()
	if err != nil {
		return record, nil, err
	}
	if text, err := r.read("study.yaml"); err == nil {
		record.Resolved = string(text)
	}
	rows, err := r.rows(record)
	return record, rows, err
}

// attachments are what the run's folder holds for the eye besides scores.
func (r *run) attachments() report.Attachments {
	folder, err := r.root.open.OpenRoot(filepath.FromSlash(r.path))
	if err != nil {
		return report.Attachments{Notes: []string{err.Error()}}
	}
	defer folder.Close()
	return report.AttachmentsIn(folder)
}

// The states of a run.
const (
	finished = "finished"
	running  = "running"
	stopped  = "stopped"
)

// asleep is how long nothing has been written of a run that is taken to have stopped: unfinished
// work is saved every minute.
const asleep = 3 * time.Minute

// Progress is how far a run is.
type Progress struct {
	Run    string `json:"run"`
	State  string `json:"state"`
	Done   int    `json:"done"`  // cells finished
	Cells  int    `json:"cells"` // cells planned
	Failed int    `json:"failed"`
	Saved  int    `json:"saved"` // files that hold unfinished work
}

// progress looks at the folder, so it knows how a run is that goes on in another process or on
// another machine.
func (r *run) progress(record scores.Record) Progress {
	p := Progress{Run: r.id, State: finished, Done: record.Done, Cells: record.Cells, Failed: len(record.Failed)}
	if record.Finished != nil {
		return p
	}
	p.Done = max(min(len(r.finished(record)), p.Cells), 0)
	last := time.Time{}
	for _, name := range []string{"run.json", "cells", "states", "shared"} {
		if info, err := r.root.open.Stat(path.Join(r.path, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	states, _ := fs.ReadDir(r.root.open.FS(), path.Join(r.path, "states"))
	for _, e := range states {
		if strings.HasSuffix(e.Name(), ".bin") {
			p.Saved++
		}
	}
	failures, _ := fs.ReadDir(r.root.open.FS(), path.Join(r.path, "failures"))
	p.Failed = max(p.Failed, len(failures))
	p.State = stopped
	if time.Since(last) < asleep {
		p.State = running
	}
	return p
}

// matches reports whether a run is one of those searched for: each word is in its name, its study,
// its models, their tags, or its data.
func (r *run) matches(record scores.Record, query string) bool {
	text := []string{r.name(), record.Study}
	for _, m := range record.Models {
		text = append(text, m.Name)
		for k, v := range m.Tags {
			text = append(text, k+":"+v)
		}
	}
	for _, d := range record.Data {
		text = append(text, d.Name)
	}
	all := strings.ToLower(strings.Join(text, "\n"))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)), func(word string) bool { return !strings.Contains(all, word) })
}
