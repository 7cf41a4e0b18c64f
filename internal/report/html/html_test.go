package html

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// render returns the page of a run, and leaves it among the test's artifacts (go test -artifacts)
// to be looked at. A row is one score, and the record of a run says what was measured, and how.
func render(t testing.TB, rows []scores.Row, rec scores.Record) string {
	t.Helper()
	return renderRun(t, Run{Rows: rows, Record: rec})
}

// renderRun is render for a run with attachments, such as images.
func renderRun(t testing.TB, run Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := run.WritePage(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "report.html"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// walk calls visit for every element of a page.
func walk(t *testing.T, page string, visit func(*html.Node)) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			visit(n)
		}
	}
}

// attribute returns the value of an attribute of an element, or "".
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// voids are the void elements of HTML, which have no end tag.
var voids = map[string]bool{"meta": true, "br": true, "input": true, "img": true, "link": true}

// TestHTMLIsWellFormed checks that elements are closed in order, and that no two have the same id.
// UsualRun is a generated run.
func TestHTMLIsWellFormed(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	z := html.NewTokenizer(strings.NewReader(render(t, rows, rec)))
	var open []string
	ids := make(map[string]bool)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			if len(open) > 0 {
				t.Errorf("the elements %v are not closed", open)
			}
			return
		case html.StartTagToken:
			token := z.Token()
			if !voids[token.Data] {
				open = append(open, token.Data)
			}
			for _, a := range token.Attr {
				if a.Key == "id" {
					if ids[a.Val] {
						t.Errorf("id %q is used twice", a.Val)
					}
					ids[a.Val] = true
				}
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> does not close the last of the open elements %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// TestHTMLHoldsTheRun checks that the page has the texts of the record, and the conclusions:
// sentences that summarise the scores. A fingerprint is a hash of the samples of a data set.
func TestHTMLHoldsTheRun(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	page := render(t, rows, rec)
	for _, want := range []string{
		"<title>cifar-rotation – Noether</title>", "2 models, 1 data set, 3 transforms, 5 measures, 1,776 scores",
		"Does the prediction stay the same when the input is transformed, and how confident is it?", rec.Models[1].SHA256,
		rec.Data[0].Fingerprint, "family: resnet, training: standard", "1.24.1", "rotate: {values: [90, 180, 270]}", "the layer has no space",
		"12 of 2,000 images did not decode", "pooled from 112 x 112", "16 × 32 × 32", "3m12s",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	found, _ := report.Conclusions(rows, rec, nil)
	for _, sentence := range found {
		if !strings.Contains(html.UnescapeString(page), sentence[0].Text) {
			t.Errorf("the page does not say %q", sentence)
		}
	}
}

// TestHTMLLoadsNothing checks that no element refers to anything outside of the page, and that its
// content security policy allows the page's own script and style by their hashes and no request.
func TestHTMLLoadsNothing(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	var policy, script, style string
	walk(t, render(t, rows, rec), func(n *html.Node) {
		for _, a := range n.Attr {
			switch a.Key {
			case "src", "srcset", "action", "data", "background", "style":
				t.Errorf("<%s %s=%q> can load something or holds a style, want none", n.Data, a.Key, a.Val)
			case "href":
				if !strings.HasPrefix(a.Val, "#") {
					t.Errorf("<%s href=%q> leaves the page", n.Data, a.Val)
				}
			}
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s> holds a script, want none", n.Data, a.Key)
			}
		}
		switch {
		case n.Data == "link" || n.Data == "iframe" || n.Data == "base" || n.Data == "object":
			t.Errorf("the page has an element <%s>, which loads something, want none", n.Data)
		case n.Data == "meta" && attribute(n, "http-equiv") != "":
			policy = attribute(n, "content")
		case n.Data == "script" && attribute(n, "type") == "":
			script = n.FirstChild.Data
		case n.Data == "style":
			style = n.FirstChild.Data
		}
	})
	for _, want := range []string{"default-src 'none'", "script-src '" + hash(script) + "'", "style-src '" + hash(style) + "'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy %q allows too much", policy)
	}
	if regexp.MustCompile(`(?i)@import|url\(`).MatchString(style) {
		t.Error("the style sheet loads something")
	}
}

// TestAssetsSurviveInlining checks that the assets contain nothing that would end a script or style
// element early, or change its hash.
func TestAssetsSurviveInlining(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"script": frontEnd, "style": Style} {
		if text == "" {
			t.Errorf("the %s is empty", name)
		}
		for _, bad := range []string{"</script", "</style", "<!--", "\r", "\x00"} {
			if strings.Contains(strings.ToLower(text), bad) {
				t.Errorf("the %s holds %q", name, bad)
			}
		}
	}
}

