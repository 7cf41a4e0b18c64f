package dataset

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// imagenetList has a line for each of the 1,000 outputs of an ImageNet classifier, in order: the
// WordNet synset and a name. The order is that of the sorted synsets of the 2012 challenge, as in
// PyTorch, Keras and TensorFlow. The names are torchvision's, where all names differ.
//
//go:embed imagenet.txt
var imagenetList string

var imagenet = sync.OnceValues(func() (synsets, names []string) {
	for line := range strings.Lines(imagenetList) {
		synset, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		synsets, names = append(synsets, synset), append(names, name)
	}
	return synsets, names
})

// ImageNetSynsets returns the WordNet synsets of the outputs of an ImageNet classifier, in order.
// With MatchClasses they map folders named by synset to outputs.
func ImageNetSynsets() []string {
	synsets, _ := imagenet()
	return slices.Clone(synsets)
}

// imageNetNames returns the names of the outputs of an ImageNet classifier, in order.
func imageNetNames() []string {
	_, names := imagenet()
	return slices.Clone(names)
}
