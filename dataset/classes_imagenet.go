package dataset

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// imagenetList has a line for each of the 1,000 outputs of an ImageNet classifier, in order: the
// WordNet synset (a class by its WordNet ID, such as n01440764) and a name. The order is that of
// the sorted synsets of the 2012 challenge, as in PyTorch, Keras and TensorFlow. The names are
// torchvision's, of which no two are equal.
//
//go:embed imagenet.txt
var imagenetList string

var synsets = sync.OnceValue(func() (synsets []string) {
	for line := range strings.Lines(imagenetList) {
		synset, _, _ := strings.Cut(line, " ")
		synsets = append(synsets, synset)
	}
	return synsets
})

// ImageNetSynsets returns the WordNet synsets of the outputs of an ImageNet classifier, in order.
// With MatchClasses they map folders named by synset to outputs.
func ImageNetSynsets() []string { return slices.Clone(synsets()) }
