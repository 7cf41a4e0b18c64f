package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

// A Hub is a server with the interface of the Hugging Face hub, and the cache that its clients
// share.
type Hub struct {
	Address string // such as https://huggingface.co
	Dir     string // the cache: a folder models--ORG--NAME or datasets--ORG--NAME for each repository
	Token   string // sent to the hub alone; "": none
	Offline bool   // use the cache alone, and download nothing
}

// defaultHub returns the hub that the environment names, by the variables of the hub's own client:
// HF_ENDPOINT, HF_HUB_CACHE, HF_HOME (else a folder of XDG_CACHE_HOME), HF_TOKEN, HF_TOKEN_PATH and
// HF_HUB_OFFLINE.
func defaultHub() (*Hub, error) {
	home := os.Getenv("HF_HOME")
	if home == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("no folder for models of the hub: set HF_HOME (%w)", err)
			}
			cache = filepath.Join(user, ".cache")
		}
		home = filepath.Join(cache, "huggingface")
	}
	token := os.Getenv("HF_TOKEN")
	if token == "" {
		raw, err := os.ReadFile(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
		if err == nil {
			token = string(raw)
		}
	}
	return &Hub{
		Address: strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/"),
		Dir:     cmp.Or(os.Getenv("HF_HUB_CACHE"), filepath.Join(home, "hub")),
		Token:   strings.TrimSpace(token),
		Offline: slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv("HF_HUB_OFFLINE"))),
	}, nil
}

// hub returns the hub that c, which downloads and stores files, downloads from. If requests would
// send the token without encryption, the returned hub has none.
func (c *Cache) hub() (*Hub, error) {
	h := c.Hub
	if h == nil {
		var err error
		if h, err = defaultHub(); err != nil {
			return nil, err
		}
	}
	if h.Token != "" && !h.isPrivate() {
		c.log("HF_ENDPOINT is %s, without encryption: the token is not sent", h.Address)
		public := *h
		h, public.Token = &public, ""
	}
	return h, nil
}

// explain returns err, the error of a request for the address a; if it is a refusal by the hub, it
// adds what the user can do about it.
func (h *Hub) explain(a uri.Hub, err error) error {
	var refusal *statusError
	if !errors.As(err, &refusal) {
		return err
	}
	page := h.Address + "/" + a.Page()
	token := "set HF_TOKEN to a token of an account that may read it"
	if h.Token != "" {
		token = "the account of the token may not read it"
	}
	switch code := refusal.header.Get("X-Error-Code"); {
	case code == "EntryNotFound":
		return err
	case code == "RevisionNotFound":
		return fmt.Errorf("the repository has no revision %q: see %s", a.Revision, page)
	case code == "GatedRepo" || refusal.code == http.StatusForbidden:
		return fmt.Errorf("access has to be granted at %s: %s (%w)", page, token, err)
	case code == "RepoNotFound" || refusal.code == http.StatusUnauthorized || refusal.code == http.StatusNotFound:
		return fmt.Errorf("there is no repository %s, or it is private: check the name, or %s (%w)", page, token, err)
	}
	return err
}

// isPrivate reports whether nobody else can read what is sent to the hub: it is sent by https, or
// to this machine.
func (h *Hub) isPrivate() bool {
	u, err := url.Parse(h.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (h *Hub) header() http.Header {
	if h.Token == "" {
		return http.Header{}
	}
	return http.Header{"Authorization": {"Bearer " + h.Token}}
}
