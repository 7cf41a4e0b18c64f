package scores

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/intern"
)

// ReadCSV reads rows that WriteCSV wrote. Errors name the line and the column.
func ReadCSV(r io.Reader) ([]Row, error) {
	p := &csvReader{lines: bufio.NewReaderSize(r, 1<<16), parser: parser{texts: intern.NewColumns()}}
	if file, ok := r.(fs.File); ok {
		if info, err := file.Stat(); err == nil {
			p.size = info.Size()
		}
	}
	err := p.read()
	return p.rows, err
}

// A csvReader reads rows, splitting lines without quotes at commas. From the first other line on,
// package csv reads, which takes five times as long.
type csvReader struct {
	lines   *bufio.Reader
	size    int64 // of the file, in bytes; 0 if unknown
	columns int   // number of columns of the file; 0 before its header is read
	parser  parser
	rows    []Row
}

func (p *csvReader) read() error {
	var fields [][]byte
	for number := 1; ; number++ {
		line, err := p.lines.ReadSlice('\n')
		whole := bytes.TrimSuffix(line, []byte("\n"))
		if fields = splitLine(fields[:0], whole, p.columns); err != nil || fields == nil {
			rest := io.MultiReader(strings.NewReader(string(line)), p.lines)
			return p.readQuoted(rest, number)
		}
		if number == 1 {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = string(f)
			}
			if !p.header(names) {
				return errNoHeader()
			}
			continue
		}
		if number == 2 && p.size > 0 { // room for all rows if they are as long as this one, and a tenth more
			p.rows = make([]Row, 0, min(p.size/int64(len(line))*11/10, 1<<20))
		}
		row, err := p.parser.row(fields)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		p.rows = append(p.rows, row)
	}
}

// splitLine appends the fields of a line; nil if it is empty, has quotes or a carriage return, or
// not a field for each of so many columns; 0 is any number.
func splitLine(fields [][]byte, line []byte, columns int) [][]byte {
	if bytes.IndexByte(line, '"') >= 0 || bytes.HasSuffix(line, []byte("\r")) {
		return nil
	}
	for {
		end := bytes.IndexByte(line, ',')
		if end < 0 {
			break
		}
		fields = append(fields, line[:end])
		line = line[end+1:]
	}
	if fields = append(fields, line); columns > 0 && len(fields) != columns {
		return nil
	}
	return fields
}

func (p *csvReader) readQuoted(rest io.Reader, number int) error {
	c := csv.NewReader(rest)
	c.ReuseRecord = true
	c.FieldsPerRecord = p.columns
	if number == 1 {
		c.FieldsPerRecord = 0 // that of the header, which is checked below
	}
	var fields [][]byte
	for first := number == 1; ; first = false {
		record, err := c.Read()
		var misplaced *csv.ParseError
		switch {
		case first && errors.Is(err, io.EOF):
			return errors.New("the file is empty: the header line with the column names is missing")
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &misplaced):
			misplaced.StartLine += number - 1
			misplaced.Line += number - 1
			return misplaced
		case err != nil:
			return err
		}
		if first {
			if !p.header(record) {
				return errNoHeader()
			}
			c.FieldsPerRecord = p.columns
			continue
		}
		fields = fields[:0]
		for _, f := range record {
			fields = append(fields, []byte(f))
		}
		row, err := p.parser.row(fields)
		if err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", line+number-1, err)
		}
		p.rows = append(p.rows, row)
	}
}

// header reports whether names are the columns of this version, or of one without p-values.
func (p *csvReader) header(names []string) bool {
	p.columns = len(names)
	return slices.Equal(names, Columns) || slices.Equal(names, Columns[:columnsBefore])
}

func errNoHeader() error {
	return fmt.Errorf("line 1: not the header of a scores file, which starts with %s,%s,%s", Columns[0], Columns[1], Columns[2])
}

type parser struct {
	fields [][]byte
	column int
	err    error
	texts  *intern.Columns // the texts read before: each is in memory once
}

// row parses fields in the order of Columns.
func (p *parser) row(fields [][]byte) (Row, error) {
	p.fields, p.column, p.err = fields, 0, nil
	r := Row{
		Study: p.text(), Model: p.text(), Layer: p.text(), Depth: p.int(NoDepth), OtherModel: p.text(), OtherLayer: p.text(),
		Data: p.text(), Transform: p.text(), Parameter: p.text(), Trial: p.int(MeanOverTrials),
		Measure: p.text(), Variant: p.text(), Factor: p.text(), Statistic: p.text(),
		Value: p.float(), Low: p.float(), High: p.float(), Null: p.float(), N: p.int(0), Warning: p.text(),
	}
	if len(fields) > columnsBefore {
		r.P, r.PAdjusted = p.p(), p.p()
	}
	return r, p.err
}

func (p *parser) next() []byte {
	p.column++
	return p.fields[p.column-1]
}

func (p *parser) text() string {
	field := p.next()
	return p.texts.Text(p.column-1, field)
}

func (p *parser) int(empty int) int {
	s := p.next()
	if len(s) == 0 {
		return empty
	}
	v, err := strconv.Atoi(string(s))
	if err != nil {
		p.fail(s, "an integer")
	}
	return v
}

func (p *parser) float() float64 {
	s := p.next()
	if len(s) == 0 {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		p.fail(s, "a number")
	}
	return v
}

// p parses a p-value; 0 if there is none.
func (p *parser) p() float64 {
	v := p.float()
	if math.IsNaN(v) {
		return 0
	}
	if v < 0 || v > 1 {
		p.fail(p.fields[p.column-1], "a p-value")
	}
	return v
}

func (p *parser) fail(text []byte, expected string) {
	if p.err == nil {
		p.err = fmt.Errorf("column %s: %q is not %s", Columns[p.column-1], text, expected)
	}
}
