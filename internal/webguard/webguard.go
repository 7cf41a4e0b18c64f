// Package webguard protects a local server from DNS rebinding: a web page whose name resolves to
// 127.0.0.1 could read what the server answers. Such a page cannot send a Host header other than
// its own name, so requests with an unknown Host header are refused.
package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Hosts is the set of allowed Host headers of a server.
type Hosts struct {
	addresses bool     // all IP addresses are allowed: DNS rebinding needs a name
	names     []string // allowed names
}

// For returns the allowed hosts of a server that listens at an address such as localhost:9090 or
// :9090. These are localhost, loopback addresses and the names in more. If other machines can reach
// the server, any IP address, the name of the machine and the host in listen are allowed, too.
func For(listen string, more ...string) Hosts {
	h := Hosts{names: append([]string{"localhost"}, more...)}
	if Local(listen) {
		return h
	}
	h.addresses = true
	if name, err := os.Hostname(); err == nil {
		h.names = append(h.names, name)
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		h.names = append(h.names, host)
	}
	return h
}

// Local reports whether a server that listens at an address, given as host:port, can be reached
// from this machine alone.
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

// allows reports whether a Host header is allowed.
func (h Hosts) allows(header string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return h.addresses || address.Unmap().IsLoopback()
	}
	return slices.ContainsFunc(h.names, func(name string) bool { return strings.EqualFold(name, host) })
}

// Handler wraps a handler and refuses requests whose Host header is not allowed, with status 421.
func (h Hosts) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allows(r.Host) {
			http.Error(w, "this server is not called by that name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
