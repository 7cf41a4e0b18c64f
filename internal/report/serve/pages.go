package serve

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/html"
	"github.com/noether-ml/noether/scores"
)

//go:embed pages.html
var pagesText string

//go:embed serve.js
var script string

//go:embed serve.css
var style string

// The function place of the templates describes what a score is about, such as model, layer and
// transformation; clean replaces control characters in a text.
var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"clean": report.Printable, "when": when, "number": report.Number, "signed": signed, "interval": report.Interval, "place": scores.Row.Describe, "tags": tags,
}).Parse(pagesText))

// when returns a time in UTC, or a dash if there is none.
func when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// signed returns a number with its sign, also if it is positive.
func signed(v float64) string {
	if v > 0 {
		return "+" + report.Number(v)
	}
	return report.Number(v)
}

// tags returns the tags of a model as "name: value" in one line.
func tags(t map[string]string) string {
	var items []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		items = append(items, k+": "+t[k])
	}
	return report.Printable(strings.Join(items, ", "))
}

const htmlType = "text/html; charset=utf-8"

// page writes a page. It renders the template first, so that an error can still change the status.
func page(w http.ResponseWriter, status int, name string, data any) error {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", htmlType)
	w.WriteHeader(status)
	_, err := io.WriteString(w, b.String())
	return err
}

func errorPage(w http.ResponseWriter, status int, text string) {
	page(w, status, "error", map[string]any{"Title": http.StatusText(status), "Text": text})
}

// assets are the files that pages load, by name.
var assets = map[string]string{"serve.js": script, "serve.css": html.Style + style}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	text, known := assets[name]
	if !known {
		return problemf(http.StatusNotFound, "file not found")
	}
	http.ServeContent(w, r, name, time.Time{}, strings.NewReader(text))
	return nil
}

// listPage shows the runs that match a query, and a matrix of their scores.
func (s *Server) listPage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query().Get("q")
	runs := s.matchingRuns(query)
	matrix, score, choices := s.overview(runs, r.URL.Query().Get("score"))
	return page(w, http.StatusOK, "list", map[string]any{
		"Matrix": matrix, "Choices": choices, "Score": score,
		"Title": "Runs", "Query": query, "Runs": runs, "Total": len(s.library.runs()), "Unreadable": s.library.unreadable(),
		// Live: a run has not ended, so the page updates itself.
		"Live": slices.ContainsFunc(runs, func(r runJSON) bool { return r.Progress.State == running }),
	})
}

func (s *Server) noPage(_ http.ResponseWriter, r *http.Request) error {
	return problemf(http.StatusNotFound, "there is no page %s", r.URL.Path)
}

func (s *Server) runPage(w http.ResponseWriter, _ *http.Request, run *run) error {
	record, err := run.record()
	if err != nil {
		return err
	}
	shown := run.json(record)
	summary, err := s.summary(run)
	if err != nil {
		return err
	}
	return page(w, http.StatusOK, "run", map[string]any{
		"Title": shown.Name, "Run": shown, "Scores": summary.Scores, "Findings": summary.Findings, "Failed": record.Failed, "Noether": record.Noether,
		"Live": shown.Progress.State == running,
	})
}

func (s *Server) reportPage(w http.ResponseWriter, r *http.Request, run *run) error {
	return s.sendReport(w, r, run.stamp(), func() (html.Run, error) {
		record, err := run.resolved()
		if err != nil {
			return html.Run{}, err
		}
		rows, err := s.rows(run, record)
		if err != nil {
			return html.Run{}, err
		}
		a := run.attachments()
		if a.Replicates, err = s.replicates(run, record); err != nil {
			a.Notes = append(a.Notes, "differences are not paired by sample: "+err.Error())
		}
		return html.Run{Rows: rows, Record: record, Attachments: a, Home: "/"}, nil
	})
}

// sendReport sends a report without the server's content security policy. The report contains a
// stricter one with the hashes of its script and style; the browser would enforce both, and the
// server's forbids inline scripts.
func (s *Server) sendReport(w http.ResponseWriter, r *http.Request, stamp string, read func() (html.Run, error)) error {
	a := response{kind: htmlType, stamp: stamp, policy: "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"}
	return s.send(w, r, a, func(w io.Writer) error {
		run, err := read()
		if err != nil {
			return err
		}
		return run.WritePage(w)
	})
}

// maxDifferences is the maximum number of differences that a page shows for each pair; the JSON
// interface returns all.
const maxDifferences = 40

// A shownComparison is what a page shows of a comparison.
type shownComparison struct {
	A, B     string       // labels of the two sides: runs, or models of runs
	Compared int          // number of differences
	Beyond   int          // number of significant ones
	More     int          // number of differences that Lines leaves out
	Lines    []forestLine // of the forest plot, one for each difference with its interval
	Paired   bool         // some interval is that of a difference paired by sample
	Matched  bool         // layers of other names are matched by depth relative to their model's
}

func (s *Server) comparePage(w http.ResponseWriter, r *http.Request) error {
	sides, err := s.sides(r)
	if err != nil {
		return err
	}
	return s.send(w, r, response{kind: htmlType, stamp: stampOf(sides)}, func(w io.Writer) error {
		if err := readSides(sides); err != nil {
			return err
		}
		all := r.URL.Query().Get("all") != ""
		var shown []shownComparison
		for _, b := range sides[1:] {
			shown = append(shown, showComparison(compare(sides[0], b), all))
		}
		query := r.URL.Query()
		query.Del("all")
		return pages.ExecuteTemplate(w, "compare", map[string]any{
			"Title": "Side by side", "Comparisons": shown, "All": all, "Query": template.URL(query.Encode()), "Names": labels(sides),
		})
	})
}

// showComparison returns what a page shows of a comparison: all differences, or only the
// significant ones among those of scores over all samples and parameter values (see overviewOnly).
func showComparison(c comparison, all bool) shownComparison {
	line := shownComparison{A: c.A.label(), B: c.B.label(), Compared: len(c.Differences), Beyond: c.Beyond}
	shown := c.Differences
	if !all {
		shown = slices.DeleteFunc(overviewOnly(c.Differences, c.A.record.Measures), func(d scores.Difference) bool { return !d.Significant() })
	}
	line.Lines, line.Matched = forest(shown, c.Layers), c.Layers != nil
	line.More = max(0, len(line.Lines)-maxDifferences)
	line.Lines = line.Lines[:len(line.Lines)-line.More]
	line.Paired = slices.ContainsFunc(line.Lines, func(l forestLine) bool { return l.Paired })
	return line
}

// labels returns the names of compared sides in one line.
func labels(sides []side) string {
	var names []string
	for _, s := range sides {
		names = append(names, s.label())
	}
	return strings.Join(names, " beside ")
}

func (s *Server) compareReport(w http.ResponseWriter, r *http.Request) error {
	sides, err := s.sides(r)
	if err != nil {
		return err
	}
	return s.sendReport(w, r, stampOf(sides), func() (html.Run, error) {
		if err := readSides(sides); err != nil {
			return html.Run{}, err
		}
		rows, record := mergeSides(sides)
		return html.Run{Rows: rows, Record: record, Home: "/"}, nil
	})
}
