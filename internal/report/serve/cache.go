package serve

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// Bounds of the caches.
const (
	maxPageBytes  = 64 << 20  // of compressed answers
	maxRowBytes   = 256 << 20 // of rows in memory
	maxReplicates = 4         // runs whose replicates are in memory
	maxSummaries  = 10_000    // runs whose summaries are in memory
)

// A cache holds values with least-recently-used eviction. A value is valid as long as its stamp,
// made from the files that it depends on, does not change.
type cache[T any] struct {
	limit int
	bytes func(T) int // the size of a value

	mutex   sync.Mutex
	entries map[string]*cacheEntry[T]
	size    int
	clock   int // number of uses so far
}

type cacheEntry[T any] struct {
	mutex   sync.Mutex // held while the value is made; concurrent requests wait
	stamp   string
	valid   bool
	value   T
	bytes   int
	lastUse int // value of clock at the last use
}

func newCache[T any](limit int, bytes func(T) int) *cache[T] {
	return &cache[T]{limit: limit, bytes: bytes, entries: map[string]*cacheEntry[T]{}}
}

// get returns the cached value of the given name if it has the same stamp, and otherwise makes it.
func (k *cache[T]) get(name, stamp string, make func() (T, error)) (T, error) {
	m := k.entry(name)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.valid && m.stamp == stamp {
		return m.value, nil
	}
	value, err := make()
	if err != nil {
		k.dropUnmade(name, m)
		return value, err
	}
	k.put(name, m, stamp, value)
	return value, nil
}

// entry returns the entry of a name, which it adds if there is none, as the latest used.
func (k *cache[T]) entry(name string) *cacheEntry[T] {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m := k.entries[name]
	if m == nil {
		m = &cacheEntry[T]{}
		k.entries[name] = m
	}
	k.clock++
	m.lastUse = k.clock
	return m
}

// put stores a value and evicts the least recently used ones until all fit. The value of an entry
// changes only while both mutexes are held, so holding either is enough to read it.
func (k *cache[T]) put(name string, m *cacheEntry[T], stamp string, value T) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.remove(name)
	m.stamp, m.value, m.valid, m.bytes = stamp, value, true, k.bytes(value)
	k.entries[name] = m
	k.size += m.bytes
	for k.size > k.limit {
		k.remove(k.oldest())
	}
}

// dropUnmade removes an entry whose value could not be made, so that invalid requests leave no
// entries.
func (k *cache[T]) dropUnmade(name string, m *cacheEntry[T]) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.entries[name] == m && !m.valid {
		delete(k.entries, name)
	}
}

// oldest returns the name of the least recently used entry.
func (k *cache[T]) oldest() string {
	var oldest string
	for name, m := range k.entries {
		if oldest == "" || m.lastUse < k.entries[oldest].lastUse {
			oldest = name
		}
	}
	return oldest
}

func (k *cache[T]) remove(name string) {
	if m := k.entries[name]; m != nil {
		k.size -= m.bytes
		delete(k.entries, name)
	}
}

// stamp returns a string that changes with the files of a run: their sizes and modification times.
// Requests that wait while it is computed share the next result.
func (r *run) stamp() string {
	arrival := time.Now()
	r.stamps.Lock()
	defer r.stamps.Unlock()
	if !r.stamped.After(arrival) {
		r.stamped = time.Now()
		r.lastStamp = r.newStamp()
	}
	return r.lastStamp
}

// newStamp computes the stamp of the files of the run.
func (r *run) newStamp() string {
	var b strings.Builder
	addFile := func(name string) {
		if info, err := r.root.open.Stat(path.Join(r.path, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, name := range append([]string{"run.json", "study.yaml", "scores.csv", "samples.parquet", "units.parquet", "curves.parquet", pictures.Archive}, r.logs("cells")...) {
		addFile(name)
	}
	fs.WalkDir(r.root.open.FS(), path.Join(r.path, "pictures"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			addFile(strings.TrimPrefix(name, r.path+"/"))
		}
		return nil
	})
	return b.String()
}

// A summary is what the page of a run says about its scores: their number, and sentences on them.
type summary struct {
	Scores   int
	Findings []string
}

// summary returns the summary of a run, which is cached.
func (s *Server) summary(r *run) (summary, error) {
	return s.summaryCache.get(r.id, r.stamp(), func() (out summary, err error) {
		record, err := r.record()
		if err != nil {
			return out, err
		}
		rows, err := s.rows(r, record)
		if err != nil {
			return out, err
		}
		replicates, err := s.replicates(r, record)
		if err != nil {
			return out, err
		}
		out.Scores = len(rows)
		for _, s := range report.Conclusions(rows, record, replicates) {
			out.Findings = append(out.Findings, s.String())
		}
		out.Findings = append(out.Findings, report.Findings(rows, record.Measures, replicates)...)
		return out, nil
	})
}

// rows returns the scores of a run, which the caller must not change.
func (s *Server) rows(r *run, record scores.Record) ([]scores.Row, error) {
	return s.tables.get(r.id, r.stamp(), func() ([]scores.Row, error) { return r.rows(record) })
}

// replicates returns the replicates of a run's scores.
func (s *Server) replicates(r *run, record scores.Record) (*report.Replicates, error) {
	return s.replicateCache.get(r.id, r.stamp(), func() (*report.Replicates, error) { return r.replicates(record) })
}

// rowBytes estimates the memory of rows in bytes. Their texts are shared or short.
func rowBytes(rows []scores.Row) int { return len(rows) * (int(unsafe.Sizeof(scores.Row{})) + 128) }

// A response holds the headers of an answer, and the stamp of its text, which is cached until the
// stamp changes.
type response struct {
	kind, stamp string // kind: the media type
	disposition string // of a download
	policy      string // replaces the server's content security policy
}

// send answers a request with the text that write writes, compressed if the client can decompress
// it. Texts are cached, compressed, until the stamp changes: a client may ask for a hundred
// thousand rows, and many clients for the same.
func (s *Server) send(w http.ResponseWriter, r *http.Request, a response, write func(w io.Writer) error) error {
	text, err := s.pages.get(r.URL.Path+"?"+r.URL.Query().Encode(), a.stamp, func() ([]byte, error) {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err == nil {
			err = write(z)
		}
		if err == nil {
			err = z.Close()
		}
		return bytes.Clone(b.Bytes()), err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if a.disposition != "" {
		w.Header().Set("Content-Disposition", a.disposition)
	}
	if a.policy != "" {
		w.Header().Set("Content-Security-Policy", a.policy)
	}
	if acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, err = w.Write(text)
		return err
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}

// acceptsGzip reports whether the client names gzip among the encodings that it accepts.
func acceptsGzip(r *http.Request) bool {
	for _, encoding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(encoding, " ", ""), ";q=")
		if q, err := strconv.ParseFloat(quality, 64); name == "gzip" && (err != nil || q > 0) {
			return true
		}
	}
	return false
}
