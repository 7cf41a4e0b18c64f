package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tables of the pages are those made from the stored results, and every stored result is on a
// page.
func TestPagesAreUpToDate(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	pages, err := filepath.Glob(filepath.Join(root, "docs/results/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fill(root, string(raw))
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		if want != string(raw) {
			t.Errorf("the tables of %s differ from the stored results: run make generate", page)
		}
		for _, m := range marker.FindAllStringSubmatch(want, -1) {
			used[m[3]] = true // the name of the stored result
		}
		for _, c := range charts {
			if c.pairs != nil && strings.Contains(want, "("+c.name+".svg)") {
				used[c.name] = true // a scatter shows every row
			}
		}
	}
	for _, pattern := range []string{"papers/results/*.csv", "internal/bench/results/*.json"} {
		stored, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) == 0 {
			t.Errorf("no stored result matches %s", pattern)
		}
		for _, file := range stored {
			name := filepath.Base(file)
			if name = name[:len(name)-len(filepath.Ext(name))]; !used[name] {
				t.Errorf("no page shows %s", file)
			}
		}
	}
}

func TestChartsAreUpToDate(t *testing.T) {
	t.Parallel()
	for _, c := range charts {
		want, err := c.draw("../../..")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../../docs/results", c.name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s.svg differs from the drawing of the stored result: run make generate", c.name)
		}
	}
	want, err := drawGrowth("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join("../../..", growthFigure)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the drawing of the stored result, or %v: run make generate", growthFigure, err)
	}
}

