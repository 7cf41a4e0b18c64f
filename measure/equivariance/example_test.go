package equivariance_test

import (
	"fmt"

	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// This example compares two layers under a rotation of the input by 90 degrees: the feature map of
// the first rotates too, that of the second stays. Clean is the feature map for the input itself.
// RelativeError is 0 if the map for the rotated input equals the rotated clean map.
func ExampleBetween() {
	maps, _ := tensor.Layer{Shape: []int{1, 2, 2}, Axes: "NCHW"}.Maps()
	rotation := transform.Rotate{Angle: transform.Fixed(90)}.Draw(nil)
	clean := []float32{
		1, 2,
		3, 4,
	}
	rotated := []float32{
		2, 4,
		1, 3,
	}
	follows, _ := equivariance.Between(maps, transform.MotionOf(rotation), equivariance.Settings{}, clean, rotated)
	ignores, _ := equivariance.Between(maps, transform.MotionOf(rotation), equivariance.Settings{}, clean, clean)
	fmt.Printf("%.2f %.2f\n", follows.RelativeError, ignores.RelativeError)
	// Output: 0.00 0.58
}
