package paired_test

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/tensor"
)

// The mean absolute change of a layer of one value.
func ExampleNew() {
	change := paired.New(paired.Spec{
		Descriptor: measure.Descriptor{Name: "change", Statistics: []measure.StatisticDescriptor{
			{Name: "absolute", Range: measure.NotNegative, Null: "shuffled pairs"},
		}},
		Version: 1, StateVersion: 1, Settings: struct{}{},
		Needs:   measure.Needs{Transformed: true},
		Columns: []paired.Column{{Statistic: "absolute", Transformed: true}},
		Pair: func(out []float64, _ int, clean, transformed []float32) error {
			out[0] = math.Abs(float64(transformed[0] - clean[0]))
			return nil
		},
	})
	acc, err := change.New(measure.Site{Layer: tensor.Layer{Shape: []int{1}, Axes: "NC"}, Layout: measure.NewLayout(2)})
	if err != nil {
		panic(err)
	}
	err = acc.Update(&measure.Batch{
		Place: []int{0, 1}, Index: []int{0, 1}, Label: []int{measure.NoLabel, measure.NoLabel},
		Clean:       tensor.Tensor{Shape: []int{2, 1}, Data: []float32{1, 5}},
		Transformed: tensor.Tensor{Shape: []int{2, 1}, Data: []float32{1.5, 6}},
	})
	if err != nil {
		panic(err)
	}
	scores, err := acc.Scores()
	if err != nil {
		panic(err)
	}
	fmt.Println(scores[0].Value, scores[0].Null)
	// Output: 0.75 4.25
}
