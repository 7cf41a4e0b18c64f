// Package html writes the report of a run as a single HTML file that works without an internet
// connection.
//
//	result, err := study.ReadResult("runs/first")
//	page := html.Run{Rows: result.Rows, Record: result.Record}
//	page.Attachments = report.ReadAttachments("runs/first")
//	err = page.WritePage(file)
//
// Names of models, layers and transformations come from untrusted files and are shown as plain
// text. They are escaped in the page, where a content security policy also forbids all requests and
// all scripts except the report's own.
package html

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Run holds what a page shows: the scores of a run, its record and its attachments.
type Run struct {
	Rows   []scores.Row
	Record scores.Record
	report.Attachments
	// Attached, if it is set, returns all attachments; of the field Attachments only Replicates is
	// used then. It may wait for files that are still read. In the meantime the page computes what
	// needs only the scores.
	Attached func() report.Attachments
	// Home is the URL of the list of runs that the page belongs to; "" if there is none.
	Home string
	// Source identifies what the page is made from and the program, for MadeFrom; "" if unknown.
	Source string
}

// MadeFrom reports whether a file is the unaltered page of a Run with the given Source.
func MadeFrom(path, source string) bool {
	page, err := os.ReadFile(path)
	return err == nil && source != "" && checksum.CheckPage(page) == nil &&
		bytes.Contains(page, []byte(`<meta name="noether-source" content="`+template.HTMLEscapeString(source)+`">`))
}

