// Package serve serves a folder of runs to the browser: a searchable list, each run with its report
// and its progress, and comparisons of runs or models. The same data are available as JSON, CSV and
// Parquet.
//
//	s, err := serve.New(serve.Options{Dirs: []string{"runs"}})
//	defer s.Close()
//	l, err := net.Listen("tcp", "localhost:8080")
//	err = s.Serve(ctx, l, "localhost:8080")
//
// The server only reads. It serves nothing but the runs within its folders: files are opened
// through os.Root, which does not follow "..", absolute paths or symbolic links out of the folder,
// and URLs identify runs by a hash, not by a path. A request must use one of the server's host
// names (see package webguard) and, if a token is set, carry the token. Every page has a content
// security policy that allows only the server's own scripts, styles and data.
package serve

import (
	"cmp"
	"context"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/webguard"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Options are the options of New.
type Options struct {
	Dirs  []string // run folders, or folders that contain run folders at any depth
	Hosts []string // additional host names of the server
	Token string   // token that requests must carry; "" means none
	// Measures holds the descriptors of measures for runs whose records have none.
	Measures []measure.Descriptor
	// Every is the interval at which the progress of unfinished runs is checked; 0 means one
	// second.
	Every time.Duration
}

// A Server serves runs.
type Server struct {
	library        *library
	pages          *cache[[]byte] // compressed answers by URL
	tables         *cache[[]scores.Row]
	matrixCache    *cache[[]runMatrix]
	summaryCache   *cache[summary]
	replicateCache *cache[*report.Replicates]
	options        Options
	mux            *http.ServeMux
}

// New opens the folders and returns a Server.
func New(o Options) (*Server, error) {
	o.Every = cmp.Or(o.Every, time.Second)
	l, err := openLibrary(o.Dirs, o.Measures)
	if err != nil {
		return nil, err
	}
	s := &Server{library: l, options: o, mux: http.NewServeMux(),
		pages:          newCache(maxPageBytes, func(text []byte) int { return len(text) }),
		tables:         newCache(maxRowBytes, rowBytes),
		matrixCache:    newCache(maxPageBytes, matrixBytes),
		summaryCache:   newCache(maxSummaries, func(summary) int { return 1 }),
		replicateCache: newCache(maxReplicates, func(*report.Replicates) int { return 1 })}
	s.routes()
	return s, nil
}

// Close closes the folders.
func (s *Server) Close() error { return s.library.close() }

func (s *Server) routes() {
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                             s.listPage,
		"GET /":                                s.noPage,
		"GET /runs/{id}":                       s.ofRun(s.runPage),
		"GET /runs/{id}/report":                s.ofRun(s.reportPage),
		"GET /compare":                         s.comparePage,
		"GET /compare/report":                  s.compareReport,
		"GET /assets/{name}":                   s.asset,
		"GET /api/v1/openapi.json":             s.openAPI,
		"GET /api/v1/runs":                     s.apiRuns,
		"GET /api/v1/runs/{id}":                s.ofRun(s.apiRun),
		"GET /api/v1/runs/{id}/scores":         s.ofRun(s.apiScores),
		"GET /api/v1/runs/{id}/scores.csv":     s.ofRun(s.apiCSV),
		"GET /api/v1/runs/{id}/scores.parquet": s.ofRun(s.apiParquet),
		"GET /api/v1/compare":                  s.apiCompare,
		"GET /api/v1/events":                   s.events,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				fail(w, r, err)
			}
		})
	}
}

// ofRun returns a handler that passes the run that the URL names.
func (s *Server) ofRun(handle func(http.ResponseWriter, *http.Request, *run) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		run, err := s.library.run(r.PathValue("id"))
		if err != nil {
			return err
		}
		return handle(w, r, run)
	}
}

// A problem is an error caused by the client's request.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// fail answers a request with an error: as JSON below /api/, otherwise as a page.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var p *problem
	switch {
	case errors.As(err, &p):
		status = p.status
	case r.Context().Err() != nil:
		return // the client has disconnected
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		writeJSON(w, status, map[string]string{"error": err.Error()})
		return
	}
	errorPage(w, status, err.Error())
}

// Handler returns the handler of a server that listens on the address listen.
func (s *Server) Handler(listen string) http.Handler {
	return webguard.For(listen, s.options.Hosts...).Handler(headers(s.authorised(s.mux)))
}

// policy allows the server's own scripts, styles and data only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// cookie is the name of the cookie that holds the token.
const cookie = "noether-token"

// authorised requires the token in the header Authorization, in a cookie or, on the first visit, in
// the URL. From the URL it is moved to the cookie by a redirection, so that it does not remain in
// the browser's history.
func (s *Server) authorised(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			bearer = ""
		}
		if c, err := r.Cookie(cookie); s.isToken(bearer) || err == nil && s.isToken(c.Value) {
			next.ServeHTTP(w, r)
			return
		}
		query := r.URL.Query()
		if s.isToken(query.Get("token")) && r.Method == http.MethodGet {
			query.Del("token")
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.options.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			target := *r.URL
			target.RawQuery = query.Encode()
			http.Redirect(w, r, "/"+strings.TrimLeft(target.RequestURI(), "/"), http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="noether"`)
		fail(w, r, problemf(http.StatusUnauthorized, "this server needs its token: open the address that it printed, with ?token= at its end"))
	})
}

func (s *Server) isToken(token string) bool {
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

// shutdownTimeout is the time that requests have to finish when the server stops.
const shutdownTimeout = 2 * time.Second

// Serve serves on a listener until the context is cancelled, then lets requests finish. listen is
// the address of the listener, from which the server's host names follow.
func (s *Server) Serve(ctx context.Context, l net.Listener, listen string) error {
	// Event streams end with the context; other requests have time to finish.
	web := &http.Server{
		Handler: s.Handler(listen), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- web.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := web.Shutdown(ending); err != nil {
		return web.Close()
	}
	return nil
}
