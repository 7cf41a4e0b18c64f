package fetch

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	bucket := memblob.OpenBucket(nil)
	if err := bucket.WriteAll(t.Context(), "models/net.onnx", content1, nil); err != nil {
		t.Fatal(err)
	}
	opened := ""
	c.Bucket = func(_ context.Context, address string) (*blob.Bucket, error) {
		opened = address
		return blob.PrefixedBucket(bucket, ""), nil
	}
	path, err := c.File(t.Context(), "mem://store/models/net.onnx?region=x", "")
	if err != nil || opened != "mem://store?region=x" {
		t.Fatalf("%v, opened %q", err, opened)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content1) {
		t.Error("the content differs")
	}
	bucket = memblob.OpenBucket(nil)
	refuse(t, c, "mem://store/none", "", "there is no such file")

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a b.npy"), content1, 0o666); err != nil {
		t.Fatal(err)
	}
	files := newCache(t)
	want(t, files, "file://"+filepath.ToSlash(dir)+"/a%20b.npy", "", content1)
	want(t, files, "file://"+filepath.ToSlash(dir)+"/a%20b.npy", "", content1)
	refuse(t, files, "file://"+filepath.ToSlash(dir)+"/none.npy", "", "there is no such file")
}

// A server that knows as much of S3 as reading an object takes.
func TestS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var ranged atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bucket/models/net.onnx" || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", `"one"`)
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" || r.Header.Get("Range") == "bytes=0-" {
			if ranged.Add(1) == 1 {
				w.Header().Set("Content-Length", strconv.Itoa(len(content1)))
				w.Write(content1[:1000])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		http.ServeContent(w, r, "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bytes.NewReader(content1))
	}))
	defer s.Close()
	c := newCache(t)
	query := "?region=us-east-1&use_path_style=true&disable_https=true&endpoint=" + s.URL
	want(t, c, "s3://bucket/models/net.onnx"+query, "", content1)
	refuse(t, c, "s3://bucket/models/none.onnx"+query, "", "there is no such file")
}
