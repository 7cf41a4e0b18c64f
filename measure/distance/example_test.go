package distance_test

import (
	"fmt"

	"github.com/noether-ml/noether/measure/distance"
)

// This example compares a vector with its double, which has the same direction.
func ExampleBetween() {
	d := distance.Between([]float32{3, 4}, []float32{6, 8})
	fmt.Printf("cosine %.2f, l1 %.0f, l2 %.0f, relative l2 %.2f\n", d.Cosine, d.L1, d.L2, d.RelativeL2)
	// Output: cosine 0.00, l1 7, l2 5, relative l2 0.63
}
