package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/noether-ml/noether/scores"
)

const agreementMeasure = "prediction-agreement"

const noCommonPredictions = "the runs have no predictions of the same samples to compare: both studies need the measure accuracy or effective-invariance on the same data"

// printFlips prints the scores of prediction-agreement, with a row for each model, data set and
// transformation.
func printFlips(rows []scores.Row) {
	fmt.Println("Predictions, sample by sample: negative flips are right in A and wrong in B")
	t := textTable{header: []string{"of", "n", "disagreement", "negative flips", "", "positive flips", "", "error consistency", ""}}
	for _, row := range rows {
		if row.Statistic != "disagreement" {
			continue
		}
		line := []string{row.Describe(), fmt.Sprint(row.N), fourDigits(row.Value)}
		for _, statistic := range []string{"negative-flips", "positive-flips", "error-consistency"} {
			value, bounds := "", ""
			if i := slices.IndexFunc(rows, func(o scores.Row) bool { return o.Statistic == statistic && sameView(o, row) }); i >= 0 {
				o := rows[i]
				value, bounds = fourDigits(o.Value), interval{number(o.Value), number(o.Low), number(o.High)}.bounds()
			}
			line = append(line, value, bounds)
		}
		t.rows = append(t.rows, line)
	}
	t.align(1, 2, 3, 5, 7)
	fmt.Print(t.write(terminalWidth(os.Stdout), 0))
	for _, w := range warningsOf(rows) {
		fmt.Println("warning: " + w)
	}
}

// sameView reports whether two scores compare the same models on the same data under one view.
func sameView(a, b scores.Row) bool {
	return sameComparison(a, b) && a.Transform == b.Transform && a.Parameter == b.Parameter && a.Trial == b.Trial
}
