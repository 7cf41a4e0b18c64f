package main

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/noether-ml/noether/scores"
)

const agreementMeasure = "prediction-agreement"

// noFlips is the error where predictions cannot be compared.
const noFlips = "the runs have no predictions of the same samples to compare: both studies need the measure accuracy or effective-invariance on the same data"

// printFlips prints a line for each model, data set and transformation.
func printFlips(rows []scores.Row) error {
	fmt.Println("Predictions, sample by sample: negative flips are right in A and wrong in B")
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "of\tn\tdisagreement\tnegative flips\t\tpositive flips\t\terror consistency\t\t")
	for _, row := range rows {
		if row.Statistic != "disagreement" {
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%s", row.Describe(), row.N, fourDigits(row.Value))
		for _, statistic := range []string{"negative-flips", "positive-flips", "error-consistency"} {
			value, bounds := "", ""
			if i := slices.IndexFunc(rows, func(o scores.Row) bool { return o.Statistic == statistic && sameView(o, row) }); i >= 0 {
				o := rows[i]
				value, bounds = fourDigits(o.Value), interval{number(o.Value), number(o.Low), number(o.High)}.bounds()
			}
			fmt.Fprintf(t, "\t%s\t%s", value, bounds)
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, w := range warningsOf(rows) {
		fmt.Println("warning: " + w)
	}
	return nil
}

func sameView(a, b scores.Row) bool {
	return sameComparison(a, b) && a.Transform == b.Transform && a.Parameter == b.Parameter && a.Trial == b.Trial
}
