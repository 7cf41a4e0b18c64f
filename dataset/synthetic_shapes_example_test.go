package dataset_test

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/dataset"
)

// Sample 0 of a seed is the same figure on every machine, at any size and in any order of access.
// Factors are known properties of a sample: shape is the index of the class, hue and rotation are
// in degrees, and scale, x and y are fractions of the image's side.
func ExampleOpenShapes() {
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: 1000, Seed: 2, Rotation: []float64{-15, 15}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sample, err := shapes.At(context.Background(), 0, dataset.Frame{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(shapes.Classes()[sample.Label], sample.Input.Shape)
	for _, name := range shapes.Factors() {
		fmt.Printf("%s %.3f\n", name, sample.Factors[name])
	}
	// Output:
	// stripes [3 32 32]
	// hue 118.077
	// rotation -8.724
	// scale 0.505
	// shape 6.000
	// x -0.013
	// y 0.142
}
