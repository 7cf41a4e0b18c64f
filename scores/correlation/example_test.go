package correlation_test

import (
	"fmt"
	"log"

	"github.com/noether-ml/noether/scores/correlation"
)

// Predict the accuracy Y of a model from its effective invariance X, a score in [0, 1] that needs
// no labels. Both are known for six other models, on N samples.
func Example() {
	points := []correlation.Point{
		{Label: "a", X: 0.31, Y: 0.52, N: 1000}, {Label: "b", X: 0.40, Y: 0.61, N: 1000}, {Label: "c", X: 0.48, Y: 0.66, N: 1000},
		{Label: "d", X: 0.55, Y: 0.75, N: 1000}, {Label: "e", X: 0.63, Y: 0.78, N: 1000}, {Label: "f", X: 0.72, Y: 0.85, N: 1000},
	}
	fit, err := correlation.Analyse(points, correlation.Options{Logit: true, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("r %.2f, rho %.2f, mean error of a prediction %.3f\n", fit.Pearson.Value, fit.Spearman.Value, fit.MeanAbsoluteError())
	seventh := fit.Predict(0.60)
	fmt.Printf("a model with 0.60: %.2f, within [%.1f, %.1f]\n", seventh.Value, seventh.Low, seventh.High)
	// Output:
	// r 0.99, rho 1.00, mean error of a prediction 0.015
	// a model with 0.60: 0.77, within [0.7, 0.8]
}
