//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"slices"
	"strconv"
)

// A table is one table of the page on performance.
type table struct {
	Name    string
	Slow    bool // measured only if the command line names it
	Columns []string
	Rows    []row
}

// A row is one task, measured by sources of Noether and of its peer.
type row struct {
	Text    map[string]string // texts in the row, by column
	Prepare [][]string        // what a script makes in the work folder, the script and its arguments
	Run     []string          // the source of cells without one
	Cells   []cell
	// Ratios are names of columns. The k-th compares the cells 2k, of the peer, and 2k+1, of
	// Noether: how many times as fast as the peer Noether is, or as the fastest of several peers.
	Ratios []string
}

// A cell is one measured number.
type cell struct {
	Column string
	Run    []string // a kind of source and its arguments; see tables.yaml
	Metric string   // of the source, such as "images/s"
	Unit   string   // in the table; "": a count. Seconds and milliseconds are times, all others rates
	Memory string   // the metric of the source that is its peak memory in MiB; "": none
	Once   bool     // measured in the first round only
	Rival  bool     // of a further peer, which the ratio of the row takes if it is the fastest
	from   *source
}

// metrics are the results of one process by name, which for a Go benchmark is the unit.
type metrics map[string]float64

// A source runs a benchmark. Cells of a row with one source show metrics of the same run.
type source struct{ run sourceFunc }

type sourceFunc func(ctx context.Context, r *runner) (metrics, error)

// errSkip reports that a benchmark cannot run on this machine.
var errSkip = errors.New("not measured here")

// A measurement is what a stored table holds in one column of a row. For a cell, Value is the
// median over rounds, and Low and High are the smallest and the largest value. Columns of text have
// Text only; ratios and the number of rounds have Value only.
type measurement struct {
	Text   string `json:"text,omitempty"`
	Value  string `json:"value,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Low    string `json:"low,omitempty"`
	High   string `json:"high,omitempty"`
	Memory string `json:"memory,omitempty"`
}

type results struct {
	Date    string                   `json:"date"`
	Machine string                   `json:"machine"`
	Columns []string                 `json:"columns"`
	Rows    []map[string]measurement `json:"rows"`
}

// measure measures all rows, each cell once in a round. Cells that cannot be measured stay empty.
func (t table) measure(ctx context.Context, r *runner, rounds int) (results, error) {
	out := results{Columns: t.Columns}
	for _, row := range t.Rows {
		values := make([][]float64, len(row.Cells))
		memory := make([]float64, len(row.Cells))
		for round := range rounds {
			done := map[*source]metrics{}
			for i, c := range row.Cells {
				if round > 0 && c.Once {
					continue
				}
				m, ok := done[c.from]
				if !ok {
					var err error
					if m, err = c.from.run(ctx, r); err != nil && !errors.Is(err, errSkip) {
						return out, fmt.Errorf("%v: %s: %w", row.Text, c.Column, err)
					}
					done[c.from] = m
				}
				if m == nil {
					continue
				}
				v, ok := m[c.Metric]
				if !ok {
					return out, fmt.Errorf("%v: %s: no metric %q among %v", row.Text, c.Column, c.Metric, m)
				}
				values[i] = append(values[i], v)
				memory[i] = max(memory[i], m[c.Memory])
			}
		}
		out.Rows = append(out.Rows, row.stored(rounds, values, memory))
		log.Printf("%s: %v: %.4g", t.Name, row.Text, values)
	}
	return out, nil
}

// stored returns the measurements of a row by column. For each of r.Cells, values holds the result
// of each round in which it was measured, and memory the peak over these rounds.
func (r row) stored(rounds int, values [][]float64, memory []float64) map[string]measurement {
	cells := map[string]measurement{"rounds": {Value: strconv.Itoa(rounds)}}
	for column, text := range r.Text {
		cells[column] = measurement{Text: text}
	}
	for i, c := range r.Cells {
		if len(values[i]) == 0 {
			continue
		}
		m := measurement{Value: digits(median(values[i])), Unit: c.Unit}
		if c.Unit == "" { // a count
			m.Value = fmt.Sprintf("%.0f", median(values[i]))
		}
		if low, high := digits(slices.Min(values[i])), digits(slices.Max(values[i])); low != high {
			m.Low, m.High = low, high
		}
		if memory[i] > 0 {
			m.Memory = fmt.Sprintf("%.0f MiB", memory[i])
		}
		cells[c.Column] = m
	}
	for k, column := range r.Ratios {
		if len(values[2*k]) == 0 || len(values[2*k+1]) == 0 {
			continue
		}
		peer := r.speed(2*k, values)
		for i, c := range r.Cells {
			if c.Rival && len(values[i]) > 0 {
				peer = max(peer, r.speed(i, values))
			}
		}
		cells[column] = measurement{Value: digits(r.speed(2*k+1, values) / peer)}
	}
	return cells
}

// speed returns the median rate of a cell, or one divided by its median time.
func (r row) speed(i int, values [][]float64) float64 {
	if unit := r.Cells[i].Unit; unit == "s" || unit == "ms" {
		return 1 / median(values[i])
	}
	return median(values[i])
}

// median returns the middle value, or the mean of the two middle ones.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// digits formats a number with at least three significant digits, without an exponent.
func digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	after := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', after, 64)
}
