package equivariance_test

import (
	"fmt"

	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// The map of a layer that moves with the input, and of one that ignores it.
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
