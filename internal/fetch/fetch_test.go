package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// content1 is the content of most files, 40,000 bytes.
var content1 = bytes.Repeat([]byte("noether "), 5000)

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// newCache returns an empty cache with few retries, short pauses and a small bound on the size of
// files. Its timeouts are the long default ones, so that tests pass on a busy machine.
func newCache(t *testing.T) *Cache {
	t.Helper()
	return &Cache{Dir: t.TempDir(), Retries: 2, Pause: time.Millisecond, MaxFile: 1 << 20}
}

// serve starts a TLS server whose certificate the cache trusts.
func serve(t *testing.T, c *Cache, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	c.Client = s.Client()
	return s
}

// want fetches a URL and compares the content. sum is the expected SHA-256, or "".
func want(t *testing.T, c *Cache, url, sum string, data []byte) string {
	t.Helper()
	path, err := c.File(t.Context(), url, sum)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s has %d bytes, want %d (%v)", path, len(got), len(data), err)
	}
	return path
}

// refuse fetches a URL that must fail, with one line that contains the given texts and no secret.
func refuse(t *testing.T, c *Cache, url, sum string, wants ...string) {
	t.Helper()
	path, err := c.File(t.Context(), url, sum)
	if err == nil {
		t.Fatalf("%s: no error, and the file is %s", url, path)
	}
	for _, s := range wants {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is not one line without secrets: %q", err)
	}
}

func TestFileIsFetchedOnceAndVerified(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	var gets atomic.Int64
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		gets.Add(1)
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content1))
	})
	url := s.URL + "/models/net.onnx?token=secret"
	path := want(t, c, url, hexSum(content1), content1)
	if filepath.Base(path) != "net.onnx" {
		t.Errorf("the file is called %s, want net.onnx", path)
	}
	want(t, c, url, hexSum(content1), content1)
	want(t, c, url+"#sha256="+hexSum(content1), "", content1)
	want(t, c, s.URL+"/elsewhere.onnx", hexSum(content1), content1) // the hash is known, not the URL
	if n := gets.Load(); n != 1 {
		t.Errorf("%d requests for a content that is known, want 1", n)
	}
	want(t, c, url, "", content1) // the server answers: not modified
	s.Close()
	want(t, c, url, "", content1) // the server is down: the stored copy is used
	refuse(t, c, s.URL+"/new.onnx", "", "tried 3 times")
	if left, _ := filepath.Glob(c.path("parts", "*")); len(left) > 0 {
		t.Errorf("partial downloads are left: %v", left)
	}
}

func TestChangedContentIsFetchedAgain(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	var version atomic.Int64
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version.Load()))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(fmt.Sprint("content ", version.Load())))
	})
	want(t, c, s.URL+"/x.npy", "", []byte("content 0"))
	version.Store(1)
	want(t, c, s.URL+"/x.npy", "", []byte("content 1"))
}

func TestDownloadResumes(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	var ranges []string
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", `"one"`)
		if len(ranges) == 1 { // half of the content, then the connection breaks
			w.Header().Set("Content-Length", strconv.Itoa(len(content1)))
			w.Write(content1[:len(content1)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content1))
	})
	want(t, c, s.URL+"/x", "", content1)
	if len(ranges) != 2 || ranges[0] != "" || !strings.HasPrefix(ranges[1], "bytes=") || ranges[1] == "bytes=0-" {
		t.Errorf("the ranges of the requests are %q, want none and then the rest", ranges)
	}
}