// WritePage writes the report as one page: its conclusions, the study and the models as text, and a
// script that draws the charts and tables. The page contains its data and makes no request.
func (r Run) WritePage(w io.Writer) error {
	p, err := r.page()
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"count": report.Count, "plural": report.Plural, "clean": report.Printable, "shape": shape, "tags": tags,
		"mark": func(s policy.State) string { return strings.ReplaceAll(string(s), " ", "-") }, "stages": stageRows, "mebibytes": report.Mebibytes, "paragraphs": paragraphs,
		"samples": p.samplesOf, "losses": p.lossesOf,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	out := checksum.NewPageWriter(w) // Close appends a checksum, by which an altered page is recognised
	if err = t.Execute(out, p); err == nil {
		err = out.Close()
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// A page is the data of the HTML template.
type page struct {
	scores.Record
	Policy    string
	Style     template.CSS
	Script    template.JS
	Home      string          // URL of the list of runs; "" if there is none
	Source    string          // see Run.Source
	Packed    template.HTML   // a pageData as compressed JSON in base64
	Extent    string          // numbers of models, data sets, measures and scores
	Progress  string          // a sentence on a run that is unfinished or has failures
	LeftOut   string          // a sentence on samples that could not be read
	Took      string          // how long the run took, in words
	Verdict   *policy.Summary // nil: no policy
	Sentences []report.Sentence
	Layers    []report.Sentence // on the best layers
	Measures  []section
	Skipped   []report.Note // what was not measured, because a measure does not apply
	Failures  []report.Note
	Warnings  []report.Note
	Empty     bool // there are no scores

	// Which parts the page has.
	Relations, Images, Summary, Samples, Classes, Space, Networks bool

	Fitted bool // the chart of a relation has a fitted line
	rows   []scores.Row
	sheets []report.SampleSheet
	// Folded: the first screen shows all images, and their section is closed.
	Folded bool
}

// samplesOf returns the address of the samples of a claim on a model: those that it gets wrong and the
// reference right, or without one those that it gets wrong when they are transformed. "" if the page
// has none.
func (p *page) samplesOf(model string, c policy.ClaimSummary) string {
	if !slices.ContainsFunc(p.sheets, func(s report.SampleSheet) bool { return s.Transform == c.Transform && s.Data == c.Data }) {
		return ""
	}
	at := url.Values{"at": {"samples"}, "samples.data": {c.Data}, "samples.transform": {c.Transform}, "samples.model": {model}, "samples.show": {"fails"}}
	if p.Verdict.Reference != "" {
		at.Set("samples.model", p.Verdict.Reference)
		at.Set("samples.other", model)
		at.Set("samples.show", "parts")
	}
	if !strings.Contains(c.Parameter, ",") { // else between two values
		at.Set("value."+c.Transform, c.Parameter)
	}
	return "#" + at.Encode()
}

type section struct {
	measure.Descriptor
	ID   string
	Note report.Sentence
	Maps bool // whether there are feature maps
}

func (r Run) page() (*page, error) {
	rec := r.Record
	var data pageData
	var text string
	var err error
	attached := sync.OnceValue(func() report.Attachments {
		if r.Attached == nil {
			return r.Attachments
		}
		return r.Attached()
	})
	wait := start(func() {
		data = newPageData(r, attached)
		text, err = compressJSON(data)
	})
	p := &page{
		Record: rec, rows: r.Rows, Policy: securityPolicy(), Style: template.CSS(Style), Script: template.JS(frontEnd), Home: r.Home, Source: r.Source,
		Extent: report.Extent(rec, r.Rows), Progress: report.Progress(rec), LeftOut: report.LeftOut(rec), Took: report.Duration(rec), Empty: len(r.Rows) == 0,
		Skipped: report.SkipNotes(rec.Skipped), Failures: report.FailureNotes(rec.Failed),
	}
	p.Verdict = attached().Verdict
	var judged []string
	if p.Verdict != nil {
		for _, m := range p.Verdict.Models {
			judged = append(judged, m.Model)
		}
	}
	p.Sentences, p.Layers = report.Conclusions(r.Rows, rec, r.Replicates, judged...)
	sound := report.Sound(r.Rows, rec)
	for i, s := range report.Sections(r.Rows, rec.Measures) {
		p.Measures = append(p.Measures, section{Descriptor: s.Descriptor, ID: fmt.Sprintf("measure-%d", i), Note: report.SectionNote(s, sound)})
	}
	p.Warnings = report.WarningNotes(r.Rows, slices.Concat(rec.Warnings, attached().Notes))
	for i := range p.Measures {
		p.Measures[i].Maps = slices.ContainsFunc(attached().MapSheets, func(m report.MapSheet) bool { return m.Measure == p.Measures[i].Name })
	}
	wait()
	p.Relations, p.Images, p.Summary = len(data.Relations) > 0, len(data.Images) > 0, len(data.Matrices) > 0
	p.Samples, p.sheets = len(data.Sheets) > 0, data.Sheets
	p.Classes = slices.ContainsFunc(data.Sheets, report.SampleSheet.HasClasses)
	p.Space = slices.ContainsFunc(data.Sheets, func(s report.SampleSheet) bool { return len(s.Projections) > 0 })
	p.Fitted = slices.ContainsFunc(data.Relations, func(r relationData) bool { return len(r.Chart.Line) > 0 })
	p.Networks = len(data.Networks) > 0
	p.Folded = !slices.ContainsFunc(data.Images, func(i report.Image) bool { return i.Sheet == nil })
	p.Packed = template.HTML(text)
	return p, err
}

// start calls f in a goroutine. The function wait returns when f has returned, and panics if f did.
func start(f func()) (wait func()) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	return func() {
		if p := <-done; p != nil {
			panic(p)
		}
	}
}

// securityPolicy returns the content security policy of a page: only its own script and style, by their
// hashes.
func securityPolicy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'",
		hash(frontEnd), hash(Style))
}

// hash returns the hash of an inline script or style in the form that a policy needs.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// paragraphs splits a text at empty lines and makes it printable.
func paragraphs(text string) []string {
	var out []string
	for _, p := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if p = report.Printable(strings.Join(strings.Fields(p), " ")); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// shape formats a shape as "16 × 32 × 32".
func shape(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", " × "), "[]")
}

// tags formats tags as "family: resnet, training: standard".
func tags(t map[string]string) string {
	var items []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		items = append(items, k+": "+t[k])
	}
	return report.Printable(strings.Join(items, ", "))
}