// hostile are names as an attacker would choose them.
var hostile = []string{
	`</script><script>alert(1)</script>`, `../../etc/passwd`, `<img src=x onerror=alert(1)>`, `" onmouseover="alert(1)`, `'; alert(1); '`,
	`{{.Policy}}`, "javascript:alert(1)", "a\x1b[31mb\x00c", "\u202egnp.exe", "<!--", "]]>", "\u2028", "__proto__", "constructor", "<svg onload=alert(1)>",
}

// attacked generates a run whose every name is hostile, and different.
var attacked = reporttest.FakeRun{Models: 3, Layers: 4, Transforms: 2, Data: 2, Classes: 2, NameOf: func(kind string, i int) string {
	return hostile[(len(kind)+i)%len(hostile)] + fmt.Sprint(kind, i)
}}

// attackedRun returns the rows and the record of attacked, with a measure, a warning, a skipped
// measure, the text of the study file and tags that are hostile too.
func attackedRun() ([]scores.Row, scores.Record) {
	rows, rec := attacked.Rows()
	for i := range rows {
		if rows[i].Measure == "distance" {
			rows[i].Measure, rows[i].Statistic, rows[i].Warning = hostile[0], hostile[2]+rows[i].Statistic, hostile[0]
		}
	}
	rec.Skipped = append(rec.Skipped, scores.Skip{Model: hostile[0], Measure: hostile[2], Why: hostile[3]})
	rec.Resolved = hostile[0] + "\n" + hostile[4]
	rec.Models[0].Tags = map[string]string{hostile[0]: hostile[2]}
	return rows, rec
}

// TestHostileNamesAreInert checks that no name becomes an element or a script of the page.
func TestHostileNamesAreInert(t *testing.T) {
	t.Parallel()
	elements := func(page string) map[string]int {
		found := make(map[string]int)
		walk(t, page, func(n *html.Node) {
			found[n.Data]++
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Val, "javascript:") && a.Key != "title" && !strings.HasPrefix(a.Key, "data-") {
					t.Errorf("<%s %s=%q> holds a script, want none", n.Data, a.Key, a.Val)
				}
			}
		})
		return found
	}
	found := elements(render(t, first(attackedRun()), second(attackedRun())))
	// The scripts are the page's program and its data.
	if found["script"] != 2 || found["style"] != 1 || found["img"] != 0 || found["svg"] != 0 {
		t.Errorf("the page has the elements %v, want 2 scripts, 1 style and no img or svg, unless names added some", found)
	}
}

// first and second return one of the two results of a call.
func first(rows []scores.Row, _ scores.Record) []scores.Row  { return rows }
func second(_ []scores.Row, rec scores.Record) scores.Record { return rec }

// unpacked returns the data of a page, which are compressed JSON in base64, as the page's script
// reads them.
func unpacked(t *testing.T, page string) pageData {
	t.Helper()
	var p pageData
	walk(t, page, func(n *html.Node) {
		if attribute(n, "id") != "data" {
			return
		}
		zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(n.FirstChild.Data)))
		if err != nil {
			t.Fatal(err)
		}
		p = decode(t, zip)
	})
	return p
}

// decode reads the data of a page from JSON, with NaN for JSON's null.
func decode(t *testing.T, r io.Reader) pageData {
	t.Helper()
	var raw struct {
		pageData
		Numbers  map[string][]*float64 `json:"numbers"`
		Measures []any                 `json:"measures"`
	}
	if err := json.NewDecoder(r).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	p := raw.pageData
	p.Numbers = make(map[string]numbers)
	for name, column := range raw.Numbers {
		for _, v := range column {
			if v == nil {
				p.Numbers[name] = append(p.Numbers[name], math.NaN())
			} else {
				p.Numbers[name] = append(p.Numbers[name], *v)
			}
		}
	}
	return p
}

