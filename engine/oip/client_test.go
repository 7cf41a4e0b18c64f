package oip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine"
)

// TestStandsStill checks that a connection ends on which nothing arrives any more, and an encoded
// answer is refused.
func TestStandsStill(t *testing.T) {
	t.Parallel()
	s, done := &server{}, make(chan struct{})
	n := open(t, s)
	t.Cleanup(func() { close(done) })
	if _, err := n.Layers(t.Context(), feed(engine.Float)); err != nil {
		t.Fatal(err)
	}
	n.client.timeout, n.client.tries = 50*time.Millisecond, 2
	s.requests.Store(0)
	s.before = func(w http.ResponseWriter) bool {
		fmt.Fprint(w, `{"outputs": [`)
		_ = http.NewResponseController(w).Flush()
		<-done
		return true
	}
	if err := double(t, n, 2); err == nil || !strings.Contains(err.Error(), "stood still for 100ms (tried 2 times)") || s.requests.Load() != 2 {
		t.Errorf("error %v after %d requests", err, s.requests.Load())
	}
	s.before = func(w http.ResponseWriter) bool {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "no JSON")
		return true
	}
	if err := double(t, n, 2); err == nil || !strings.Contains(err.Error(), `encoded as "gzip"`) {
		t.Errorf("error %v for an encoded answer", err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: &server{t: t, datatype: "FP32"}}
	go func() { _ = h.Serve(listener) }()
	t.Cleanup(func() { _ = h.Close() })
	n, err := Open(t.Context(), "unix:"+socket+":/v2/models/double", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := double(t, n, 5); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := &server{}
	n := open(t, s)
	started := make(chan struct{})
	s.before = func(http.ResponseWriter) bool {
		close(started)
		time.Sleep(300 * time.Millisecond)
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := n.Layers(ctx, feed(engine.Float))
	if !errors.Is(err, context.Canceled) || s.requests.Load() != 1 {
		t.Errorf("error %v after %d requests", err, s.requests.Load())
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:8000/v2/models/m":            "http://h:8000 /v2/models/m",
		"https://h/team/v2/models/a%2Fb":       "https://h/team /v2/models/a%2Fb",
		"http://h/v2/models/m/versions/2":      "http://h /v2/models/m/versions/2",
		"unix:/run/s:/v2/models/m":             "http://socket /v2/models/m",
		"http://user:secret@h/v2/models/m":     "error: no user",
		"http://h/v2/models/m?token=secret":    "error: no user",
		"ftp://h/v2/models/m":                  "error: begins with",
		"http://h/m":                           "error: ends in",
		"http://h/v2/models/":                  "error: ends in",
		"unix:/v2/models/m":                    "error: is unix:",
		"http://[::1/v2/models/m":              "error: missing",
		"models/resnet.onnx":                   "error: begins with",
		"http://h/v2/models/m/versions/2/":     "http://h /v2/models/m/versions/2",
		"http://localhost:1/v2/models/m%00":    "http://localhost:1 /v2/models/m%00",
		"http://h/v2/models/m/versions/2#part": "http://h /v2/models/m/versions/2",
	} {
		a, err := parseAddress(text, "")
		got := a.server + " " + a.model
		if err != nil {
			got = "error: " + err.Error()
			if strings.Contains(got, "secret") {
				t.Errorf("%s: the error %q tells the secret", text, got)
			}
		}
		if e, ok := strings.CutPrefix(want, "error: "); ok && (err == nil || !strings.Contains(got, e)) || !ok && got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if a, err := parseAddress("http://h/v2/models/m", "3"); err != nil || a.model != "/v2/models/m/versions/3" {
		t.Error(a, err)
	}
	if _, err := parseAddress("http://h/v2/models/m/versions/2", "3"); err == nil {
		t.Error("two versions are no error")
	}
}

// TestToken checks that a token reaches this machine and TLS alone.
func TestToken(t *testing.T) {
	t.Setenv(TokenVariable, "secret")
	var got atomic.Value
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(h.Close)
	if _, err := Open(t.Context(), h.URL+"/v2/models/m", Options{}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Error(err)
	}
	if got.Load() != "Bearer secret" {
		t.Errorf("header %v", got.Load())
	}
	if _, err := Open(t.Context(), "http://models.example/v2/models/m", Options{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a token in the clear: %v", err)
	}
	if a, _ := parseAddress("https://models.example/v2/models/m", ""); a.local() {
		t.Error("another machine is taken for this one")
	}
}

// TestRedirect checks that samples are not sent to another server than the given one.
func TestRedirect(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.RedirectHandler("http://models.example/v2/models/m", http.StatusTemporaryRedirect))
	t.Cleanup(h.Close)
	a, err := parseAddress(h.URL+"/v2/models/m", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(a, Options{Requests: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	if err := c.get(t.Context(), a.model, &struct{}{}); err == nil || !strings.Contains(err.Error(), "redirects to http://models.example") {
		t.Error(err)
	}
}
