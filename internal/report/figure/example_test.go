package figure_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// The example draws the score seis.equivariance over the depth of a network, under a rotation by 90
// degrees. Of the measure seis, this score says how well a linear map predicts a layer's activations
// after the rotation from those before. The figure is as wide as one column of a journal.
func Example() {
	var rows []scores.Row
	for i, value := range []float64{0.98, 0.91, 0.74, 0.42} {
		rows = append(rows, scores.Row{Model: "resnet20", Layer: fmt.Sprintf("stage%d", i+1), Depth: 10 * (i + 1), Data: "photos", Transform: "rotate90",
			Measure: "seis", Statistic: "equivariance", Value: value, Low: value - 0.02, High: value + 0.02, Null: 0.1, N: 16000})
	}
	f, err := figure.Draw(rows, figure.Options{Measures: reporttest.Measures(), Chart: figure.Depth, Columns: 1})
	if err != nil {
		log.Fatal(err)
	}
	var svg bytes.Buffer
	if err := f.Write(&svg, "svg"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Contains(svg.Bytes(), []byte("<svg")))
	// Output: true
}
