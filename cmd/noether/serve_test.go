package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestServe checks that the server, which shows stored results in a browser, prints its address,
// answers, and ends when its context does.
func TestServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = out
	defer func() { os.Stdout = stdout }()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := &cobra.Command{}
	c.SetContext(ctx)
	t.Setenv("NOETHER_TOKEN", "")
	// The arguments: the folders to show, the address (port 0: any free one), further host names.
	go func() { done <- runServe(c, []string{t.TempDir()}, "127.0.0.1:0", nil) }()
	address := ""
	for address == "" {
		select {
		case err := <-done:
			t.Fatalf("the server ended before it printed its address: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if raw, _ := os.ReadFile(file); strings.HasSuffix(string(raw), "\n") {
			address = strings.TrimSpace(string(raw))
		}
	}
	res, err := http.Get(address + "api/v1/runs")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the server at %q answers %v, error %v; want status 200", address, res, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the server ended with error %v, want none", err)
	}
}

// TestServeNeedsTokenForOtherHosts checks that the address contains the token if there is one, that
// a token (NOETHER_TOKEN) of less than 16 characters is an error, and other errors of serve. call
// returns the exit code of the command and its message.
func TestServeNeedsTokenForOtherHosts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := addressOf(l, "127.0.0.1:0", ""); strings.Contains(got, "token") {
		t.Errorf("the address is %s, want one without a token", got)
	}
	if got := addressOf(l, ":0", "abc"); !strings.HasSuffix(got, "/?token=abc") || strings.Contains(got, "0.0.0.0") {
		t.Errorf("the address is %s, want one with ?token=abc and the name of this host", got)
	}
	t.Setenv("NOETHER_TOKEN", "short")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve"}, 2, "takes DIR"},
		{[]string{"serve", t.TempDir(), "--listen", "7410"}, 2, "HOST:PORT"},
		{[]string{"serve", t.TempDir(), "--listen", ":0"}, 1, "use at least 16"},
	} {
		if code, message := call(t, c.args...); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, message, c.code, c.want)
		}
	}
	t.Setenv("NOETHER_TOKEN", "")
	if code, message := call(t, "serve", filepath.Join(t.TempDir(), "none")); code != 1 || !strings.Contains(message, "none") {
		t.Errorf("exit %d, %q, want exit 1 and a message with %q", code, message, "none")
	}
	if code, message := call(t, "serve", t.TempDir(), "--listen", l.Addr().String()); code != 1 || !strings.Contains(message, "serving") {
		t.Errorf("a port that is taken: exit %d, %q, want exit 1 and a message with %q", code, message, "serving")
	}
}
