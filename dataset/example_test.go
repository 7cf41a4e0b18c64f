package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/noether-ml/noether/dataset"
)

// The example opens a folder of images and reads its second half at the input size of a model.
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
	// 411.jpg [3 224 224]
	// 422.jpg [3 224 224]
}

// ImageNet-A has 200 of the 1,000 classes. Its folders are named by synset. The example leaves out
// the other outputs of a model.
func ExampleRestrict() {
	ctx := context.Background()
	folder, err := dataset.OpenShapes(dataset.ShapesOptions{N: 10, Kinds: []string{"triangle", "square"}}) // in place of the folder
	if err != nil {
		log.Fatal(err)
	}
	outputs := []string{"disc", "square", "star", "triangle"} // for ImageNet: dataset.ImageNetSynsets()
	to, err := dataset.MatchClasses(folder.Classes(), outputs)
	if err != nil {
		log.Fatal(err)
	}
	src, keep, err := dataset.Restrict(folder, to, outputs)
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
