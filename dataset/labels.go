package dataset

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A labelTable is a CSV file of labels. Its header names the columns: file (or filename, path, image), label (or class;
// may be missing), and any others are factors, which are numbers. Without a header the columns are file and label.
type labelTable struct {
	factors []string
	rows    []labelRow
}

type labelRow struct {
	line    int
	file    string // with slashes
	label   string // "": none
	factors map[string]float64
}

// columns are the places of what a row holds; -1: no such column.
type columns struct {
	file, label int
	factors     []int // into names
	names       []string
}

func readLabelTable(r io.Reader) (labelTable, error) {
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		buffered.Discard(3) // the byte order mark that spreadsheets write
	}
	lines := csv.NewReader(buffered)
	lines.TrimLeadingSpace = true
	lines.ReuseRecord = true
	var t labelTable
	var c columns
	seen := map[string]int{}
	for first := true; ; first = false {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return t, t.check()
		}
		if err != nil {
			return t, err
		}
		line, _ := lines.FieldPos(0)
		if first {
			var header bool
			if c, header, err = columnsOf(record); err != nil {
				return t, err
			}
			t.factors = slices.Sorted(slices.Values(c.names))
			if header {
				continue
			}
		}
		row, err := c.row(record)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", line, err)
		}
		if before, twice := seen[row.file]; twice {
			return t, fmt.Errorf("line %d: %s is in line %d already", line, row.file, before)
		}
		seen[row.file], row.line = line, line
		t.rows = append(t.rows, row)
	}
}

func (t labelTable) check() error {
	if len(t.rows) == 0 {
		return fmt.Errorf("no rows")
	}
	return nil
}

// columnsOf reads the header, or finds that there is none: the first field is a picture's name.
func columnsOf(record []string) (columns, bool, error) {
	c := columns{file: -1, label: -1}
	if isPicture(record[0]) {
		if len(record) > 2 {
			return c, false, fmt.Errorf("line 1: %d columns and no header: name the columns file, label and the factors", len(record))
		}
		if len(record) == 2 {
			c.label = 1
		}
		c.file = 0
		return c, false, nil
	}
	for i, name := range record {
		name = strings.TrimSpace(name)
		switch strings.ToLower(name) {
		case "file", "filename", "path", "image":
			if c.file >= 0 {
				return c, true, fmt.Errorf("line 1: columns %d and %d both name the file", c.file+1, i+1)
			}
			c.file = i
		case "label", "class":
			if c.label >= 0 {
				return c, true, fmt.Errorf("line 1: columns %d and %d both name the label", c.label+1, i+1)
			}
			c.label = i
		default:
			if name == "" || slices.Contains(c.names, name) {
				return c, true, fmt.Errorf("line 1: column %d: the name %q is empty or used twice", i+1, name)
			}
			c.factors = append(c.factors, i)
			c.names = append(c.names, name)
		}
	}
	if c.file < 0 {
		return c, true, fmt.Errorf("line 1: no column file among %s", strings.Join(record, ", "))
	}
	return c, true, nil
}

func (c columns) row(record []string) (labelRow, error) {
	row := labelRow{file: path.Clean(filepath.ToSlash(strings.TrimSpace(record[c.file])))}
	if !filepath.IsLocal(filepath.FromSlash(row.file)) || row.file == "." {
		return row, fmt.Errorf("file %q: names are relative to the folder and stay in it", record[c.file])
	}
	if c.label >= 0 {
		row.label = strings.TrimSpace(record[c.label])
	}
	for i, at := range c.factors {
		v, err := strconv.ParseFloat(strings.TrimSpace(record[at]), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return row, fmt.Errorf("factor %s is %q, which is no number", c.names[i], record[at])
		}
		if row.factors == nil {
			row.factors = make(map[string]float64, len(c.factors))
		}
		row.factors[c.names[i]] = v
	}
	return row, nil
}

// labels turns the labels of the rows to indices. Where all are whole numbers they are the indices; otherwise the
// classes are the sorted names.
func (t labelTable) labels() (labels []int, classes []string) {
	if labels, highest, ok := t.numbers(); ok {
		return labels, numbered(highest)
	}
	for _, r := range t.rows {
		if r.label != "" {
			classes = append(classes, r.label)
		}
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	for _, r := range t.rows {
		i, ok := slices.BinarySearch(classes, r.label)
		if !ok {
			i = NoLabel
		}
		labels = append(labels, i)
	}
	return labels, classes
}

func (t labelTable) numbers() (labels []int, highest int, ok bool) {
	highest = NoLabel
	for _, r := range t.rows {
		n := NoLabel
		if r.label != "" {
			var err error
			if n, err = strconv.Atoi(r.label); err != nil || n < NoLabel || n > maxLabel {
				return nil, 0, false
			}
		}
		labels = append(labels, n)
		highest = max(highest, n)
	}
	return labels, highest, true
}

// fromCSV makes the rows of a CSV file the samples of the folder.
func (f *Folder) fromCSV(ctx context.Context, file string) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := readLabelTable(contextReader{ctx, r})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	f.factors = t.factors
	labels, classes := t.labels()
	f.classes = classes
	for i, row := range t.rows {
		info, err := os.Stat(filepath.Join(f.dir, row.file))
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", row.file)
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", file, row.line, err)
		}
		f.files = append(f.files, pictureFile{row.file, info.Size(), labels[i], row.factors})
	}
	return nil
}
