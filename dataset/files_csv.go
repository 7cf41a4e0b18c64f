package dataset

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/plural"
)

// A labelTable is a file of labels, in one of three forms:
//
//   - CSV. The header names the columns: file (or another of fileColumns), label (or class,
//     or the requested column; optional), and any others, which are factors (known properties of a
//     sample, such as hue). Without a header the columns are file and label.
//   - lines of a file name, white space and a label, as in Caffe's val.txt;
//   - Kaggle's LOC_val_solution.csv of ImageNet: the label is the first synset (class identifier,
//     such as n01440764) of a row, and file names lack their extension, which is .JPEG.
type labelTable struct {
	factors []string
	rows    []labelRow
}

type labelRow struct {
	line    int
	file    string   // with slashes
	label   string   // "": none
	factors []string // in the order of the table's columns
}

// columns are the indices of the columns of a row; -1: no such column.
type columns struct {
	file, label int
	factors     []int
	names       []string // of the factors, in the order of the indices
	kaggle      bool     // the header is that of LOC_val_solution.csv
}

// readLabelTable reads a table. label is the name of the column of labels; "": label or class.
// isFile reports whether a text is the name of a file. A first line that starts with one is not a
// header.
func readLabelTable(r io.Reader, label string, isFile func(string) bool) (labelTable, error) {
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		buffered.Discard(len(byteOrderMark))
	}
	if err := otherTable(buffered, isFile); err != nil {
		return labelTable{}, err
	}
	next := csvRecords(buffered)
	if start, _ := buffered.Peek(maxFirstLine); isSpaceSeparated(string(start), isFile) {
		next = spaceSeparatedRecords(buffered)
	}
	var t labelTable
	var c columns
	seen, values := map[string]int{}, 0
	for first := true; ; first = false {
		record, line, err := next()
		if errors.Is(err, io.EOF) {
			if len(t.rows) == 0 {
				return t, errors.New("no rows")
			}
			return t, nil
		}
		if err != nil {
			return t, err
		}
		if first {
			var header bool
			if c, header, err = columnsOf(record, label, isFile); err != nil {
				return t, err
			}
			t.factors = c.names
			if header {
				continue
			}
		}
		row, err := c.row(record)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", line, err)
		}
		if values += len(record); values > maxTableValues {
			return t, fmt.Errorf("line %d: more than %d values: the limit of a table of labels", line, maxTableValues)
		}
		if before, twice := seen[row.file]; twice {
			return t, fmt.Errorf("line %d: %s is already in line %d", line, row.file, before)
		}
		seen[row.file], row.line = line, line
		t.rows = append(t.rows, row)
	}
}

// otherTable returns an error that names what a file is that is no CSV, or nil. isFile is that of
// readLabelTable.
func otherTable(r *bufio.Reader, isFile func(string) bool) error {
	start, _ := r.Peek(maxFirstLine)
	line, _, _ := strings.Cut(strings.TrimSpace(string(start)), "\n")
	switch {
	case strings.HasPrefix(line, "\xff\xfe"), strings.HasPrefix(line, "\xfe\xff"), strings.Contains(line, "\x00") && !strings.HasPrefix(line, "PK"):
		return errors.New("the text is UTF-16 or has zero bytes: save it as UTF-8")
	case strings.Contains(strings.TrimRight(line, "\r"), "\r") && !strings.Contains(line, `"`):
		return errors.New("lines end with carriage returns alone: save it with line feeds")
	case strings.HasPrefix(line, "PK\x03\x04"):
		return errors.New("the file is a spreadsheet or archive (ZIP): save it as CSV")
	case strings.HasPrefix(line, "{"), strings.HasPrefix(line, "["):
		return errors.New("the file is JSON: write a CSV with the columns file and label")
	}
	// namesFiles reports whether one of the fields of the line names the column of files, or the
	// first field is the name of a file.
	namesFiles := func(separator string) bool {
		fields := strings.Split(line, separator)
		for i, field := range fields {
			fields[i] = strings.Trim(strings.TrimSpace(field), `"`)
		}
		return len(fields) > 1 && (isFile(fields[0]) || slices.ContainsFunc(fields, isFileColumn))
	}
	for _, separator := range []string{";", "\t", "|"} {
		if namesFiles(separator) && !namesFiles(",") && !isSpaceSeparated(line, isFile) {
			return fmt.Errorf("line 1: the columns are separated by %q: write commas", separator)
		}
	}
	return nil
}

// fileColumns are the names of a column of files; file_name is that of Hugging Face's folders.
var fileColumns = []string{"file", "filename", "file_name", "path", "image", "sound"}

func isFileColumn(name string) bool { return slices.Contains(fileColumns, strings.ToLower(name)) }

// Bounds on tables of labels.
const (
	maxTableColumns = 10_000
	maxTableValues  = 1 << 27
	maxRecord       = 16 << 20 // bytes
)

