package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Limits on the search for runs.
const (
	maxDepth       = 8               // depth of nested folders
	maxRuns        = 10000           // in total
	rescanInterval = 2 * time.Second // time after which folders are searched again
)

// A library finds and reads the runs in the served folders.
type library struct {
	roots []root

	mutex    sync.Mutex
	found    []*run    // by the last search
	rejected []string  // by the last search: folders whose record cannot be read, and why
	scanned  time.Time // end of the last search
}

// A root is one of the served folders.
type root struct {
	measures []measure.Descriptor // titles etc. of measures, for runs whose records lack them
	dir      string               // absolute
	name     string               // base name of dir, with its parent's in front if several roots have the same
	open     *os.Root
}

// openLibrary opens folders. measures has the descriptors for runs whose records have none.
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
	l.distinguishNames()
	return l, nil
}

// distinguishNames puts the names of their parents in front of equal names of folders.
func (l *library) distinguishNames() {
	names := map[string]int{}
	for _, r := range l.roots {
		names[r.name]++
	}
	for i := range l.roots {
		if r := &l.roots[i]; names[r.name] > 1 {
			r.name = filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(r.dir)), r.name))
		}
	}
}

func (l *library) close() error {
	var errs []error
	for _, r := range l.roots {
		errs = append(errs, r.open.Close())
	}
	return errors.Join(errs...)
}

// runs returns the runs, the latest first. It searches the folders again if the last search is too
// old, so that new runs appear.
func (l *library) runs() []*run {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if time.Since(l.scanned) < rescanInterval {
		return l.found
	}
	known := map[string]*run{}
	for _, r := range l.found {
		known[r.id] = r
	}
	l.found, l.rejected = nil, nil
	for i := range l.roots {
		l.walk(&l.roots[i], known)
	}
	slices.SortStableFunc(l.found, func(a, b *run) int { return b.started.Compare(a.started) })
	l.scanned = time.Now()
	return l.found
}

// unreadable returns, of the search that runs makes, the folders whose record cannot be read, each
// with the reason.
func (l *library) unreadable() []string {
	l.runs()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.rejected
}

// walk finds run folders, those with a run.json. It does not descend into them and does not follow
// links. known holds the runs of the last search by id.
func (l *library) walk(from *root, known map[string]*run) {
	fs.WalkDir(from.open.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // skip unreadable folders
		case !entry.IsDir():
			return nil
		case strings.Count(name, "/") >= maxDepth || len(l.found) >= maxRuns || name != "." && strings.HasPrefix(path.Base(name), "."):
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
		if err != nil {
			l.rejected = append(l.rejected, fmt.Sprintf("%s: run.json: %v", r.name(), err))
			return fs.SkipDir
		}
		r.started = record.Started
		l.found = append(l.found, r)
		return fs.SkipDir
	})
}

// idOf returns the id of a run in URLs. It is stable and does not reveal folder names.
func idOf(root, name string) string {
	sum := sha256.Sum256([]byte(root + "\x00" + name))
	return hex.EncodeToString(sum[:8])
}

func (l *library) run(id string) (*run, error) {
	for _, r := range l.runs() {
		if r.id == id {
			return r, nil
		}
	}
	return nil, problemf(404, "run not found")
}

type run struct {
	id      string
	root    *root
	path    string    // within the root, with slashes
	started time.Time // when the study was started

	mutex       sync.Mutex
	recordInfo  os.FileInfo             // of the cached run.json
	stores      map[string]*store.Store // by subfolder
	recordCache scores.Record

	stamps    sync.Mutex
	stamped   time.Time // when the computation of lastStamp began
	lastStamp string    // changes with the files of the folder; see stamp
}

// name returns the display name of the run: its path, or the root's name if the root is the run
// folder.
func (r *run) name() string {
	if r.path == "." {
		return r.root.name
	}
	return path.Join(r.root.name, r.path)
}

// maxFileBytes is the maximum size of a file that is read into memory.
const maxFileBytes = 1 << 30

