// Package benchmark lists robustness benchmarks of image models: the folders in which they are
// published, their corruptions and severities, and the errors by which their scores are divided.
//
// A benchmark is data. To add one, add it to the list in benchmarks.go.
package benchmark

import (
	"fmt"
	"slices"
	"strings"
)

// Clean is the kind of the data without a corruption or a shift.
const Clean = "clean"

// Shifted is the kind of the data of a benchmark that has one set of other images.
const Shifted = "shifted"

// A Layout is how the files of a benchmark are published.
type Layout int

// The layouts.
const (
	Folders   Layout = iota // a folder of images for each kind and severity
	Stacked                 // an array of all severities for each kind, one after the other, and labels.npy
	Single                  // one folder of images
	COCO                    // images with annotations, which are corrupted here: nothing is published
	Sequences               // a folder of videos for each kind
)

// A Benchmark is a set of data sets with a published protocol.
type Benchmark struct {
	Name, Title, Source string
	Published           string // the name of the folder that is published
	Layout              Layout
	Kinds               []Kind
	Severities          []int
	// Folders are the possible folders of a kind and severity below the root, with GROUP, KIND and
	// SEVERITY.
	Folders []string
	Images  int // published of each data set, or videos; 0: not known
	// Classes is the number of classes of the images, and Chance the accuracy of guessing; 0: there
	// are none.
	Classes int
	Chance  float64
	// Ready reports whether the images are published in the model's size: they are not resized and
	// cropped again.
	Ready bool
	// Present reports whether only the outputs of the classes in the folder are compared, and
	// Numbered whether the folders of classes are named by the numbers of outputs.
	Present, Numbered bool
	// Groups returns the outputs of ImageNet's 1,000 (indices or synsets) of each class, given the
	// folder of the benchmark; nil: a class is one output. With Mean the scores of a class are the
	// mean probabilities of its outputs; otherwise the most probable output counts.
	Groups func(root string) (map[string][]string, error)
	Mean   bool
	// Inside is the folder of the images below the root, and Border the number of pixels that are
	// cut off at each side of an image.
	Inside string
	Border int
	// Own reports whether this program can corrupt clean images in place of the published ones.
	Own bool
	// Reference names the model whose errors scores are divided by, CleanReference is its error
	// without a corruption; "": nothing is divided.
	Reference      string
	CleanReference float64
	// Measure and Statistic are the score of each data set: an accuracy, a precision or a flip rate.
	Measure, Statistic string
}

// A Kind is a corruption or a perturbation.
type Kind struct {
	Name, Group string
	Reference   float64 // mean error over severities, or flip rate, of the reference; 0: none
	Extra       bool    // published with the others, and not part of the mean
}

// Folder returns the name of a kind as published, with underscores.
func (k Kind) Folder() string { return strings.ReplaceAll(k.Name, "-", "_") }

// FromFirst reports whether the frames of a sequence are compared with the first one, since they
// are independent draws of noise, and not each with the one before it.
func (k Kind) FromFirst() bool { return strings.HasSuffix(k.Name, "noise") }

// Find returns the benchmark of that name. Other names are an error that lists them.
func Find(name string) (Benchmark, error) {
	for _, b := range All() {
		if b.Name == name {
			return b, nil
		}
	}
	return Benchmark{}, fmt.Errorf("unknown benchmark %q: there are %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all benchmarks.
func Names() []string {
	var out []string
	for _, b := range All() {
		out = append(out, b.Name)
	}
	return out
}

// Kind returns the kind of that name, and reports whether there is one.
func (b Benchmark) Kind(name string) (Kind, bool) {
	i := slices.IndexFunc(b.Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return b.Kinds[i], true
}

// Standard returns the names of the kinds of which the published number is the mean.
func (b Benchmark) Standard() []string {
	var out []string
	for _, k := range b.Kinds {
		if !k.Extra {
			out = append(out, k.Name)
		}
	}
	return out
}

// Path returns a folder of Folders for a kind and severity.
func (b Benchmark) Path(folder string, k Kind, severity int) string {
	return strings.NewReplacer("GROUP", k.Group, "KIND", k.Folder(), "SEVERITY", fmt.Sprint(severity)).Replace(folder)
}
