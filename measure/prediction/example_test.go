package prediction_test

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/tensor"
)

// Three images and their rotated versions. The model recognises the first one twice with
// confidence, the second one with less confidence when rotated, and the third one only when not
// rotated.
func Example() {
	p := []float64{0.9, 0.1, 0.8, 0.2, 0.7, 0.3}
	q := []float64{0.9, 0.1, 0.6, 0.4, 0.2, 0.8}
	clean, transformed := tensor.New(3, 2), tensor.New(3, 2)
	for i := range p {
		clean.Data[i], transformed.Data[i] = float32(math.Log(p[i])), float32(math.Log(q[i]))
	}

	site := measure.Site{Layout: measure.NewLayout(3), Classes: []string{"cat", "dog"}}
	a, err := prediction.EffectiveInvariance(prediction.Settings{}).New(site)
	if err != nil {
		panic(err)
	}
	err = a.Update(&measure.Batch{
		Place: []int{0, 1, 2}, Index: []int{0, 1, 2}, Label: []int{0, 0, 0}, Clean: clean, Transformed: transformed,
	})
	if err != nil {
		panic(err)
	}
	scores, err := a.Scores()
	if err != nil {
		panic(err)
	}
	for _, s := range scores {
		fmt.Printf("%s = %.3f over %d samples\n", s.Statistic, s.Value, s.N)
	}
	// Output: ei = 0.531 over 3 samples
}
