package scores

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// WriteCSV writes rows as CSV with a header line. Numbers have the fewest digits that read back as
// the same float64. NaN, and a depth or trial that does not apply, are empty.
func WriteCSV(w io.Writer, rows []Row) error {
	c := csv.NewWriter(w)
	c.Write(Columns)
	for _, r := range rows {
		c.Write([]string{
			r.Study, r.Model, r.Layer, formatInt(r.Depth), r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Parameter,
			formatInt(r.Trial), r.Measure, r.Variant, r.Factor, r.Statistic,
			formatFloat(r.Value), formatFloat(r.Low), formatFloat(r.High), formatFloat(r.Null), strconv.Itoa(r.N), r.Warning,
		})
	}
	c.Flush()
	return c.Error()
}

// ReadCSV reads rows that WriteCSV wrote. Errors name the line and the column.
func ReadCSV(r io.Reader) ([]Row, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: the header line with the column names is missing")
	}
	if err != nil {
		return nil, err
	}
	if !slices.Equal(header, Columns) {
		return nil, fmt.Errorf("line 1: not the header of a scores file, which starts with %s,%s,%s", Columns[0], Columns[1], Columns[2])
	}
	var rows []Row
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row, err := parseRow(record)
		if err != nil {
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
}

// parseRow parses the fields of one line, in the order of Columns.
func parseRow(f []string) (Row, error) {
	p := &parser{fields: f}
	r := Row{
		Study: p.text(), Model: p.text(), Layer: p.text(), Depth: p.int(NoDepth), OtherModel: p.text(), OtherLayer: p.text(),
		Data: p.text(), Transform: p.text(), Parameter: p.text(), Trial: p.int(MeanOverTrials),
		Measure: p.text(), Variant: p.text(), Factor: p.text(), Statistic: p.text(),
		Value: p.float(), Low: p.float(), High: p.float(), Null: p.float(), N: p.int(0), Warning: p.text(),
	}
	return r, p.err
}

// A parser reads the fields of a line in order, and keeps the first error.
type parser struct {
	fields []string
	column int
	err    error
}

func (p *parser) text() string {
	p.column++
	return p.fields[p.column-1]
}

func (p *parser) int(empty int) int {
	s := p.text()
	if s == "" {
		return empty
	}
	v, err := strconv.Atoi(s)
	if err != nil {
		p.fail(s, "an integer")
	}
	return v
}

func (p *parser) float() float64 {
	s := p.text()
	if s == "" {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.fail(s, "a number")
	}
	return v
}

func (p *parser) fail(text, expected string) {
	if p.err == nil {
		p.err = fmt.Errorf("column %s: %q is not %s", Columns[p.column-1], text, expected)
	}
}

// formatInt returns "" for a negative number, because NoDepth and MeanOverTrials are negative.
func formatInt(v int) string {
	if v < 0 {
		return ""
	}
	return strconv.Itoa(v)
}

// formatFloat writes infinities in the form that pandas and R read.
func formatFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
