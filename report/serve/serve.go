// Package serve shows a folder of runs in the browser: a list that can be searched, each run with
// its report and, while it is going on, its progress, several runs or models side by side with what
// differs beyond its interval, and the same as JSON, CSV and Parquet for programs.
//
// It reads and never writes. What it serves are runs within its folders and nothing else: files are
// opened through os.Root, which no "..", absolute path or symbolic link leads out of, and runs are
// named in addresses by a hash, not by a path. A request must name the server by a name that is its
// own (see package webguard), and, where the server is reached from other machines, carry a token.
// Every page has a content security policy that allows the server's own script and style and no
// request to anywhere else.
package serve

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/webguard"
	"github.com/noether-ml/noether/measure"
)

// Options say what is served, and to whom.
type Options struct {
	Dirs  []string // folders that hold run folders, at any depth, or are one
	Hosts []string // further names of the server
	Token string   // what a request must bear; "": nothing
	// Measures describe the measures of runs whose records hold no descriptors.
	Measures []measure.Descriptor
	// Every is how often a run that is going on is looked at for its progress; 0: each second.
	Every time.Duration
}

// A Server serves runs.
type Server struct {
	library *library
	kept    *kept
	options Options
	mux     *http.ServeMux
}

// New opens the folders.
func New(o Options) (*Server, error) {
	if o.Every == 0 {
		o.Every = time.Second
	}
	l, err := openLibrary(o.Dirs, o.Measures)
	if err != nil {
		return nil, err
	}
	s := &Server{library: l, kept: newKept(mostKept), options: o, mux: http.NewServeMux()}
	s.routes()
	return s, nil
}

// Close closes the folders.
func (s *Server) Close() error { return s.library.close() }

func (s *Server) routes() {
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                             s.listPage,
		"GET /runs/{id}":                       s.runPage,
		"GET /runs/{id}/report":                s.reportPage,
		"GET /compare":                         s.comparePage,
		"GET /compare/report":                  s.compareReport,
		"GET /assets/{name}":                   s.asset,
		"GET /api/v1/openapi.json":             s.openAPI,
		"GET /api/v1/runs":                     s.apiRuns,
		"GET /api/v1/runs/{id}":                s.apiRun,
		"GET /api/v1/runs/{id}/scores":         s.apiScores,
		"GET /api/v1/runs/{id}/scores.csv":     s.apiCSV,
		"GET /api/v1/runs/{id}/scores.parquet": s.apiParquet,
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

// A problem is an error that the client made.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var p *problem
	switch {
	case errors.As(err, &p):
		status = p.status
	case r.Context().Err() != nil:
		return // nobody is there any more
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		writeJSON(w, status, map[string]string{"error": err.Error()})
		return
	}
	errorPage(w, status, err.Error())
}

// Handler serves requests for a server that listens at an address.
func (s *Server) Handler(listen string) http.Handler {
	return webguard.For(listen, s.options.Hosts...).Handler(headers(s.authorised(s.mux)))
}

// policy allows the server's own script, style and data, and nothing from anywhere else.
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

// cookie is the name of the cookie that keeps the token in a browser.
const cookie = "noether-token"

// authorised lets requests pass that bear the token: in a header, in a cookie, or, the first time,
// in the address, from where it moves to the cookie so that it stays in no history.
func (s *Server) authorised(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if c, err := r.Cookie(cookie); s.is(bearer) || err == nil && s.is(c.Value) {
			next.ServeHTTP(w, r)
			return
		}
		query := r.URL.Query()
		if s.is(query.Get("token")) && r.Method == http.MethodGet {
			query.Del("token")
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.options.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			to := *r.URL
			to.RawQuery = query.Encode()
			http.Redirect(w, r, "/"+strings.TrimLeft(to.RequestURI(), "/"), http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="noether"`)
		fail(w, r, problemf(http.StatusUnauthorized, "this server wants its token: open the address that it printed, with ?token= at its end"))
	})
}

func (s *Server) is(token string) bool {
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

// patience is how long requests have to end when the server is told to stop.
const patience = 2 * time.Second

// Serve serves at a listener until the context is over, then lets requests end.
func (s *Server) Serve(ctx context.Context, l net.Listener, listen string) error {
	// Streams of events end with the context; other requests get their time.
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
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := web.Shutdown(ending); err != nil {
		return web.Close()
	}
	return nil
}
