// Package tablefile has what the programs of papers share: reading scores, means over networks with
// intervals, and writing tables of papers/results.
package tablefile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// Main runs a program, and ends it with the status 1 after an error.
func Main(name string, run func(args []string, out io.Writer) error) {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// ReadScores reads scores.csv files, one after the other.
func ReadScores(files ...string) ([]scores.Row, error) {
	var all []scores.Row
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		rows, err := scores.ReadCSV(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// Read reads a CSV file.
func Read(file string) ([][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

// Write writes a CSV file.
func Write(file string, rows [][]string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close())
}

// A Sample holds a score of each network of a kind, by the network or its seed.
type Sample map[string]float64

// Values returns the scores in ascending order, so that sums do not depend on the order of the map.
func (s Sample) Values() []float64 { return slices.Sorted(maps.Values(s)) }

// Minus returns the differences from the scores of the same networks in another sample, in
// ascending order.
func (s Sample) Minus(other Sample) []float64 {
	var out []float64
	for network, v := range s {
		if o, ok := other[network]; ok {
			out = append(out, v-o)
		}
	}
	slices.Sort(out)
	return out
}

// Interval returns the mean of independent values and Student's 95 % interval, whose ends are NaN
// if there are fewer than two.
func Interval(values []float64) (mean, low, high float64) {
	mean, half := resample.Student(values)
	return mean, mean - half, mean + half
}

// Cells returns the cells of a value and of the ends of its interval, in a format such as %.3f. A
// NaN is an empty cell, and so are both ends if one is NaN.
func Cells(format string, value, low, high float64) []string {
	out := make([]string, 3)
	if !math.IsNaN(value) {
		out[0] = fmt.Sprintf(format, value)
	}
	if !math.IsNaN(low + high) {
		out[1], out[2] = fmt.Sprintf(format, low), fmt.Sprintf(format, high)
	}
	return out
}
