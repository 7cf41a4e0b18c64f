package distance_test

import (
	"fmt"

	"github.com/noether-ml/noether/measure/distance"
)

// The example compares a vector with twice that vector, which has the same direction, so the cosine
// distance (1 - cosine) is 0. The relative l2 distance is l2 divided by the root mean square of the
// two norms, 5 and 10.
func ExampleBetween() {
	d := distance.Between([]float32{3, 4}, []float32{6, 8})
	fmt.Printf("cosine %.2f, l1 %.0f, l2 %.0f, relative l2 %.2f\n", d.Cosine, d.L1, d.L2, d.RelativeL2)
	// Output: cosine 0.00, l1 7, l2 5, relative l2 0.63
}
