package linalg_test

import (
	"fmt"
	"log"

	"github.com/noether-ml/noether/internal/linalg"
)

// This example finds the principal components of three variables. The third is the sum of the
// others, so all variance is in two directions. The observations are added in two blocks and are
// not stored.
func Example() {
	// A Scatter holds the mean of the observations and the sums of products of deviations from it.
	// Centre subtracts the mean from a block of observations. The nil stands for a second Scatter,
	// of a part of the observations.
	scatter := linalg.NewScatter[float64](3)
	var scratch linalg.Scratch
	for _, rows := range [][]float32{{1, 0, 1, 2, 1, 3, 0, 3, 3}, {4, 1, 5, 1, 5, 6, 3, 3, 6}} {
		scatter.Add(linalg.Centre(rows, 3), nil, &scratch)
	}
	// The eigenvalues of the 3 x 3 scatter matrix are n times the variances of the components.
	values, _, err := linalg.Eigen(scatter.Square(0, 3), 3)
	if err != nil {
		log.Fatal(err)
	}
	directions := 0
	for _, v := range values {
		if v > 1e-6*values[0] {
			directions++
		}
	}
	fmt.Printf("%d observations, %d directions of %d\n", scatter.N, directions, scatter.P)
	// Output: 6 observations, 2 directions of 3
}