// Rows of a stored result become a table with a column for each statistic. A cell that repeats the
// one above is left empty.
func TestTables(t *testing.T) {
	t.Parallel()
	scores, err := fromCSV("x", "layer,probe,statistic,value,low,high\ns1,slp,hue,0.1,0,0.2\ns1,slp,value,3,,\ns1,mlp,value,4,,\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "| layer | probe | hue | value |\n| --- | --- | --- | --- |\n| s1 | slp | 0.1 [0, 0.2] | 3 |\n| | mlp | | 4 |\n"
	if got := scores.markdown(); got != want {
		t.Errorf("scores:\n%s\nwant\n%s", got, want)
	}
	bench, err := fromJSON("x", []byte(`{"columns": ["work", "time"], "rows": [{"work": {"text": "a|b"},
		"time": {"value": "2", "low": "1", "high": "3", "unit": "s", "memory": "5 MiB"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bench.markdown(), `| a\|b | 2 s (1 to 3), 5 MiB |`; !strings.Contains(got, want) {
		t.Errorf("a benchmark:\n%s\nwant %s", got, want)
	}
	if _, err := fromCSV("x", "a,b\n1,2\n"); err == nil {
		t.Error("scores without a statistic: no error")
	}
	if _, err := load(t.TempDir(), "none"); err == nil {
		t.Error("a result that is not stored: no error")
	}
}

// TestReadmes checks that the README of each folder of papers names its studies and training files,
// and that each stored result of an experiment is in one of them.
func TestReadmes(t *testing.T) {
	t.Parallel()
	const papers = "../.."
	readmes, err := filepath.Glob(filepath.Join(papers, "*/README.md"))
	if err != nil || len(readmes) < 9 {
		t.Fatalf("the READMEs are %v, error %v; want at least 9", readmes, err)
	}
	var all strings.Builder
	for _, readme := range readmes {
		raw, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	for _, pattern := range []string{"*/*.yaml", "*/training/*.yaml", "results/*.csv"} {
		files, err := filepath.Glob(filepath.Join(papers, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, error %v", pattern, files, err)
		}
		for _, file := range files {
			name, _ := filepath.Rel(papers, file)
			folder, name, _ := strings.Cut(name, string(filepath.Separator))
			text := all.String()
			if folder == "results" {
				if name = strings.TrimSuffix(name, ".csv"); name == "devices" { // of a test
					continue
				}
			} else if raw, err := os.ReadFile(filepath.Join(papers, folder, "README.md")); err != nil {
				t.Error(err)
			} else {
				text = string(raw)
			}
			if !strings.Contains(text, "`"+filepath.ToSlash(name)+"`") {
				t.Errorf("the README of %s does not name `%s`", folder, name)
			}
		}
	}
}

// TestFindings checks that each page of the five papers has a table of findings that is made from
// the stored results, and that no other line of the pages gives a verdict. Those of stir are in words
// beside its tables.
func TestFindings(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	byHand := regexp.MustCompile(`(?i)\*\*(not seen|seen|open)\b|\| (not )?seen|\| open\b|\b(seen|open)\.\*\*`)
	for page, name := range map[string]string{"seis": "findings: seis", "effective-invariance": "findings: effective-invariance", "firing": "findings: goodfellow",
		"probes": "findings: synesis", "stir": "table: stir-findings"} {
		raw, err := os.ReadFile(filepath.Join(root, "docs/results", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "<!-- "+name+" -->") {
			t.Errorf("%s.md has no table of %s", page, name)
		}
		if rest := marker.ReplaceAllString(string(raw), ""); page != "stir" {
			for _, line := range strings.Split(rest, "\n") {
				if byHand.MatchString(line) {
					t.Errorf("%s.md gives a verdict by hand: %s", page, line)
				}
			}
		}
	}
}

// The verdict on a finding follows from the intervals of its values.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, []byte("a,b,statistic,value,low,high\nx,1,m,0.5,0.2,0.8\nx,2,m,0.1,-0.1,0.3\ny,1,m,-1,-2,-0.5\ny,2,m,3,,\n"), root, "papers/results/r.csv")
	for want, f := range map[string]finding{
		"seen":                                {rows: []string{"x / 1"}, above: true},
		"open":                                {rows: []string{"x / 2"}, above: true},
		"not seen":                            {rows: []string{"y / 1"}, above: true},
		"seen in 1, open in 2, not seen in 1": {rows: []string{"x / 1", "x / 2", "y / 1", "y / 2"}, above: true},
	} {
		f.result, f.statistics = "r", []string{"m"}
		if got, _, err := f.judge(root); err != nil || got != want {
			t.Errorf("%v: %q, %v, want %q", f.rows, got, err, want)
		}
	}
	below := finding{result: "r", rows: []string{"x / 1", "y / 1"}, statistics: []string{"m"}, bound: 0.9}
	if got, values, err := below.judge(root); err != nil || got != "seen" || values != "0.5 [0.2, 0.8], -1 [-2, -0.5]" {
		t.Errorf("below 0.9: %q, %q, %v", got, values, err)
	}
	below.rows = []string{"z / 1"}
	if _, _, err := below.judge(root); err == nil || !strings.Contains(err.Error(), `no value "m" of "z / 1"`) {
		t.Errorf("a row that does not exist: %v", err)
	}
}

// interval is a value with its interval in the text of a page: 0.23 [0.18, 0.28], or the interval
// alone.
var interval = regexp.MustCompile(`(?:([-+]?\d[\d.]*)\s+)?\[([-+]?\d[\d.]*),\s+([-+]?\d[\d.]*)\]`)

// TestIntervalsInText checks that each interval in the text of a page of the five papers, and the
// value before it, is that of an entry of a stored result that the page shows. The text may round it,
// and may give it the other sign, as a loss.
func TestIntervalsInText(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	for _, page := range []string{"seis", "effective-invariance", "firing", "probes", "stir"} {
		raw, err := os.ReadFile(filepath.Join(root, "docs/results", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		var entries []entry
		for _, m := range marker.FindAllStringSubmatch(string(raw), -1) {
			if stored, err := load(root, m[3]); err == nil {
				entries = append(entries, stored.entries...)
			}
		}
		for _, m := range interval.FindAllStringSubmatch(marker.ReplaceAllString(string(raw), ""), -1) {
			if !slices.ContainsFunc(entries, func(e entry) bool { return e.hasInterval(m[1], m[2], m[3]) }) {
				t.Errorf("%s.md: no stored result on the page has %s", page, m[0])
			}
		}
	}
}

// hasInterval reports whether an interval in a text, and the value before it if there is one, are
// those of an entry.
func (e entry) hasInterval(value, low, high string) bool {
	// A value may be a coefficient with another, r / rho.
	v, _, _ := strings.Cut(e.value, " / ")
	equal := func(value, low, high string, sign float64) bool {
		return (value == "" || rounds(v, value, sign)) && rounds(e.low, low, sign) && rounds(e.high, high, sign)
	}
	return equal(value, low, high, 1) || equal(value, high, low, -1)
}

// rounds reports whether a stored number, with a sign, rounds to a number in a text.
func rounds(stored, text string, sign float64) bool {
	a, err := strconv.ParseFloat(stored, 64)
	b, err2 := strconv.ParseFloat(text, 64)
	_, decimals, _ := strings.Cut(text, ".")
	return err == nil && err2 == nil && math.Abs(sign*a-b) <= 0.5001*math.Pow10(-len(decimals))
}

func TestIntervalsOfTheText(t *testing.T) {
	t.Parallel()
	e := entry{value: "-0.568", low: "-0.97", high: "0.63"}
	for text, want := range map[string]bool{"-0.57 [-0.97, 0.63]": true, "0.57 [-0.63, 0.97]": true, "[-1.0, 0.6]": true,
		"-0.57 [-0.97, 0.64]": false, "-0.58 [-0.97, 0.63]": false, "0.57 [-0.97, 0.63]": false} {
		m := interval.FindStringSubmatch(text)
		if got := e.hasInterval(m[1], m[2], m[3]); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
