package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/report/html"
)

// maxCacheBytes is the maximum size of cached pages in bytes.
const maxCacheBytes = 64 << 20

// A pageCache is a cache of pages with least-recently-used eviction. A page is valid as long as the
// files of its run do not change.
type pageCache struct {
	limit int

	mutex   sync.Mutex
	entries map[string]*cacheEntry
	size    int
	clock   int
}

type cacheEntry struct {
	mutex sync.Mutex // held while the page is made; concurrent requests wait
	stamp string
	text  []byte
	used  int
}

func newPageCache(most int) *pageCache {
	return &pageCache{limit: most, entries: map[string]*cacheEntry{}}
}

// get returns the cached page of the given name if it has the same stamp, and otherwise makes it.
func (k *pageCache) get(name, stamp string, make func() ([]byte, error)) ([]byte, error) {
	m := k.entry(name)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.text != nil && m.stamp == stamp {
		return m.text, nil
	}
	text, err := make()
	if err != nil {
		return nil, err
	}
	k.put(name, m, stamp, text)
	return text, nil
}

func (k *pageCache) entry(name string) *cacheEntry {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m := k.entries[name]
	if m == nil {
		m = &cacheEntry{}
		k.entries[name] = m
	}
	k.clock++
	m.used = k.clock
	return m
}

// put stores a page and evicts the least recently used ones until all fit. The text of an entry
// changes only while both mutexes are held, so holding either is enough to read it.
func (k *pageCache) put(name string, m *cacheEntry, stamp string, text []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.forget(name)
	m.stamp, m.text = stamp, text
	k.entries[name] = m
	k.size += len(text)
	for k.size > k.limit {
		k.forget(k.oldest())
	}
}

func (k *pageCache) oldest() string {
	var oldest string
	for name, m := range k.entries {
		if oldest == "" || m.used < k.entries[oldest].used {
			oldest = name
		}
	}
	return oldest
}

func (k *pageCache) forget(name string) {
	if m := k.entries[name]; m != nil {
		k.size -= len(m.text)
		delete(k.entries, name)
	}
}

// stamp returns a string that changes with the files of a run: their sizes and modification times.
func (r *run) stamp() string {
	var b strings.Builder
	look := func(name string) {
		if info, err := r.root.open.Stat(path.Join(r.path, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, name := range []string{"run.json", "study.yaml", "scores.csv", "cells", "samples.parquet", "units.parquet", "curves.parquet"} {
		look(name)
	}
	fs.WalkDir(r.root.open.FS(), path.Join(r.path, "pictures"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			look(strings.TrimPrefix(name, r.path+"/"))
		}
		return nil
	})
	return b.String()
}

// A summary is the summary of a run's scores on its page.
type summary struct {
	Scores   int
	Findings []string
}

func (s *Server) summary(r *run) (summary, error) {
	var out summary
	text, err := s.cache.get("summary "+r.id, r.stamp(), func() ([]byte, error) {
		record, err := r.record()
		if err != nil {
			return nil, err
		}
		rows, err := r.rows(record)
		if err != nil {
			return nil, err
		}
		replicates, err := r.replicates(record)
		if err != nil {
			return nil, err
		}
		out := summary{Scores: len(rows)}
		for _, s := range report.Conclusions(rows, record, replicates) {
			out.Findings = append(out.Findings, s.String())
		}
		out.Findings = append(out.Findings, report.Findings(rows, record.Measures, replicates)...)
		return json.Marshal(out)
	})
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// report returns the HTML report of a run.
func (s *Server) report(r *run) ([]byte, error) {
	return s.cache.get("report "+r.id, r.stamp(), func() ([]byte, error) {
		record, rows, err := r.recordAndRows()
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = html.Run{Rows: rows, Record: record, Attachments: r.attachments(record)}.WritePage(&b, "")
		return b.Bytes(), err
	})
}
