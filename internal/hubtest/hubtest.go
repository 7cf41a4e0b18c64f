// Package hubtest provides a server for tests. It implements those parts of the Hugging Face hub's
// interface that are needed to read a model: revisions, files with their hashes, and large files on
// a second server.
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Commit is the commit of the repository of a new server.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// A Server has one repository, org/net, whose revisions main and refs/pr/1 are one commit. Files
// whose names end in .onnx or _data are large files, which a second server holds. A gated
// repository is public, but only approved accounts may download its files. Tests may set the fields
// while no request is served.
type Server struct {
	*httptest.Server
	Files  map[string][]byte
	Token  string // that requests must send; "": none
	Gated  bool   // refuse requests without the token as a gated repository does, not a private one
	Commit string // of the revisions; New sets the constant Commit
	Kind   string // of the repository: models (default of New), or datasets

	// Hook may answer a request for the large file name. It reports whether it did. nil: no hook.
	Hook func(w http.ResponseWriter, r *http.Request, name string) bool

	large *httptest.Server
	mutex sync.Mutex
	log   []string
}

// New starts a server. It is closed at the end of the test.
func New(t *testing.T, files map[string][]byte) *Server {
	t.Helper()
	s := &Server{Files: files, Commit: Commit, Kind: "models"}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.large = httptest.NewServer(http.HandlerFunc(s.serveLarge))
	t.Cleanup(s.Server.Close)
	t.Cleanup(s.large.Close)
	return s
}

// Requests returns method, path and Range header of each request since the last call.
func (s *Server) Requests() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	out := s.log
	s.log = nil
	return out
}

// note records a request for Requests.
func (s *Server) note(r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.log = append(s.log, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
}

func refuse(w http.ResponseWriter, code int, name string) {
	w.Header().Set("X-Error-Code", name)
	w.WriteHeader(code)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	authorised := s.Token == "" || r.Header.Get("Authorization") == "Bearer "+s.Token
	path := r.URL.EscapedPath()
	page := "/org/net/"
	if s.Kind == "datasets" {
		page = "/datasets/org/net/"
	}
	revision, ofRevision := strings.CutPrefix(path, "/api/"+s.Kind+"/org/net/revision/")
	name, ofFile := strings.CutPrefix(path, page+"resolve/"+s.Commit+"/")
	switch {
	case s.Gated && !authorised:
		refuse(w, http.StatusUnauthorized, "GatedRepo")
	case !authorised || !ofRevision && !strings.HasPrefix(path, page):
		refuse(w, http.StatusUnauthorized, "RepoNotFound")
	case ofRevision && revision != "main" && revision != s.Commit && revision != "refs%2Fpr%2F1":
		refuse(w, http.StatusNotFound, "RevisionNotFound")
	case ofRevision:
		s.serveRevision(w)
	case !ofFile || s.Files[name] == nil:
		refuse(w, http.StatusNotFound, "EntryNotFound")
	default:
		s.serveFile(w, r, name)
	}
}

// serveRevision lists the files of the commit.
func (s *Server) serveRevision(w http.ResponseWriter) {
	var about struct {
		SHA      string              `json:"sha"`
		Siblings []map[string]string `json:"siblings"`
	}
	about.SHA = s.Commit
	for name := range s.Files {
		about.Siblings = append(about.Siblings, map[string]string{"rfilename": name})
	}
	json.NewEncoder(w).Encode(about)
}

// serveFile serves a small file, or redirects to the server of large files.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	data := s.Files[name]
	w.Header().Set("X-Repo-Commit", s.Commit)
	if strings.HasSuffix(name, ".onnx") || strings.HasSuffix(name, "_data") {
		sum := sha256.Sum256(data)
		w.Header().Set("X-Linked-Etag", `"`+hex.EncodeToString(sum[:])+`"`)
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
		// Another name, so that it is another server to a client.
		w.Header().Set("Location", strings.Replace(s.large.URL, "127.0.0.1", "localhost", 1)+"/"+name)
		w.WriteHeader(http.StatusFound)
		return
	}
	w.Header().Set("ETag", `"`+GitHash(data)+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

func (s *Server) serveLarge(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	name := strings.TrimPrefix(r.URL.Path, "/")
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "the token went to another server", http.StatusBadRequest)
		return
	}
	if s.Hook != nil && s.Hook(w, r, name) {
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(s.Files[name]))
}

// GitHash returns the hexadecimal SHA-1 by which Git identifies the content of a file.
func GitHash(data []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
	return hex.EncodeToString(sum[:])
}
