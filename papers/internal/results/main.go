// Results writes the tables of docs/results, and some of its charts, from the stored results of
// experiments and benchmarks. Its argument is the folder of the repository, by default the current
// one.
//
// A page marks the place of a table by <!-- table: NAME --> and <!-- end -->. The text between
// these comments is made from papers/results/NAME.csv or, if there is no such file, from
// internal/bench/results/NAME.json. <!-- findings: NAME --> marks the place of a table of statements
// of a paper, papers/findings/NAME.csv, which are judged by the stored results.
//
//go:generate go run . ../../..
package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("results", run) }

func run(args []string, _ io.Writer) error {
	return write(append(args, ".")[0])
}

// write writes the charts and pages of the repository in the folder root.
func write(root string) error {
	for _, c := range charts {
		svg, err := c.draw(root)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, "docs/results", c.name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	growth, err := drawGrowth(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, growthFigure), growth, 0o644); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/results/*.md"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		before, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		after, err := fill(root, string(before))
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if err := os.WriteFile(page, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// marker matches the place of a table, from the comment with its name to the end comment.
var marker = regexp.MustCompile(`(?s)(<!-- (table|findings): ([\w-]+) -->\n).*?(<!-- end -->)`)

// fill returns the text of a page with its tables made again from the stored results.
func fill(root, page string) (string, error) {
	var failed error
	out := marker.ReplaceAllStringFunc(page, func(s string) string {
		m := marker.FindStringSubmatch(s)
		text, err := "", error(nil)
		if m[2] == "findings" {
			text, err = findingsTable(root, m[3])
		} else if t, loading := load(root, m[3]); loading == nil {
			text = t.markdown()
		} else {
			err = loading
		}
		if err != nil {
			failed = errors.Join(failed, err)
			return s
		}
		return m[1] + "\n" + text + "\n" + m[4]
	})
	return out, failed
}

// A table has a header and rows, made of entries. A row may have fewer cells than the header.
type table struct {
	header  []string
	rows    [][]string
	entries []entry
}

// An entry is a value of a stored result, with its interval if it has one. keys name its row,
// statistic its column.
type entry struct {
	keys                        []string
	statistic, value, low, high string
}

// load reads the stored result of the given name.
func load(root, name string) (*table, error) {
	raw, err := os.ReadFile(filepath.Join(root, "papers/results", name+".csv"))
	if err == nil {
		return fromCSV(name, string(raw))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	raw, err = os.ReadFile(filepath.Join(root, "internal/bench/results", name+".json"))
	if err != nil {
		return nil, err
	}
	return fromJSON(name, raw)
}

// fromCSV makes a table of scores: a row for each combination of the values in the columns before
// "statistic", and a column for each statistic. Scores have a value, and may have an interval (low,
// high) and a rank correlation (spearman).
func fromCSV(name, text string) (*table, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	head := records[0]
	keys := slices.Index(head, "statistic")
	if keys < 1 {
		return nil, fmt.Errorf("%s: the columns are %q; one before the statistic names the row", name, head)
	}
	t := &table{header: slices.Clone(head[:keys])}
	index := map[string]int{}
	for _, r := range records[1:] {
		field := func(column string) string {
			if i := slices.Index(head, column); i >= 0 {
				return r[i]
			}
			return ""
		}
		statistic := field("statistic")
		column := slices.Index(t.header[keys:], statistic)
		if column < 0 {
			column = len(t.header) - keys
			t.header = append(t.header, statistic)
		}
		key := strings.Join(r[:keys], "\x00")
		row, ok := index[key]
		if !ok {
			row = len(t.rows)
			index[key] = row
			t.rows = append(t.rows, slices.Clone(r[:keys]))
		}
		for len(t.rows[row]) <= keys+column {
			t.rows[row] = append(t.rows[row], "")
		}
		t.entries = append(t.entries, entry{r[:keys], statistic, field("value"), field("low"), field("high")})
		t.rows[row][keys+column] = score(field("value"), field("spearman"), field("low"), field("high"))
	}
	return t, nil
}

// score returns the text of a value, with its rank correlation and its interval if it has them.
func score(value, spearman, low, high string) string {
	if spearman != "" {
		value += " / " + spearman
	}
	if low != "" {
		value += " [" + low + ", " + high + "]"
	}
	return value
}

// A measurement is a cell of a benchmark's table, as internal/bench stores it.
type measurement struct {
	Text   string // used in place of a value
	Value  string
	Low    string
	High   string
	Unit   string
	Memory string
}

// fromJSON makes a table of a stored benchmark.
func fromJSON(name string, raw []byte) (*table, error) {
	var stored struct {
		Columns []string
		Rows    []map[string]measurement
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := &table{header: stored.Columns}
	for _, r := range stored.Rows {
		var cells []string
		for _, c := range stored.Columns {
			cells = append(cells, r[c].String())
			t.entries = append(t.entries, entry{cells[:1], c, r[c].Value, r[c].Low, r[c].High})
		}
		t.rows = append(t.rows, cells)
	}
	return t, nil
}

func (m measurement) String() string {
	s := m.Value
	if m.Unit != "" {
		s += " " + m.Unit
	}
	if m.Low != "" {
		s += " (" + m.Low + " to " + m.High + ")"
	}
	if m.Memory != "" {
		s += ", " + m.Memory
	}
	return m.Text + s
}

// markdown returns the table in Markdown. A cell of the first column is left empty if it equals
// that of the row above.
func (t *table) markdown() string {
	var b strings.Builder
	write := func(cells []string) {
		b.WriteString("|")
		for i := range t.header {
			if i < len(cells) && cells[i] != "" {
				b.WriteString(" " + strings.ReplaceAll(cells[i], "|", `\|`))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	write(t.header)
	b.WriteString("|" + strings.Repeat(" --- |", len(t.header)) + "\n")
	for i, r := range t.rows {
		r = slices.Clone(r)
		if i > 0 && len(r) > 1 && r[0] == t.rows[i-1][0] {
			r[0] = ""
		}
		write(r)
	}
	return b.String()
}
