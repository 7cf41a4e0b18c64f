package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A finding is a statement of a paper about values of a stored result. It is seen if the interval of
// each lies wholly on the stated side of a bound, not seen if that of each lies wholly on the other,
// and open if each contains the bound or has no interval.
type finding struct {
	item, statement, result string
	rows, statistics        []string // of the stored result; rows have their keys joined by " / "
	above                   bool     // the values are stated to be above the bound, else below
	bound                   float64
	units                   string // samples and independent units
}

// loadFindings reads papers/findings/NAME.csv: item, finding, stored result, rows and statistics
// (each separated by ";"), side, such as ">0" or "<0.85", and units.
func loadFindings(root, name string) ([]finding, error) {
	file := filepath.Join(root, "papers/findings", name+".csv")
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(strings.NewReader(string(raw))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if want := []string{"item", "finding", "result", "rows", "statistics", "side", "units"}; !slices.Equal(records[0], want) {
		return nil, fmt.Errorf("%s: the columns are %q, want %q", file, records[0], want)
	}
	var out []finding
	for _, r := range records[1:] {
		f := finding{item: r[0], statement: r[1], result: r[2], rows: strings.Split(r[3], ";"), statistics: strings.Split(r[4], ";"), units: r[6]}
		bound, above := strings.CutPrefix(r[5], ">")
		f.above = above
		if f.bound, err = strconv.ParseFloat(strings.TrimPrefix(bound, "<"), 64); err != nil || r[0] == "" || r[6] == "" || !above && r[5][0] != '<' {
			return nil, fmt.Errorf("%s: %q needs an item, a side such as >0, and its independent units", file, r[1])
		}
		out = append(out, f)
	}
	return out, nil
}

// side returns 1 if an interval lies wholly on the stated side of the bound, -1 if on the other, and
// 0 if it contains the bound or is not known.
func (f *finding) side(e entry) int {
	low, err := strconv.ParseFloat(e.low, 64)
	high, err2 := strconv.ParseFloat(e.high, 64)
	if err != nil || err2 != nil {
		return 0
	}
	s := 0
	switch {
	case low > f.bound:
		s = 1
	case high < f.bound:
		s = -1
	}
	if !f.above {
		s = -s
	}
	return s
}

// judge returns the verdict on a finding, and the values that it is about.
func (f *finding) judge(root string) (verdict, values string, err error) {
	t, err := load(root, f.result)
	if err != nil {
		return "", "", err
	}
	counts := map[int]int{}
	var texts []string
	for _, row := range f.rows {
		for _, statistic := range f.statistics {
			i := slices.IndexFunc(t.entries, func(e entry) bool {
				return strings.Join(e.keys, " / ") == row && e.statistic == statistic
			})
			if i < 0 {
				return "", "", fmt.Errorf("%q: %s has no value %q of %q", f.statement, f.result, statistic, row)
			}
			e := t.entries[i]
			counts[f.side(e)]++
			texts = append(texts, score(e.value, "", e.low, e.high))
		}
	}
	all := len(texts)
	switch {
	case counts[1] == all:
		verdict = "seen"
	case counts[-1] == all:
		verdict = "not seen"
	case counts[0] == all:
		verdict = "open"
	default:
		verdict = fmt.Sprintf("seen in %d, open in %d, not seen in %d", counts[1], counts[0], counts[-1])
	}
	if all > 4 {
		return verdict, fmt.Sprintf("%d values", all), nil
	}
	return verdict, strings.Join(texts, ", "), nil
}

// findingsTable returns the table of the findings of a paper in Markdown.
func findingsTable(root, name string) (string, error) {
	findings, err := loadFindings(root, name)
	if err != nil {
		return "", err
	}
	t := &table{header: []string{"item", "finding of the paper", "here", "values", "n and independent units"}}
	for _, f := range findings {
		verdict, values, err := f.judge(root)
		if err != nil {
			return "", err
		}
		t.rows = append(t.rows, []string{f.item, f.statement, verdict, values, f.units})
	}
	return t.markdown(), nil
}
