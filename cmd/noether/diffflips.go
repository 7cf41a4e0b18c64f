package main

import (
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/noether-ml/noether/scores"
)

const agreementMeasure = "prediction-agreement"

const noCommonPredictions = "the runs have no predictions of the same samples to compare: both studies need the measure accuracy or effective-invariance on the same data"

// printFlips prints a row for each model, data set and transformation.
func printFlips(rows []scores.Row) {
	fmt.Fprintln(stdout, "Predictions, sample by sample: negative flips are right in A and wrong in B")
	t := textTable{header: []string{"of", "n", "disagreement", "negative flips", "", "positive flips", "", "error consistency", ""}}
	printPairs(rows, "disagreement", sameView, t, func(row scores.Row, other func(string) scores.Row) []string {
		line := []string{row.Describe(), fmt.Sprint(row.N), fourDigits(row.Value)}
		for _, statistic := range []string{"negative-flips", "positive-flips", "error-consistency"} {
			o := other(statistic)
			line = append(line, fourDigits(o.Value), intervalOf(o).bounds())
		}
		return line
	}, 1, 2, 3, 5, 7)
}

// printPairs prints a row for each score of a statistic, and warnings. line returns the cells of a
// row; other returns another statistic of the same comparison, or NaN.
func printPairs(rows []scores.Row, statistic string, same func(a, b scores.Row) bool, t textTable,
	line func(row scores.Row, other func(statistic string) scores.Row) []string, numbers ...int) {
	for _, row := range rows {
		if row.Statistic != statistic {
			continue
		}
		t.rows = append(t.rows, line(row, func(statistic string) scores.Row {
			if i := slices.IndexFunc(rows, func(o scores.Row) bool { return o.Statistic == statistic && same(o, row) }); i >= 0 {
				return rows[i]
			}
			return scores.Row{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
		}))
	}
	t.align(numbers...)
	fmt.Fprint(stdout, t.write(terminalWidth(os.Stdout), 0))
	var warnings []string
	for _, r := range rows {
		if w := r.Model + " → " + r.OtherModel + ": " + r.Warning; r.Warning != "" && !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
			fmt.Fprintln(stdout, "warning: "+w)
		}
	}
}

// sameView reports whether two scores compare the same models on the same data under one view.
func sameView(a, b scores.Row) bool {
	return sameComparison(a, b) && a.Transform == b.Transform && a.Parameter == b.Parameter && a.Trial == b.Trial
}
