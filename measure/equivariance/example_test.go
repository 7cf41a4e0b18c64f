package equivariance_test

import (
	"fmt"

	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// This example compares a layer whose map moves with the input with one that ignores the
// transformation.
func ExampleBetween() {
	maps, _ := onnx.Layer{Shape: []int{1, 2, 2}, Axes: "NCHW"}.Maps()
	turn := transform.Rotate{Angle: transform.Fixed(90)}.Draw(nil)
	clean := []float32{
		1, 2,
		3, 4,
	}
	moved := []float32{
		2, 4,
		1, 3,
	}
	follows, _ := equivariance.Between(maps, turn, equivariance.Settings{}, clean, moved)
	ignores, _ := equivariance.Between(maps, turn, equivariance.Settings{}, clean, clean)
	fmt.Printf("%.2f %.2f\n", follows.RelativeError, ignores.RelativeError)
	// Output: 0.00 0.58
}