// read reads a file of the run folder. Links that lead out of the root are not followed.
func (r *run) read(name string) ([]byte, error) {
	full := path.Join(r.path, name)
	info, err := r.root.open.Stat(full)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s is not a regular file of acceptable size", name)
	}
	return r.root.open.ReadFile(full)
}

// record returns the contents of run.json, which are cached until the file changes.
func (r *run) record() (scores.Record, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	info, err := r.root.open.Stat(path.Join(r.path, "run.json"))
	if err != nil {
		return scores.Record{}, err
	}
	if r.recordInfo != nil && sameFile(r.recordInfo, info) {
		return r.recordCache, nil
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
	r.recordCache, r.recordInfo = record, info
	return record, nil
}

// sameFile reports whether a file is unchanged. Records are replaced, never modified, and two may
// have the same modification time, so the identity of the file is compared too.
func sameFile(before, now os.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// cells reads the finished cells of the current study, without the means over cells that
// scores.Derived computes.
func (r *run) cells(record scores.Record) ([]scores.Cell, error) {
	s, err := r.stored("cells")
	if err == nil {
		err = s.Damage()
	}
	if err != nil {
		return nil, err
	}
	var out []scores.Cell
	for _, key := range finishedKeys(s, record) {
		it, err := s.Get(key)
		if err != nil {
			return nil, err
		}
		cell, err := scores.ParseCell(it.Body)
		if err != nil {
			return nil, fmt.Errorf("%s: record %s: %w", it.Where(), key, err)
		}
		out = append(out, cell)
	}
	return out, nil
}

// stored returns the records in the logs of a subfolder.
func (r *run) stored(sub string) (*store.Store, error) {
	r.mutex.Lock()
	s := r.stores[sub]
	if s == nil {
		s = store.In(r.root.open, path.Join(r.path, sub))
		if r.stores == nil {
			r.stores = map[string]*store.Store{}
		}
		r.stores[sub] = s
	}
	r.mutex.Unlock()
	return s, s.Refresh()
}

// finishedKeys returns the keys of the finished cells that the study plans, sorted.
func finishedKeys(s *store.Store, record scores.Record) []string {
	planned := make(map[string]bool, len(record.Keys))
	for _, key := range record.Keys {
		planned[key] = true
	}
	out := slices.DeleteFunc(s.Keys(), func(key string) bool { return record.Keys != nil && !planned[key] })
	slices.Sort(out)
	return out
}

// rows returns the scores: from scores.csv for a finished run, otherwise from the finished cells.
func (r *run) rows(record scores.Record) ([]scores.Row, error) {
	if record.Finished != nil {
		if data, err := r.read("scores.csv"); err == nil {
			if sum, recorded := record.Files["scores.csv"]; recorded && sum != scores.SumOf(data) {
				return nil, errors.New("scores.csv was altered: its checksum does not match; noether check --fix repairs the folder")
			}
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

// resolved returns the record with the text of the study.
func (r *run) resolved() (scores.Record, error) {
	record, err := r.record()
	if err != nil {
		return record, err
	}
	if text, err := r.read("study.yaml"); err == nil {
		if record.Resolved, err = checksum.Check(string(text)); err != nil {
			return record, fmt.Errorf("study.yaml: %w", err)
		}
	}
	return record, nil
}

// attachments returns what the run's report shows besides scores, such as images and histograms,
// without replicates.
func (r *run) attachments() report.Attachments {
	folder, err := r.root.open.OpenRoot(filepath.FromSlash(r.path))
	if err != nil {
		return report.Attachments{Notes: []string{err.Error()}}
	}
	defer folder.Close()
	return report.AttachmentsIn(folder)
}

// replicates returns the replicates of the run's scores.
func (r *run) replicates(record scores.Record) (*report.Replicates, error) {
	cells, err := r.cells(record)
	if err != nil {
		return nil, err
	}
	return report.NewReplicates(scores.Derived(cells, record.Failed...)), nil
}

// The states of a run.
const (
	finished = "finished"
	running  = "running"
	stopped  = "stopped"
)

// stoppedAfter is the time without writes after which an unfinished run counts as stopped.
// Unfinished work is saved every minute.
const stoppedAfter = 3 * time.Minute

// Progress is the progress of a run.
type Progress struct {
	Run    string `json:"run"`    // its id
	State  string `json:"state"`  // finished, running or stopped
	Done   int    `json:"done"`   // finished cells
	Cells  int    `json:"cells"`  // planned cells
	Failed int    `json:"failed"` // number of failures
	Saved  int    `json:"saved"`  // number of cells, and of parts of cells in shards, with saved unfinished work
	// Share is the share of the forward passes that are done, or of the cells if the record does
	// not count passes. It is 1 for a finished run.
	Share float64 `json:"share"`
	Left  int     `json:"left"` // seconds that a running run is expected to take; 0: unknown
}

// Percent returns the share as a percentage.
func (p Progress) Percent() int { return int(100 * p.Share) }

// Remaining describes the time left, for instance "about 12 min left"; "" if it is unknown.
func (p Progress) Remaining() string {
	switch left := time.Duration(p.Left) * time.Second; {
	case left == 0 || p.State != running:
		return ""
	case left < 2*time.Minute:
		return fmt.Sprintf("about %d s left", p.Left)
	case left < 2*time.Hour:
		return fmt.Sprintf("about %.0f min left", math.Round(left.Minutes())) // as in serve.js: %.0f rounds halves to even
	default:
		return fmt.Sprintf("about %.0f h left", math.Round(left.Hours()))
	}
}

// progress determines the progress from the files of the folder, so it works for runs in other
// processes and on other machines.
func (r *run) progress(record scores.Record) Progress {
	p := Progress{Run: r.id, State: finished, Done: record.Done, Cells: record.Cells, Failed: len(record.Failed), Share: 1}
	if record.Finished != nil {
		return p
	}
	if cells, err := r.stored("cells"); err == nil {
		p.Done = max(min(len(finishedKeys(cells, record)), p.Cells), 0)
	}
	p.Share = float64(p.Done) / float64(max(1, p.Cells))
	last := time.Time{} // when the run last wrote into its folder
	for _, name := range slices.Concat([]string{"run.json", "cells", "states"}, r.logs("cells"), r.logs("states")) {
		if info, err := r.root.open.Stat(path.Join(r.path, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	if states, err := r.stored("states"); err == nil {
		saved := map[string]bool{}
		for _, key := range states.Keys() {
			cell, _, _ := strings.Cut(key, "/")
			saved[cell] = true
		}
		p.Saved = len(saved)
	}
	failures, _ := fs.ReadDir(r.root.open.FS(), path.Join(r.path, "failures"))
	p.Failed = max(p.Failed, len(failures))
	p.State = stopped
	if time.Since(last) < stoppedAfter {
		p.State = running
	}
	p.estimate(record, r.written())
	return p
}

// logs returns the paths of the logs in a subfolder, relative to the run folder.
func (r *run) logs(sub string) (out []string) {
	entries, _ := fs.ReadDir(r.root.open.FS(), path.Join(r.path, sub))
	for _, e := range entries {
		out = append(out, path.Join(sub, e.Name()))
	}
	return out
}

// written returns when the record was written.
func (r *run) written() time.Time {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.recordInfo == nil {
		return time.Time{}
	}
	return r.recordInfo.ModTime()
}

// estimate sets the share and the time left from the forward passes that the record counts.
func (p *Progress) estimate(record scores.Record, written time.Time) {
	w := record.Work // forward passes: done, and in total
	if w == nil || w.Total <= 0 || w.Done < 0 || w.Done > w.Total {
		return
	}
	p.Share = float64(w.Done) / float64(w.Total)
	if w.Done > 0 && record.Used != nil && p.State == running {
		left := record.Used.Seconds/float64(w.Done)*float64(w.Total-w.Done) - time.Since(written).Seconds()
		p.Left = max(1, int(left))
	}
}

// matches reports whether a run matches a query: each word must occur in its name, its study, its
// models, their tags, or its data.
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
