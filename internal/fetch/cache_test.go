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

// TestManyProcessesFetchOnce checks that caches in one folder download a URL once. newCache returns
// an empty cache, serve starts a server that it trusts, and content1 are 40,000 bytes. File takes
// the expected SHA-256 of the content, or "".
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
		t.Errorf("%d downloads, want 1", gets.Load())
	}
}

func TestEvictsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	c.Size = 25_000 // room for two contents of 10,000 bytes, not for three
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat(r.URL.Path, 10_000/len(r.URL.Path)))
	})
	for i := range 4 {
		path, err := c.File(t.Context(), fmt.Sprintf("%s/%d", s.URL, i), "")
		if err != nil {
			t.Fatal(err)
		}
		// The file used has the time of the last use, and a process that uses the content locks it.
		// The first three get unlocked, as if their process had ended; the last stays in use.
		dir := filepath.Dir(path)
		held.Lock()
		if i < 3 {
			held.locks[filepath.Join(dir, "used")].Close()
			delete(held.locks, filepath.Join(dir, "used"))
		}
		held.Unlock()
		past := time.Now().Add(time.Duration(i-10) * time.Hour)
		if i == 1 {
			past = time.Now() // used again, so the first and the third are removed
		}
		os.Chtimes(filepath.Join(dir, "used"), past, past)
	}
	c.evict() // removes contents that are not in use, until at most c.Size bytes are left
	left, _ := filepath.Glob(c.path("content", "*", "data"))
	if len(left) != 2 {
		t.Errorf("%d contents are left of 4 in a cache with room for 2, want 2", len(left))
	}
	c.Size = 1
	c.evict()
	if left, _ := filepath.Glob(c.path("content", "*", "data")); len(left) != 1 {
		t.Errorf("%d contents are left, want 1, which is in use", len(left))
	}
}

// TestExternalFiles checks that Model downloads a model with its files of external weights. The
// function list returns their names. The argument before it is the expected SHA-256 of the model,
// or "".
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
	weightsOf := func(path string) string {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), "data", "net.bin"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if weightsOf(path) != "weights 1" || filepath.Base(path) != "net.onnx" {
		t.Errorf("the path is %s, want net.onnx with its weights", path)
	}
	weights = "weights 2" // the same graph with other weights is a second model; the first stays
	second, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list("data/net.bin"))
	if err != nil || weightsOf(second) != "weights 2" || weightsOf(path) != "weights 1" {
		t.Errorf("error %v, want both models with weights of their own", err)
	}
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("alone")), list()); err != nil {
		t.Error(err)
	}
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("other")), list()); err == nil || !strings.Contains(err.Error(), "different file") {
		t.Errorf("a model of another hash: error %v, want one with %q", err, "different file")
	}
	noModel := func(string) ([]string, error) { return nil, errors.New("is no model") }
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx", hexSum([]byte("other")), noModel); err == nil || !strings.Contains(err.Error(), "different file") {
		t.Errorf("a file that is no model and has another hash: error %v, want one with %q", err, "different file")
	}
	upper := strings.ToUpper(hexSum([]byte("alone")))
	if _, err := c.Model(t.Context(), s.URL+"/m/alone.onnx#sha256="+upper, strings.ToLower(upper), list()); err != nil {
		t.Errorf("a hash in upper case in the URL and in lower case as argument: %v", err)
	}
	for _, name := range []string{"../x", "/etc/passwd", `a\b`, "none.bin"} {
		if _, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list(name)); err == nil {
			t.Errorf("a model with weights in %s has no error", name)
		}
	}
}

// TestCacheRemovesLeftovers checks that the cache removes what killed processes left in it, unless
// it was modified within a day, or within a minute where no process has locked it.
func TestCacheRemovesLeftovers(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) { w.Write(content1) })
	now := time.Now()
	old, young := now.Add(-25*time.Hour), now.Add(-23*time.Hour)
	content, other := "content/"+hexSum([]byte("one")), "content/"+hexSum([]byte("other"))
	// Temporary files and folders (with a slash at the end): unfinished downloads, entries of URLs
	// that were being written, contents that were being removed, and archives that were being
	// unpacked.
	left := map[string]time.Time{
		"parts/0": old, "parts/1": young,
		"urls/.0.json.0123456789abcdef.tmp": old, "urls/.1.json.0123456789abcdef.tmp": now,
		content + ".old/": old, other + ".old/": young,
		content + "/.tree.sha256.0123456789abcdef.tmp": old, content + "/.tree.sha256.0123456789abcdee.tmp": young,
		content + "/.unpacking-0/": old, content + "/.unpacking-1/": now,
		content + "/tree.old-0/": old, content + "/tree.old-1/": young,
	}
	for name, modified := range left {
		file := c.path(name)
		if strings.HasSuffix(name, "/") {
			file = filepath.Join(file, "a")
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte("x"), 0o666), os.Chtimes(c.path(name), modified, modified)); err != nil {
			t.Fatal(err)
		}
	}
	want(t, c, s.URL+"/x", "", content1) // a download, which also removes what is left
	for name, modified := range left {
		if _, err := os.Stat(c.path(name)); (err == nil) != (modified != old) {
			t.Errorf("%s, modified %v: %v", name, modified, err)
		}
	}
}

// TestDiskUse checks that hard links to one file count once. A bundle is a folder with links to a
// model and its external weights.
func TestDiskUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	bundle := filepath.Join(dir, bundlePrefix+"0123456789abcdef")
	err := errors.Join(os.WriteFile(data, make([]byte, 1000), 0o666), os.Mkdir(bundle, 0o777),
		os.Link(data, filepath.Join(dir, "model.onnx")), os.Link(data, filepath.Join(bundle, "model.onnx")),
		os.WriteFile(filepath.Join(bundle, "model.onnx_data"), make([]byte, 100), 0o666),
		os.MkdirAll(filepath.Join(dir, "tree", "a"), 0o777), os.WriteFile(filepath.Join(dir, "tree", "a", "b"), make([]byte, 10), 0o666))
	if err != nil {
		t.Fatal(err)
	}
	if got := diskUse(dir); got != 1110 {
		t.Errorf("%d bytes, want 1110: a model with two more links, its weights and a file of an archive", got)
	}
}
