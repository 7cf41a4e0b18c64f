package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const scores = `study,model,layer,data,transform,parameter,trial,measure,variant,statistic,value,low,high,null
s,a,l,d,t,,,m,EI,pearson,0.5,0.25,0.75,0.1
s,a,l,d,t,,,m,EI,spearman,0.6,,,
s,b,l,d,t,,0,m,EI,pearson,-0.5,,,0.2
s,b,l,d,t,3,0,m,EI,pearson,9,,,0.3
s,a,l,d,t,,1,m,EI,pearson,7,,,
s,c,l,d,t,,,m,EI,pearson,1,,,
s,c,l,d,t,,,m,EI,spearman,1,,,
s,c,l,d,t,,,m,KL,spearman,2,,,
`

// makeTable writes a file of tables and scores, and returns the table x that the command makes, or its
// error.
func makeTable(t *testing.T, tables string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"tables.yaml": tables, "scores.csv": scores} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run([]string{"-runs", dir, "-o", dir, filepath.Join(dir, "tables.yaml")}, &out); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "x.csv"))
	if err != nil {
		return out.String(), nil
	}
	return string(raw), nil
}

// A cell is the score over all values of a parameter and, if there is one, over all trials.
func TestCells(t *testing.T) {
	got, err := makeTable(t, `
- name: x
  from: [scores.csv]
  keys: [model]
  format: "%.2f"
  where: {statistic: pearson}
  rows:
    - {cells: [A], where: {model: a}}
    - {cells: [B], where: {model: b}, show: value, format: "%.1f"}
    - {cells: [C], where: {model: b}, columns: [{title: at 3, where: {parameter: "3"}}]}
    - {cells: [nulls], where: {}, columns: [{title: r, where: {trial: "0"}, show: nulls}, {title: "null", where: {model: a}, show: "null"}]}
  columns:
    - {title: r, show: interval}
`)
	want := `model,statistic,value,low,high
A,r,0.50,0.25,0.75
B,r,-0.5,,
C,at 3,9.00,,
nulls,r,0.20 to 0.20,,
nulls,null,0.10,,
`
	if err != nil || got != want {
		t.Errorf("the table is\n%s, %v, want\n%s", got, err, want)
	}
}

// Of a correlation the rank correlation stands beside Pearson's.
func TestRankCorrelation(t *testing.T) {
	got, err := makeTable(t, `
- {name: x, from: [scores.csv], keys: [model], format: "%+.1f", rows: [{cells: [A], where: {model: a},
   columns: [{title: r, where: {statistic: pearson}, show: spearman}, {title: "null", where: {statistic: pearson}, show: "null"}]}]}
`)
	want := "model,statistic,value,spearman,low,high\nA,r,+0.5,+0.6,+0.2,+0.8\nA,null,+0.1,,,\n"
	if err != nil || got != want {
		t.Errorf("the table is\n%s, %v, want\n%s", got, err, want)
	}
}

// A cell that no score fits, or more than one, and unknown names are errors; a missing file leaves the
// stored table as it is.
func TestErrors(t *testing.T) {
	table := func(rest string) string { return "- {name: x, from: [scores.csv], keys: [model], " + rest + "}\n" }
	for tables, want := range map[string]string{
		table(`rows: [{cells: [A], where: {model: e}}], columns: [{title: r}]`):                                     "no score fits",
		table(`rows: [{cells: [A], where: {model: a}}], columns: [{title: r}]`):                                     "2 scores fit",
		table(`rows: [{cells: [A, B], where: {}}], columns: [{title: r}]`):                                          "needs 1 cells",
		table(`rows: [{cells: [A], where: {colour: red}}], columns: [{title: r}]`):                                  `no column "colour"`,
		table(`rows: [{cells: [A], where: {model: a, statistic: pearson}}], columns: [{title: r, show: all}]`):      `show is "all"`,
		table(`rows: [{cells: [A], where: {model: a, statistic: spearman}}], columns: [{title: r, show: "null"}]`):  "is no number",
		table(`rows: [{cells: [C], where: {model: c, statistic: pearson}}], columns: [{title: r, show: spearman}]`): "2 scores fit",
		table(`row: []`): "unknown field",
	} {
		if _, err := makeTable(t, tables); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", tables, err, want)
		}
	}
	said, err := makeTable(t, "- {name: x, from: [other.csv], keys: [], rows: [], columns: []}\n")
	if err != nil || !strings.HasPrefix(said, "x stays as it is") {
		t.Errorf("of a missing file it says %q, %v", said, err)
	}
}
