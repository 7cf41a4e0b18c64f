package transform_test

import (
	"fmt"

	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

func Example() {
	image, _ := tensor.From([]float32{
		1, 2,
		3, 4,
	}, 1, 2, 2)
	rotated := tensor.New(1, 2, 2)

	rotate, _ := transform.Lookup("rotate")
	quarter, err := rotate.Make(transform.Args{"angle": transform.Fixed(90)})
	if err != nil {
		fmt.Println(err)
		return
	}
	quarter.Draw(nil).Apply(rotated, image) // nothing to draw: the angle is fixed
	fmt.Println(rotated.Data)

	_, err = rotate.Make(transform.Args{"angle": transform.Fixed(400)})
	fmt.Println(err)
	// Output:
	// [2 4 1 3]
	// rotate: angle must be between -360 and 360 degrees, not 400
}

func ExampleKinds() {
	for _, k := range transform.Kinds() {
		if k.Name != "hue" {
			continue
		}
		fmt.Println(k.Name+":", k.Doc)
		for _, p := range k.Params {
			fmt.Printf("  %s (%s): %s\n", p.Name, p.Range(), p.Doc)
		}
	}
	// Output:
	// hue: Rotates the colours by a fraction of the colour circle.
	//   shift (between -0.5 and 0.5): fraction of the circle; 1/3 turns red into green
}