// TestCompletePartIsFetchedAgain checks that a download succeeds if a process that was killed after
// the last byte has left a complete file of a partial download. The server refuses to resume it:
// 416 Range Not Satisfiable.
func TestCompletePartIsFetchedAgain(t *testing.T) {
	t.Parallel()
	for name, part := range map[string][]byte{"whole": content1, "longer than the file is now": append(bytes.Clone(content1), "more"...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCache(t)
			s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"one"`)
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content1))
			})
			url := s.URL + "/x"
			about, err := parse(url, "")
			if err != nil {
				t.Fatal(err)
			}
			// A partial download, and beside it the ETag of the file on the server.
			file := c.path("parts", key(about))
			if err := errors.Join(c.prepare(), os.WriteFile(file, part, 0o666), os.WriteFile(file+".version", []byte(`"one"`), 0o666)); err != nil {
				t.Fatal(err)
			}
			want(t, c, url, "", content1)
		})
	}
}

func TestResumeNeedsSameVersion(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	n := 0
	other := bytes.ToUpper(content1)
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("ETag", `"one"`)
			w.Header().Set("Content-Length", strconv.Itoa(len(content1)))
			w.Write(content1[:1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"two"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(other))
	})
	want(t, c, s.URL+"/x", "", other)
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<16); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  []string // parts of the error
	}{
		"endless body":           {endless, []string{"bound of 1048576 bytes"}},
		"claims too much":        {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999999999") }, []string{"exceeds the bound"}},
		"redirect to a file":     {redirect("file:///etc/passwd?secret"), []string{"redirected to file:///etc/passwd", "only https"}},
		"redirect to plain http": {redirect("http://localhost/x"), []string{"redirected to http://localhost/x"}},
		"redirect to itself":     {redirect("/x"), []string{"redirected more than 5 times"}},
		"no such file":           {http.NotFound, []string{"404 Not Found"}},
		"forbidden":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, []string{"403"}},
		"always busy":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, []string{"503", "tried 3 times"}},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("short"))
		}, []string{"cut short", "tried 3 times"}},
		"says nothing": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"no byte was received for 300ms"}},
		"stops in the middle": {func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("some"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, []string{"no byte was received for 300ms"}},
		"range that was not asked for": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, []string{"206"}},
		"different file":               {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("other")) }, []string{hexSum(content1), hexSum([]byte("other")), "different file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := newCache(t)
			if name == "says nothing" || name == "stops in the middle" {
				cache.Stall = 300 * time.Millisecond
			}
			s := serve(t, cache, c.serve)
			sum := ""
			if name == "different file" {
				sum = hexSum(content1)
			}
			refuse(t, cache, s.URL+"/x?key=secret", sum, c.says...)
		})
	}
	t.Run("certificate that is not trusted", func(t *testing.T) {
		t.Parallel()
		cache := newCache(t)
		s := serve(t, cache, http.NotFound)
		cache.Client = nil
		refuse(t, cache, s.URL+"/x", "", "certificate")
	})
	t.Run("one byte every 20 ms", func(t *testing.T) {
		t.Parallel()
		cache := newCache(t)
		cache.Timeout = 500 * time.Millisecond
		s := serve(t, cache, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write([]byte("."))
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		})
		refuse(t, cache, s.URL+"/x", "", "took longer than 500ms")
	})
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	for url, says := range map[string]string{
		"http://host/x":             "not encrypted",
		"ftp://host/x":              "use https://",
		"https:///x":                "names no host",
		"https://user:secret@host/": "names no file",
		"s3://bucket/folder/":       "names no file",
		"https://host/..":           "names no file",
		"https://host/a%5Cb":        "names no file",
		"https://host/.hidden":      "names no file",
		"file://host/x":             "names a host",
		"https://host/x#sha256=12":  "not a SHA-256",
		"https://host/x#sha256=" + strings.Repeat("z", 64): "not a SHA-256",
		"https://ho st/x?secret":                           "is not a URL",
	} {
		_, err := c.File(t.Context(), url, "")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one without the secret", url, err)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", url, err, says)
		}
	}
}

// TestCancelledDownload checks that a download returns the error of its context.
func TestCancelledDownload(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.File(ctx, s.URL+"/x", ""); !errors.Is(err, context.DeadlineExceeded) { // not the error of a stalled server
		t.Errorf("error %v, want that of the context", err)
	}
}
