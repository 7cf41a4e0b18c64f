package prediction_test

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/tensor"
)

// This example measures the effective invariance (ei) of a model on three images and their rotated
// versions: the mean of sqrt(p q), where p and q are the probabilities of the predicted class of an
// image and of its rotated version, and of 0 if the predicted classes differ. The model recognises
// the first image with the same confidence when it is rotated, the second with less confidence, and
// the third only when it is not rotated.
func Example() {
	// Probabilities of the classes cat and dog for each image, and for each rotated image.
	p := []float64{0.9, 0.1, 0.8, 0.2, 0.7, 0.3}
	q := []float64{0.9, 0.1, 0.6, 0.4, 0.2, 0.8}
	clean, transformed := tensor.New(3, 2), tensor.New(3, 2)
	for i := range p {
		clean.Data[i], transformed.Data[i] = float32(math.Log(p[i])), float32(math.Log(q[i]))
	}

	// The measure ignores labels.
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
