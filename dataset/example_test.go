package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/noether-ml/noether/dataset"
)

// The example opens a folder of images without labels (the layout flat), selects a random half of
// them (the fractions 0.5 to 1 of a random order), and reads two samples at the input size of a
// model.
func Example() {
	ctx := context.Background()
	folder, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: "testdata/images", Layout: "flat"})
	if err != nil {
		log.Fatal(err)
	}
	half, err := dataset.Split(ctx, folder, 0.5, 1, dataset.SplitOptions{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	frame := dataset.Frame{Resize: 256, Height: 224, Width: 224, Channels: 3}
	for sample, err := range dataset.Read(ctx, half, []int{0, 1}, frame, dataset.ReadOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(sample.Name, sample.Input.Shape)
	}
	// Output:
	// 411.jpg.rgb.png [3 224 224]
	// 440-narrow.jpg.rgb.png [3 224 224]
}

// The example finds the outputs of a model whose classes the data have, and makes labels indices
// into these. It does so for generated shapes. For ImageNet-A, a folder with 200 of the 1,000
// classes of ImageNet, outputs would be dataset.ImageNetSynsets(), the WordNet names of its class
// folders.
func ExampleRestrict() {
	ctx := context.Background()
	data, err := dataset.OpenShapes(dataset.ShapesOptions{N: 10, Kinds: []string{"triangle", "square"}})
	if err != nil {
		log.Fatal(err)
	}
	outputs := []string{"disc", "square", "star", "triangle"} // classes of the model
	to, err := dataset.MatchClasses(data.Classes(), outputs)
	if err != nil {
		log.Fatal(err)
	}
	src, keep, err := dataset.Restrict(data, to, outputs)
	if err != nil {
		log.Fatal(err)
	}
	sample, err := src.At(ctx, 0, dataset.Frame{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("selected outputs:", keep)
	fmt.Println("classes:", src.Classes())
	fmt.Println("a label is an index into these:", sample.Label < len(keep))
	// Output:
	// selected outputs: [1 3]
	// classes: [square triangle]
	// a label is an index into these: true
}
