package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/report/web"
	"github.com/noether-ml/noether/scores"
)

//go:embed page.html
var pageText string

// HTML writes the report as one page that needs no other file and makes no request: the sentences, the study and the
// models as text, the scores as data, and a script that draws the charts and the tables from it.
func HTML(w io.Writer, rows []scores.Row, rec scores.Record) error {
	page, err := newPage(rows, rec)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"count": count, "plural": plural, "clean": printable, "shape": shape, "tags": tags,
		"stages": stageRows, "mebibytes": mebibytes,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// A page is what the template shows.
type page struct {
	scores.Record
	Policy   string
	Style    template.CSS
	Script   template.JS
	Packed   template.JS
	Extent   string
	Progress string
	Took     string
	Findings []string
	Measures []section
	Skipped  []note
	Failures []note
	Warnings []note
	Empty    bool
}

// A section is the text of one measure.
type section struct {
	Measure
	ID       string
	Findings []string
}

func newPage(rows []scores.Row, rec scores.Record) (*page, error) {
	measures := Describe(rows)
	data, err := pack(rows, measures, rec.Models)
	if err != nil {
		return nil, err
	}
	p := &page{
		Record: rec, Policy: policy(), Style: template.CSS(web.Style), Script: template.JS(web.Script), Packed: template.JS(data),
		Extent: extent(rec, rows), Progress: progress(rec), Took: took(rec),
		Findings: Findings(rows), Skipped: skipNotes(rec.Skipped), Failures: failureNotes(rec.Failed), Warnings: warningNotes(rows, rec.Warnings), Empty: len(rows) == 0,
	}
	shown := overview(rows)
	for i, m := range measures {
		p.Measures = append(p.Measures, section{Measure: m, ID: fmt.Sprintf("measure-%d", i), Findings: findingsOf(shown, m)})
	}
	return p, nil
}

// policy allows the report's own script and style, by their hashes, and nothing else: no other script, no request.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		source(web.Script), source(web.Style))
}

// source is the hash of an inline script or style as a policy writes it.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// shape writes "16 × 32 × 32".
func shape(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", " × "), "[]")
}

// tags writes "family: resnet, training: standard".
func tags(t map[string]string) string {
	var items []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		items = append(items, k+": "+t[k])
	}
	return printable(strings.Join(items, ", "))
}
