package oip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// TokenVariable names the environment variable that holds a bearer token for servers. It is sent
// over TLS and to this machine alone.
const TokenVariable = "NOETHER_SERVER_TOKEN"

// An address is where a model is.
type address struct {
	socket string // path of a Unix socket; "": TCP
	server string // such as http://localhost:8000, without a slash at the end
	model  string // path of the model with its version, such as /v2/models/resnet50/versions/3

	timeout time.Duration // until the server begins its answer
}

func parseAddress(text, version string) (address, error) {
	var a address
	raw := text
	if rest, ok := strings.CutPrefix(text, "unix:"); ok {
		socket, path, found := strings.Cut(rest, ":")
		if !found || socket == "" {
			return a, fmt.Errorf("%s: the address of a model at a Unix socket is unix:SOCKET:/v2/models/NAME", text)
		}
		a.socket, raw = socket, "http://socket"+path
	}
	u, err := url.Parse(raw)
	if err != nil {
		return a, err
	}
	base, name, found := strings.Cut(strings.TrimSuffix(u.EscapedPath(), "/"), "/v2/models/")
	_, written, versioned := strings.Cut(name, "/versions/")
	switch {
	case u.User != nil || u.RawQuery != "":
		return a, fmt.Errorf("the address of a model has no user and no query, which run folders would contain: set %s to a token", TokenVariable)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return a, fmt.Errorf("%s: the address of a model begins with http, https or unix", text)
	case !found || name == "":
		return a, fmt.Errorf("%s: the address of a model ends in /v2/models/NAME", text)
	case versioned && version != "" && written != url.PathEscape(version):
		return a, fmt.Errorf("%s has the version %s, and version is %s: leave out one", text, written, version)
	case !versioned && version != "":
		name += "/versions/" + url.PathEscape(version)
	}
	a.server = u.Scheme + "://" + u.Host + base
	a.model = "/v2/models/" + name
	a.timeout, err = responseTimeout()
	return a, err
}

// local reports whether requests do not leave this machine.
func (a address) local() bool {
	u, err := url.Parse(a.server)
	if a.socket != "" || err != nil {
		return err == nil
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// token returns the bearer token, if there is one. It is an error if it would be sent in the clear.
func (a address) token() (string, error) {
	token := strings.TrimSpace(os.Getenv(TokenVariable)) // a file ends in a newline
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s contains a space or a line break, which no token has", TokenVariable)
	}
	if token != "" && !a.local() && !strings.HasPrefix(a.server, "https://") {
		return "", fmt.Errorf("%s is set, and %s would get it unencrypted: use an https address, or unset it", TokenVariable, a.server)
	}
	return token, nil
}

func (a address) transport(connections int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // sizes of binary data are those of the body
	t.MaxIdleConnsPerHost = connections
	t.ResponseHeaderTimeout = a.timeout
	if a.socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "unix", a.socket)
		}
	}
	return t
}

// TimeoutVariable names the environment variable with the time that a server may take to begin an
// answer, such as 10m; without it, two minutes.
const TimeoutVariable = "NOETHER_SERVER_TIMEOUT"

func responseTimeout() (time.Duration, error) {
	text := os.Getenv(TimeoutVariable)
	if text == "" {
		return 2 * time.Minute, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s is %q: it must be a time such as 10m", TimeoutVariable, text)
	}
	return d, nil
}

// sameServer refuses redirections to another server, which would get the samples.
func sameServer(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		return fmt.Errorf("the server redirects to %s://%s: give that address", r.URL.Scheme, r.URL.Host)
	}
	if len(via) > 5 {
		return errors.New("the server redirects again and again")
	}
	return nil
}
