// Package tablefile reads the scores and writes the tables of the programs of papers.
package tablefile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"

	"github.com/noether-ml/noether/scores"
)

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
