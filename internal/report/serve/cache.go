package serve

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

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

	making singleflight.Group // concurrent requests for one value wait for the first
	mutex  sync.Mutex         // guards the following
	kept   *simplelru.LRU[string, stamped[T]]
	size   int // in bytes, of the values that are kept
}

type stamped[T any] struct {
	stamp string
	value T
}

func newCache[T any](limit int, bytes func(T) int) *cache[T] {
	k := &cache[T]{limit: limit, bytes: bytes}
	removed := func(_ string, s stamped[T]) { k.size -= bytes(s.value) }
	k.kept, _ = simplelru.NewLRU(math.MaxInt, removed) // an error only of a number that is not positive
	return k
}

// get returns the cached value of the given name if it has the same stamp, and otherwise makes it.
func (k *cache[T]) get(name, stamp string, make func() (T, error)) (T, error) {
	made, err, _ := k.making.Do(name+"\x00"+stamp, func() (any, error) {
		k.mutex.Lock()
		s, ok := k.kept.Get(name)
		k.mutex.Unlock()
		if ok && s.stamp == stamp {
			return s, nil
		}
		value, err := make()
		if err == nil {
			k.put(name, stamped[T]{stamp, value})
		}
		return stamped[T]{stamp, value}, err
	})
	return made.(stamped[T]).value, err
}

// put keeps a value and evicts the least recently used ones until all fit.
func (k *cache[T]) put(name string, s stamped[T]) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.kept.Remove(name)
	k.kept.Add(name, s)
	k.size += k.bytes(s.value)
	for k.size > k.limit {
		k.kept.RemoveOldest()
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
		found, _ := report.Conclusions(rows, record, replicates)
		for _, s := range found {
			out.Findings = append(out.Findings, s.String())
		}
		out.Findings = append(out.Findings, report.Findings(report.Sound(rows, record), record.Measures, replicates)...)
		return out, nil
	})
}

// rows returns the scores of a run, which the caller must not change.
func (s *Server) rows(r *run, record scores.Record) ([]scores.Row, error) {
	return s.tables.get(r.id, r.stamp(), func() ([]scores.Row, error) { return r.rows(record) })
}

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
// it. Texts are cached, compressed, until the stamp changes.
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
