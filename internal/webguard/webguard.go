// Package webguard keeps a small server on this machine from being used by web pages elsewhere. A page may not read what another
// origin answers, but it may have its own name resolved to 127.0.0.1 and so become the same origin (DNS rebinding); what it cannot do is
// to send a Host header other than its own name.
package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Hosts are the names by which a server may be called.
type Hosts struct {
	addresses bool // any IP address, as one is no name that could be rebound
	names     []string
}

// For returns the hosts of a server that listens at an address such as localhost:9090 or :9090, and further names that the user
// has given. One that listens on this machine alone is called localhost or by a loopback address; another one by any address, by the
// machine's name, or by the name that it listens at.
func For(listen string, more ...string) Hosts {
	h := Hosts{names: append([]string{"localhost"}, lower(more)...)}
	if Local(listen) {
		return h
	}
	h.addresses = true
	if name, err := os.Hostname(); err == nil {
		h.names = append(h.names, strings.ToLower(name))
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		h.names = append(h.names, strings.ToLower(host))
	}
	return h
}

func lower(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	return out
}

// Local reports whether an address to listen at is reached from this machine alone.
func Local(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Allows reports whether a Host header names the server.
func (h Hosts) Allows(header string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return h.addresses || address.Unmap().IsLoopback()
	}
	return slices.Contains(h.names, host)
}

// Handler passes on the requests that name the server, and refuses the others.
func (h Hosts) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Allows(r.Host) {
			http.Error(w, "this server is not called by that name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
