package webguard

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestAllows checks which Host headers are allowed for a server that listens at an address. The
// further names are those that its user allows.
func TestAllows(t *testing.T) {
	t.Parallel()
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		listen  string
		more    []string // further names
		allowed []string
		refused []string
	}{
		{"localhost:9090", nil, []string{"localhost", "LOCALHOST:9090", "127.0.0.1:9090", "127.8.9.1", "[::1]:9090", "localhost."},
			[]string{"evil.example", "evil.example:9090", "localhost.evil.example", "10.0.0.7:9090", "", name + ".evil.example"}},
		{"127.0.0.1:0", []string{"Box.lan"}, []string{"box.lan:80"}, []string{"lan", "xbox.lan"}},
		{":9090", nil, []string{"10.0.0.7:9090", "[2001:db8::1]:9090", strings.ToUpper(name), "localhost"}, []string{"evil.example"}},
		{"node7:9090", nil, []string{"node7:9090", "192.168.1.1"}, []string{"node8:9090"}},
	} {
		h := For(c.listen, c.more...)
		for _, host := range c.allowed {
			if !h.allows(host) {
				t.Errorf("host %q is refused by a server at %s", host, c.listen)
			}
		}
		for _, host := range c.refused {
			if h.allows(host) {
				t.Errorf("host %q is allowed by a server at %s", host, c.listen)
			}
		}
	}
}

// Local reports whether an address can be reached from this machine alone.
func TestLocal(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{"localhost:1": true, "127.0.0.1:1": true, "[::1]:1": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "[::]:1": false, "nonsense": false} {
		if Local(listen) != want {
			t.Errorf("Local(%q) is %v", listen, !want)
		}
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	guarded := For("localhost:1").Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("secret")) }))
	for host, want := range map[string]int{"localhost:1": 200, "evil.example:1": http.StatusMisdirectedRequest} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != want || want != 200 && strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: status %d, body %s; want %d", host, w.Code, w.Body, want)
		}
	}
}
