// Excerpt makes tables of papers/results of single scores:
//
//	go run ./papers/internal/excerpt -runs runs/small papers/seis/tables/excerpts.yaml
//
// The file lists tables. The cells of a table are those of its rows times those of its columns. Each
// shows the one score of a file, in the layout of scores.csv, whose columns have the values of where:
// of the table, the row and the column together. So a cell that no score fits, or more than one, is
// an error.
//
//   - name: example
//     from: [run/scores.csv]    # files in the folder of -runs
//     keys: [model]             # titles of the columns that name the rows
//     where: {measure: accuracy}
//     format: "%.3f"
//     rows:
//   - {cells: [ResNet-20], where: {model: resnet20}}
//     columns:
//   - {title: accuracy, where: {statistic: clean}, show: interval}
//
// A table whose files are missing stays as it is.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("excerpt", run) }

// A table is an entry of the file.
type table struct {
	Name    string
	From    []string
	Keys    []string
	Where   where
	Format  string // of numbers
	Rows    []row
	Columns []column
}

// where has, by column of scores.csv, the value of the scores that are shown. A column that it does
// not name may have any value, but for parameter and trial: without them it is the score over all
// values and, if there is one, over all trials.
type where map[string]string

type row struct {
	Cells        []string // below Keys
	Where        where
	Show, Format string   // as for columns, before which they go
	Columns      []column // in place of those of the table
}

type column struct {
	Title  string
	Where  where
	Format string
	// Show is what the cells show: the value alone (default), the value with its interval, the null,
	// the rank correlation beside Pearson's (spearman), or the range of the nulls of all scores that
	// fit (nulls).
	Show string
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("excerpt", flag.ContinueOnError)
	runs := flags.String("runs", "runs", "the folder of the runs")
	results := flags.String("o", "papers/results", "the folder of the tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: excerpt [-runs FOLDER] [-o FOLDER] TABLES.yaml")
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	var tables []table
	if err := yaml.UnmarshalStrict(text, &tables); err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	for _, t := range tables {
		scores, err := read(*runs, t.From)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(out, "%s stays as it is: %v\n", t.Name, err)
			continue
		}
		var made [][]string
		if err == nil {
			made, err = t.make(scores)
		}
		if err == nil {
			err = tablefile.Write(filepath.Join(*results, t.Name+".csv"), made)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// A score has the values of a row of scores.csv by the names of its columns.
type score map[string]string

func read(folder string, files []string) ([]score, error) {
	var all []score
	for _, name := range files {
		rows, err := tablefile.Read(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		for _, r := range rows[1:] {
			s := score{}
			for i, title := range rows[0] {
				s[title] = r[i]
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// make returns the table in the layout that package results reads.
func (t table) make(scores []score) ([][]string, error) {
	ranked := func(columns []column) bool {
		return slices.ContainsFunc(columns, func(c column) bool { return c.Show == "spearman" })
	}
	spearman := ranked(t.Columns) || slices.ContainsFunc(t.Rows, func(r row) bool { return ranked(r.Columns) })
	head := append(slices.Clone(t.Keys), "statistic", "value")
	if spearman {
		head = append(head, "spearman")
	}
	out := [][]string{append(head, "low", "high")}
	for _, r := range t.Rows {
		if len(r.Cells) != len(t.Keys) {
			return nil, fmt.Errorf("the row %q needs %d cells", r.Cells, len(t.Keys))
		}
		columns := t.Columns
		if len(r.Columns) > 0 {
			columns = r.Columns
		}
		for _, c := range columns {
			of := where{"parameter": ""}
			maps.Copy(of, t.Where)
			maps.Copy(of, r.Where)
			maps.Copy(of, c.Where)
			values, err := cell(scores, of, cmp.Or(r.Show, c.Show), cmp.Or(r.Format, c.Format, t.Format, "%.3f"), spearman)
			if err != nil {
				return nil, fmt.Errorf("row %q, column %q: %w", r.Cells, c.Title, err)
			}
			out = append(out, slices.Concat(r.Cells, []string{c.Title}, values))
		}
	}
	return out, nil
}

// cell returns the cells after the statistic: value, in a table with rank correlations (spearman) the
// rank correlation or nothing, low and high.
func cell(scores []score, of where, show, format string, spearman bool) ([]string, error) {
	found, err := of.find(scores)
	if err != nil {
		return nil, err
	}
	out := make([]string, 3)
	rank := ""
	switch show {
	case "nulls":
		if out[0], err = nulls(found, format); err != nil {
			return nil, err
		}
	case "", "value", "interval", "null", "spearman":
		one, err := of.one(found)
		if err != nil {
			return nil, err
		}
		value := "value"
		if show == "null" {
			value = "null"
		}
		if out[0], err = one.format(format, value); err != nil {
			return nil, err
		}
		if (show == "interval" || show == "spearman") && one["low"] != "" && one["high"] != "" {
			var failed error
			out[1], err = one.format(format, "low")
			out[2], failed = one.format(format, "high")
			if err := errors.Join(err, failed); err != nil {
				return nil, err
			}
		}
		if show == "spearman" {
			other := maps.Clone(of)
			other["statistic"] = "spearman"
			ranks, err := other.find(scores)
			if err != nil {
				return nil, err
			}
			if one, err = other.one(ranks); err != nil {
				return nil, err
			}
			if rank, err = one.format(format, "value"); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("show is %q: value, interval, null, nulls or spearman", show)
	}
	if spearman {
		out = slices.Insert(out, 1, rank)
	}
	return out, nil
}

// nulls returns the range of the nulls of scores.
func nulls(found []score, format string) (string, error) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range found {
		v, err := strconv.ParseFloat(s["null"], 64)
		if err != nil {
			return "", fmt.Errorf("null of %v is no number", s)
		}
		low, high = min(low, v), max(high, v)
	}
	return fmt.Sprintf(format+" to "+format, low, high), nil
}

// one returns the only score of those that fit.
func (w where) one(found []score) (score, error) {
	if len(found) > 1 {
		return nil, fmt.Errorf("%d scores fit %v, such as %v and %v", len(found), w, found[0], found[1])
	}
	return found[0], nil
}

// find returns the scores that fit, at least one.
func (w where) find(scores []score) ([]score, error) {
	var found []score
	for _, s := range scores {
		fits := true
		for column, value := range w {
			if have, ok := s[column]; !ok {
				return nil, fmt.Errorf("the scores have no column %q", column)
			} else if have != value {
				fits = false
			}
		}
		if fits {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no score fits %v", w)
	}
	_, named := w["trial"]
	if all := slices.DeleteFunc(slices.Clone(found), func(s score) bool { return s["trial"] != "" }); !named && len(all) > 0 {
		return all, nil
	}
	return found, nil
}

func (s score) format(format, column string) (string, error) {
	v, err := strconv.ParseFloat(s[column], 64)
	if err != nil {
		return "", fmt.Errorf("%s of %v is no number", column, s)
	}
	return fmt.Sprintf(format, v), nil
}
