package similarity_test

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/measure/similarity"
)

// Centered kernel alignment (CKA) does not change when a representation is rotated. Of takes the
// values row by row: here 5 samples with 2 variables each.
func ExampleValue() {
	x, _ := similarity.Of([]float32{1, 0, 0, 1, -1, 0, 0, -1, 2, 1}, 5, 2)
	y, _ := similarity.Of([]float32{0, 1, -1, 0, 0, -1, 1, 0, -1, 2}, 5, 2) // rotated by 90 degrees
	v, err := similarity.Value(context.Background(), similarity.LinearCKA, x, y, similarity.Defaults())
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.3f\n", v)
	// Output: 1.000
}

// With as many variables as samples, canonical correlations are 1 for any representations. The null
// and a warning say so.
func ExampleCompare() {
	x, _ := similarity.Of([]float32{4, 1, 3, 9, 2, 6, 5, 3, 5, 8, 9, 7}, 4, 3)
	y, _ := similarity.Of([]float32{2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5}, 4, 3)
	settings := similarity.Defaults()
	settings.Statistics = []string{similarity.CCA}
	scores, err := similarity.Compare(context.Background(), x, y, similarity.Options{Settings: settings})
	if err != nil {
		panic(err)
	}
	fmt.Println(scores[0].Value, scores[0].Null)
	fmt.Println(scores[0].Warnings[0])
	// Output:
	// 1 1
	// as many dimensions as samples: 1 by chance, whatever the representations
}
