package table_test

import (
	"log"
	"os"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/internal/report/table"
	"github.com/noether-ml/noether/scores"
)

// Example writes effective invariance of two models under one transformation as a Markdown table.
func Example() {
	row := scores.Row{Data: "photos", Depth: scores.NoDepth, Transform: "gray", Measure: "effective-invariance", Statistic: "ei", N: 1000}
	a, b := row, row
	a.Model, a.Value, a.Low, a.High = "approved", 0.78, 0.75, 0.81
	b.Model, b.Value, b.Low, b.High = "candidate", 0.83, 0.80, 0.86
	t, err := table.Of([]scores.Row{a, b}, table.Options{Measures: reporttest.Measures()})
	if err != nil {
		log.Fatal(err)
	}
	if err := t.Markdown(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// | model | gray: effective invariance |
	// | --- | ---: |
	// | approved | 0.780 [0.750, 0.810] |
	// | candidate | 0.830 [0.800, 0.860] |
}