// TestDataRoundTrip checks that the data in a page are the rows that it was made of, to five
// digits, with NaN for infinite numbers.
func TestDataRoundTrip(t *testing.T) {
	t.Parallel()
	rows, rec := attackedRun()
	rows[0].Value, rows[1].Low, rows[2].High = math.NaN(), math.Inf(-1), math.Inf(1)
	p := unpacked(t, render(t, rows, rec))
	if p.Rows != len(rows) || len(p.Shown) != len(rows) {
		t.Fatalf("the page has %d rows, and the levels of %d; want %d of each", p.Rows, len(p.Shown), len(rows))
	}
	text := func(name string, i int) string {
		c := p.Texts[name]
		if len(c.Codes) == 0 {
			return c.Values[0] // all rows have the same text
		}
		return c.Values[c.Codes[i]]
	}
	for i, r := range rows {
		for name, want := range map[string]string{"model": r.Model, "layer": r.Layer, "transform": r.Transform, "parameter": r.Parameter,
			"measure": r.Measure, "factor": r.Factor, "statistic": r.Statistic, "warning": r.Warning} {
			if got := text(name, i); got != report.Printable(want) {
				t.Fatalf("row %d: %s is %q, want %q", i, name, got, report.Printable(want))
			}
		}
		for name, want := range map[string]float64{"value": r.Value, "low": r.Low, "high": r.High, "null": r.Null, "n": float64(r.N), "depth": float64(r.Depth)} {
			got := p.Numbers[name][0]
			if len(p.Numbers[name]) > 1 {
				got = p.Numbers[name][i]
			}
			if math.IsInf(want, 0) {
				want = math.NaN()
			}
			if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-5*math.Abs(want) {
				t.Fatalf("row %d: %s is %g, want %g", i, name, got, want)
			}
		}
	}
}

// TestUnusualRuns renders what is empty, small, unfinished or huge.
func TestUnusualRuns(t *testing.T) {
	t.Parallel()
	few, rec := reporttest.FakeRun{Models: 1, Layers: 1, Transforms: 1, Unfinished: true}.Rows()
	bare := scores.Row{Study: "s", Model: "m", Depth: -1, Measure: "mine", Statistic: "own", Value: nan, Low: nan, High: nan, Null: nan}
	many := make([]scores.Row, 0, 100_000) // as if of many trials, repetitions of all random draws
	for len(many) < 100_000 {
		for _, r := range few {
			r.Trial = len(many)
			many = append(many, r)
		}
	}
	// A cell is the unit of work of a study: one measure of one model under one transformation
	// value.
	for _, c := range []struct {
		name string
		rows []scores.Row
		rec  scores.Record
		want string // in the page
		size int    // maximum, in bytes
	}{
		{"no rows", nil, scores.Record{Study: "s", Measures: reporttest.Measures()}, "There are no scores yet.", 1 << 20},
		{"no record", few, scores.Record{Measures: reporttest.Measures()}, "Accuracy", 1 << 20},
		{"unfinished, one layer", few, rec, "Unfinished: 12 of 30 cells are done.", 1 << 20},
		{"an unknown measure without a number", []scores.Row{bare}, rec, "mine", 1 << 20},
		{"a hundred thousand rows", many, rec, report.Plural(len(many), "score"), 8 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page := render(t, c.rows, c.rec)
			if !strings.Contains(page, c.want) {
				t.Errorf("the page does not say %q", c.want)
			}
			if len(page) > c.size {
				t.Errorf("the page has %d bytes, want at most %d", len(page), c.size)
			}
		})
	}
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	if err := (Run{Rows: rows, Record: rec}).WritePage(broken{}); err == nil {
		t.Error("WritePage to a failing writer returns no error")
	}
}

// TestDescription shows the study's own text in paragraphs, without its markup.
func TestDescription(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	if page := render(t, rows, rec); strings.Contains(page, `id="description"`) {
		t.Error("a study without a description has a section for it")
	}
	rec.Description = "Is the update as robust?\r\n\r\nIt was approved\nin May. <script>alert(1)</script>\n"
	page := render(t, rows, rec)
	for _, want := range []string{`<a href="#description">`, "<p class=\"description\">Is the update as robust?</p>", "<p class=\"description\">It was approved in May. &lt;script&gt;alert(1)&lt;/script&gt;</p>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