// csvRecords returns a function that returns the next record of a CSV file, with its line.
func csvRecords(r io.Reader) func() ([]string, int, error) {
	bounded := &recordReader{Reader: r}
	lines := csv.NewReader(bounded)
	lines.TrimLeadingSpace = true
	lines.ReuseRecord = true
	return func() ([]string, int, error) {
		bounded.n = 0
		record, err := lines.Read()
		if err == nil && len(record) > maxTableColumns {
			err = fmt.Errorf("line 1: %d columns: the limit is %d", len(record), maxTableColumns)
		}
		if err != nil {
			return nil, 0, err
		}
		line, _ := lines.FieldPos(0)
		return record, line, nil
	}
}

// A recordReader returns an error after maxRecord bytes. It starts anew where n is set to 0.
type recordReader struct {
	io.Reader
	n int
}

func (r *recordReader) Read(p []byte) (int, error) {
	if r.n > maxRecord {
		return 0, fmt.Errorf("a row of more than %d bytes: is a quote not closed?", maxRecord)
	}
	n, err := r.Reader.Read(p)
	r.n += n
	return n, err
}

// maxFirstLine bounds the part of a file by which isSpaceSeparated decides.
const maxFirstLine = 1 << 10

// isSpaceSeparated reports whether a file starts with the name of a file, white space and a label.
func isSpaceSeparated(start string, isFile func(string) bool) bool {
	line, _, _ := strings.Cut(start, "\n")
	file, label := cutLabel(line)
	return label != "" && isFile(file) && !strings.ContainsAny(line, ",\"")
}

// cutLabel cuts a line at its last white space. Without white space, file is empty and label is the
// whole line.
func cutLabel(line string) (file, label string) {
	line = strings.TrimSpace(line)
	i := strings.LastIndexAny(line, " \t")
	return strings.TrimSpace(line[:max(i, 0)]), line[i+1:]
}

// spaceSeparatedRecords is csvRecords for lines of a file name, white space and a label. Empty
// lines are skipped.
func spaceSeparatedRecords(r io.Reader) func() ([]string, int, error) {
	lines, number := bufio.NewScanner(r), 0
	return func() ([]string, int, error) {
		for lines.Scan() {
			number++
			if strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			file, label := cutLabel(lines.Text())
			if file == "" {
				return nil, 0, fmt.Errorf("line %d: %q is not a file name, white space and a label", number, label)
			}
			return []string{file, label}, number, nil
		}
		return nil, 0, cmp.Or(lines.Err(), io.EOF)
	}
}

// columnsOf finds the columns from the first record, and reports whether that record is a header:
// it is none if its first field is the name of a file. label is the name of the column of labels;
// "": label or class.
func columnsOf(record []string, label string, isFile func(string) bool) (c columns, header bool, err error) {
	c = columns{file: -1, label: -1}
	if isFile(record[0]) {
		return c.withoutHeader(len(record), label)
	}
	if slices.Equal(record, []string{"ImageId", "PredictionString"}) && label == "" {
		return columns{file: 0, label: 1, kaggle: true}, true, nil
	}
	known := map[string]bool{}
	for i, name := range record {
		name = strings.TrimSpace(name)
		var err error
		switch lower := strings.ToLower(name); {
		case label != "" && name == label, label == "" && (lower == "label" || lower == "class"):
			err = assign(&c.label, i, "label")
		case isFileColumn(name):
			err = assign(&c.file, i, "file")
		case name == "": // the index of a table, which pandas writes
		case known[name]:
			err = fmt.Errorf("line 1: column %d: the name %q is used twice", i+1, name)
		default:
			c.factors = append(c.factors, i)
			c.names = append(c.names, name)
			known[name] = true
		}
		if err != nil {
			return c, true, err
		}
	}
	switch {
	case c.file < 0:
		return c, true, fmt.Errorf("line 1: no column file in the header: %s", firstNames(record, 20))
	case c.label < 0 && label != "":
		return c, true, fmt.Errorf("line 1: no column %q for the label in the header: %s", label, firstNames(record, 20))
	}
	return c, true, nil
}

// withoutHeader returns the columns of a table without a header: files and, if there are two
// columns, labels.
func (c columns) withoutHeader(width int, label string) (columns, bool, error) {
	switch {
	case width > 2:
		return c, false, fmt.Errorf("line 1: %d columns and no header: add a header with file, label and the factors", width)
	case label != "":
		return c, false, fmt.Errorf("line 1: no header, so there is no column %q", label)
	case width == 2:
		c.label = 1
	}
	c.file = 0
	return c, false, nil
}

// assign records that column i is the file or the label.
func assign(column *int, i int, what string) error {
	if *column >= 0 {
		return fmt.Errorf("line 1: columns %d and %d both name the %s", *column+1, i+1, what)
	}
	*column = i
	return nil
}

