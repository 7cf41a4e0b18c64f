// Synesis makes data and tables of the experiments that follow Plachouras et al. 2025, whose
// software is called synesis.
//
//	go run ./papers/synesis strings -digits data/fsdd -o strings
//	go run ./papers/synesis tables -o papers/results runs/encoders/scores.csv runs/rate/scores.csv
//
// Strings joins spoken digits to utterances, of which synesis-rate.yaml measures the speech rate.
// Tables makes, of each study STUDY, STUDY.csv with the mean over the networks of each kind of
// training (which differ in the seed), and STUDY-differences.csv with the differences between
// kinds. Networks are the independent units: intervals are Student's t over networks.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("synesis", run) }

func run(args []string, _ io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "strings":
		return writeStrings(args[1:])
	case len(args) > 0 && args[0] == "tables":
		return writeTables(args[1:])
	}
	return errors.New("usage: synesis strings [flags], or synesis tables [flags] SCORES")
}

func writeTables(args []string) error {
	flags := flag.NewFlagSet("tables", flag.ContinueOnError)
	out := flags.String("o", ".", "folder of the tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the scores: runs/NAME/scores.csv")
	}
	for _, file := range flags.Args() {
		rows, err := tablefile.ReadScores(file)
		if err == nil {
			err = write(*out, rows)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
