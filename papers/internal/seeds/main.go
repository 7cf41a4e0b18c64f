// Seeds makes tables of means over trainings that differ only in their seed.
//
//	go run ./papers/internal/seeds table -row layer -column network -score equivariance runs/x/scores.csv > papers/results/x.csv
//	go run ./papers/internal/seeds correlations all.csv "without a=rest.csv" > papers/results/y.csv
//	go run ./papers/internal/seeds deviations -data clean "from the trend=apart.json" > papers/results/z.csv
//
// table reads the scores of a study of networks of trainings (see checkpoints in
// docs/reference/study-file.md), whose names are like SERIES/seed-2-augment-plain: SERIES is the
// name of the entry of models, and what follows the seed is the network. Each cell of the table is
// the mean over seeds with Student's 95 % interval. With -of and -minus there are also means of
// differences, taken seed by seed, of two networks, layers or epochs. With -unpaired they are
// differences of means, with Welch's interval, for networks that share no seed. correlations makes
// a table of what noether correlate --csv has written (correlations of scores over models), with a
// row for each data set; TEXT=FILE adds TEXT to the titles of the columns of FILE. deviations makes a
// table of what noether correlate --apart --json has written: for each network the mean over seeds of
// how far its accuracy is above the line of the others. All write CSV as papers/internal/results
// reads it.
package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("seeds", run) }

func run(args []string, out io.Writer) error {
	if len(args) < 2 || !slices.Contains([]string{"table", "correlations", "deviations"}, args[0]) {
		return errors.New("usage: seeds table [flags] SCORES, or seeds correlations FILES, or seeds deviations FILES")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	l := layout{shown: map[string][]string{}}
	list := func(name, usage string, set *[]string) {
		flags.Func(name, usage, func(s string) error { *set = append(*set, strings.Split(s, ",")...); return nil })
	}
	list("row", "fields that name the rows: series, network, epoch, layer, data, transform, score", &l.row)
	list("column", "fields that name the columns", &l.column)
	list("score", "statistics that are shown; null-NAME is the null of NAME", &l.statistics)
	for _, field := range []string{"transform", "series", "network", "layer", "epoch", "data"} {
		flags.Func(field, "values of the "+field+" that are shown; default all", func(s string) error { l.shown[field] = strings.Split(s, ","); return nil })
	}
	list("of", "values of the field of -by from which another is subtracted", &l.of)
	flags.StringVar(&l.minus, "minus", "", "the value that is subtracted")
	flags.BoolVar(&l.unpaired, "unpaired", false, "differences of means over different seeds, in place of differences seed by seed")
	flags.StringVar(&l.by, "by", "network", "the field in which the scores of a difference differ")
	flags.IntVar(&l.digits, "digits", 2, "decimal places")
	list("name", "OLD=NEW, or FIELD:OLD=NEW, for a label of a row or column", &l.names)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "correlations":
		return l.correlations(out, flags.Args())
	case "deviations":
		return l.deviations(out, flags.Args())
	}
	rows, err := tablefile.ReadScores(flags.Args()...)
	if err != nil {
		return err
	}
	return l.write(out, rows)
}
