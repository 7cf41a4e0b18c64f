package tensor_test

import (
	"fmt"
	"log"

	"github.com/noether-ml/noether/tensor"
)

// The batch has two images of one channel and 2 x 2 pixels.
func Example() {
	batch, err := tensor.From([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 1, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	second := batch.At(1)
	second.Data[0] = 50 // second and batch share memory
	fmt.Println(second.Shape, batch.Data)
	// Output: [1 2 2] [1 2 3 4 50 6 7 8]
}
