// Synesis makes the tables of docs/results/probes.md about encoders that differ in training, from
// the scores of papers/synesis-encoders.yaml and papers/synesis-rate.yaml. The studies follow
// Plachouras et al. 2025, whose software is called synesis. P-equivariance is the measure
// parameter-equivariance (a probe predicts the parameter of a transformation), R-equivariance is
// representation-equivariance (a probe predicts the representation of the transformed input); the
// probes are slp (a single-layer perceptron, which is linear) and mlp.
//
//	go run ./papers/synesis -o papers/results runs/encoders/scores.csv runs/rate/scores.csv
//
// Of each study, named STUDY, it writes STUDY.csv, with the mean over the networks of each kind of
// training (which differ in the seed), and STUDY-differences.csv, with the differences between
// kinds. Networks are the independent units: intervals are Student's t over networks.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "synesis:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("synesis", flag.ContinueOnError)
	out := flags.String("o", ".", "folder of the tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the scores: runs/NAME/scores.csv")
	}
	for _, file := range flags.Args() {
		rows, err := tablefile.ReadScores(file)
		if err != nil {
			return err
		}
		if err := write(*out, rows); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
