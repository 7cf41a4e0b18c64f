package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestManyProcessesFetchOnce(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	var gets atomic.Int64
	s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) {
		gets.Add(1)
		time.Sleep(50 * time.Millisecond)
		w.Write(content1)
	})
	var wait sync.WaitGroup
	for range 8 {
		other := *c // like the cache of another process
		wait.Go(func() {
			if _, err := other.File(t.Context(), s.URL+"/x", hexSum(content1)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if gets.Load() != 1 {
		t.Errorf("%d downloads", gets.Load())
	}
}

func TestEvictsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	c.Size = 25_000
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat(r.URL.Path, 10_000/len(r.URL.Path)))
	})
	for i := range 4 {
		path, err := c.File(t.Context(), fmt.Sprintf("%s/%d", s.URL, i), "")
		if err != nil {
			t.Fatal(err)
		}
		// As if a process that has ended had fetched it an hour ago.
		dir := filepath.Dir(path)
		held.Lock()
		if i < 3 {
			held.locks[filepath.Join(dir, "used")].Close()
			delete(held.locks, filepath.Join(dir, "used"))
		}
		held.Unlock()
		past := time.Now().Add(time.Duration(i-10) * time.Hour)
		if i == 1 {
			past = time.Now() // the second was used again
		}
		os.Chtimes(filepath.Join(dir, "used"), past, past)
	}
	c.evict()
	left, _ := filepath.Glob(c.path("content", "*", "data"))
	if len(left) != 2 {
		t.Errorf("%d contents are left of 4 that are two too many", len(left))
	}
	c.Size = 1
	c.evict()
	if left, _ := filepath.Glob(c.path("content", "*", "data")); len(left) != 1 {
		t.Errorf("%d contents are left; the one in use should be", len(left))
	}
}

func TestExternalFiles(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	weights := "weights 1"
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/m/net.onnx":
			w.Write([]byte("graph"))
		case "/m/data/net.bin":
			io.WriteString(w, weights)
		case "/m/alone.onnx":
			w.Write([]byte("alone"))
		default:
			http.NotFound(w, r)
		}
	})
	list := func(names ...string) func(string) ([]string, error) {
		return func(string) ([]string, error) { return names, nil }
	}
	path, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list("data/net.bin"))
	if err != nil {
		t.Fatal(err)
	}
	beside := func(path string) string {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), "data", "net.bin"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if beside(path) != "weights 1" || filepath.Base(path) != "net.onnx" {
		t.Errorf("%s", path)
	}
	weights = "weights 2" // the same graph with other weights is a second model; the first stays
	second, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list("data/net.bin"))
	if err != nil || beside(second) != "weights 2" || beside(path) != "weights 1" {
		t.Errorf("%v", err)
	}
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("alone")), list()); err != nil {
		t.Error(err)
	}
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("other")), list()); err == nil || !strings.Contains(err.Error(), "different file") {
		t.Errorf("a model of another hash: %v", err)
	}
	noModel := func(string) ([]string, error) { return nil, errors.New("is no model") }
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("other")), noModel); err == nil || !strings.Contains(err.Error(), "different file") {
		t.Errorf("what is no model and has another hash: %v", err)
	}
	upper := strings.ToUpper(hexSum([]byte("alone")))
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx#sha256="+upper, strings.ToLower(upper), list()); err != nil {
		t.Errorf("one hash in capitals and not: %v", err)
	}
	for _, name := range []string{"../x", "/etc/passwd", `a\b`, "none.bin"} {
		if _, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list(name)); err == nil {
			t.Errorf("weights in %s are had", name)
		}
	}
}
