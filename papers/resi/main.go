// Resi makes the training data of the study papers/resi/resi.yaml, and the table of its results.
//
//	go run ./papers/resi data -n 3000 -o resi data_batch_1.bin
//	go run ./papers/resi table runs/labels/scores.csv runs/dots/scores.csv runs/noise/scores.csv runs/layers/scores.csv
//
// The study is the six tests of Klabunde et al. 2025 (ReSi, a benchmark of representational
// similarity), which ask whether measures of similarity tell apart networks that should differ.
// Networks and training sets are smaller than in the paper. papers/resi/resi.yaml has all commands.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

func main() { tablefile.Main("resi", run) }

func run(args []string, out io.Writer) error {
	if len(args) < 2 || args[0] != "data" && args[0] != "table" {
		return errors.New("usage: resi data [flags] IMAGES, or resi table SCORES... with files as arguments")
	}
	if args[0] == "table" {
		var runs [][]scores.Row
		for _, name := range args[1:] {
			rows, err := tablefile.ReadScores(name)
			if err != nil {
				return err
			}
			runs = append(runs, rows)
		}
		return writeTable(out, runs)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	n := flags.Int("n", 3000, "number of images, the first of the file")
	folder := flags.String("o", "resi", "folder of the data sets")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%d files: data takes one binary file of CIFAR-10", flags.NArg())
	}
	return writeData(flags.Arg(0), *folder, *n)
}

// groupOf returns the group and the seed of a network: "labels-50" and "3" for "labels-50-3".
func groupOf(network string) (group, seed string) {
	at := strings.LastIndexByte(network, '-')
	if at < 0 {
		return network, ""
	}
	return network[:at], network[at+1:]
}