func (c columns) row(record []string) (labelRow, error) {
	file := strings.TrimSpace(record[c.file])
	if c.kaggle {
		file += ".JPEG"
	}
	row := labelRow{file: path.Clean(filepath.ToSlash(file))}
	if !filepath.IsLocal(filepath.FromSlash(row.file)) || row.file == "." {
		return row, fmt.Errorf("file %q: names must be relative to the folder and inside it", record[c.file])
	}
	if c.label >= 0 {
		row.label = strings.TrimSpace(record[c.label])
	}
	if c.kaggle { // the label is followed by a bounding box
		row.label, _, _ = strings.Cut(row.label, " ")
	}
	for _, column := range c.factors {
		row.factors = append(row.factors, strings.TrimSpace(record[column]))
	}
	return row, nil
}

// fromCSV makes a sample of each row of a CSV file. If the file has a number in each line instead,
// it labels the files of ImageNet's validation set (fromChallenge).
func (l *fileList) fromCSV(ctx context.Context, file, label string) error {
	r, err := filesys.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	buffered := bufio.NewReader(contextReader{ctx, r})
	if start, _ := buffered.Peek(maxFirstLine); label == "" && startsWithNumber(string(start)) {
		if err := l.fromChallenge(ctx, buffered); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	}
	t, err := readLabelTable(buffered, label, l.hasExtension)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	texts, factors := make([]string, len(t.rows)), make([][]string, len(t.rows))
	for i, row := range t.rows {
		info, err := os.Stat(filepath.Join(l.dir, row.file))
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", row.file)
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", file, row.line, err)
		}
		l.files = append(l.files, fileEntry{name: row.file, size: info.Size()})
		texts[i], factors[i] = row.label, row.factors
	}
	if err := l.noteUnlisted(ctx, file); err != nil {
		return err
	}
	if err := l.label(texts); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return l.setFactors(t.factors, factors, func(i int) string { return fmt.Sprintf("%s: line %d", file, t.rows[i].line) })
}

// noteUnlisted adds a note on the files of the folder that the list, read from a table, lacks.
func (l *fileList) noteUnlisted(ctx context.Context, table string) error {
	all := fileList{dir: l.dir, extensions: l.extensions}
	found, err := all.filesBeneath(ctx, "")
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, f := range l.files {
		listed[f.name] = true
	}
	var unlisted []string
	for _, f := range found {
		if !listed[f.name] {
			unlisted = append(unlisted, f.name)
		}
	}
	if len(unlisted) > 0 {
		l.notes = append(l.notes, fmt.Sprintf("left out %s that %s does not list: %s", plural.Of(len(unlisted), "file"), filepath.Base(table), firstNames(unlisted, 5)))
	}
	return nil
}

// label sets the labels of the files.
func (l *fileList) label(texts []string) error {
	labels, classes, err := labelsOf(texts)
	if err != nil {
		return err
	}
	l.classes = classes
	for i := range l.files {
		l.files[i].label = labels[i]
	}
	return nil
}

// setFactors sets the factors of the files. texts has a row for each file and a column for each
// name. If all texts of a factor are numbers, they are its values. If none is, the texts are
// categories, and a value is an index into their sorted names. If only some are, setFactors returns
// an error. A factor that some files lack is left out, with a note. position says where texts[i]
// was read, for errors.
func (l *fileList) setFactors(names []string, texts [][]string, position func(i int) string) error {
	var missing []string
	for c, name := range names {
		column := make([]string, len(texts))
		for i, row := range texts {
			column[i] = row[c]
		}
		if i := slices.IndexFunc(column, isMissing); i >= 0 {
			missing = append(missing, name)
			if len(missing) <= 5 {
				l.notes = append(l.notes, fmt.Sprintf("left out the factor %s: %s has no value", name, position(i)))
			}
			continue
		}
		values, categories, bad := factorValues(column)
		if bad >= 0 {
			return fmt.Errorf("%s: factor %s is %q, not a number", position(bad), name, column[bad])
		}
		if categories != nil {
			if l.categories == nil {
				l.categories = map[string][]string{}
			}
			l.categories[name] = categories
		}
		for i, v := range values {
			l.setFactor(i, name, v)
		}
	}
	if n := len(missing) - 5; n > 0 {
		l.notes = append(l.notes, fmt.Sprintf("left out %s with missing values: %s", plural.Of(n, "more factor"), firstNames(missing[5:], 5)))
	}
	return nil
}

// setFactor sets a factor of one file.
func (l *fileList) setFactor(i int, name string, v float64) {
	if l.files[i].factors == nil {
		l.files[i].factors = map[string]float64{}
	}
	l.files[i].factors[name] = v
	if at, known := slices.BinarySearch(l.factors, name); !known {
		l.factors = slices.Insert(l.factors, at, name)
	}
}
