package fetch

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
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

// TestBuckets reads objects of a bucket in memory, and files by file:// addresses. newCache returns
// an empty cache, and content1 are 40,000 bytes. want fetches an address and compares the content;
// refuse expects an error with the given texts. "": no SHA-256 is expected.
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
		t.Fatalf("error %v, opened %q, want mem://store?region=x", err, opened)
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

// TestGCS reads objects of Google Cloud Storage, anonymously and as a service account, from a
// server that implements what reading needs of its API and of its token endpoint. serve starts the
// server.
func TestGCS(t *testing.T) {
	var tokens atomic.Int64
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		authorised := r.Header.Get("Authorization") == "Bearer secret-token"
		switch {
		case r.URL.Path == "/token":
			tokens.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"access_token": "secret-token", "token_type": "Bearer", "expires_in": 3600}`))
		case r.URL.Path == "/public/a b.npy" && r.Header.Get("Authorization") == "", r.URL.Path == "/bucket/models/net.onnx" && authorised:
			w.Header().Set("ETag", `"one"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content1))
		case authorised:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	c.GCS = s.URL
	want(t, c, "gs://public/a%20b.npy?anonymous=true", "", content1)

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "test@example.com", "private_key_id": "1", "token_uri": s.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, account, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	want(t, c, "gs://bucket/models/net.onnx", "", content1)
	if tokens.Load() == 0 {
		t.Error("no token was requested")
	}
	refuse(t, c, "gs://bucket/models/none.onnx", "", "404")
	refuse(t, c, "gs://private/net.onnx?anonymous=true", "", "403")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file+".missing")
	refuse(t, c, "gs://bucket/models/other.onnx", "", "no such file")
}

// TestS3 reads an object from a server that implements what reading needs of the API of S3, and
// that closes the connection in the middle of its first response with the whole object.
func TestS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var wholeRequests atomic.Int64 // requests for the whole object, not for a range
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bucket/models/net.onnx" || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", `"one"`)
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" || r.Header.Get("Range") == "bytes=0-" {
			if wholeRequests.Add(1) == 1 {
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
	if wholeRequests.Load() == 0 {
		t.Error("the response was not interrupted: the whole object was never requested")
	}
	refuse(t, c, "s3://bucket/models/none.onnx"+query, "", "there is no such file")
}
