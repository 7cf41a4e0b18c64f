package spec

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/dataset"
)

// Place adds the position of classes, or else of the entry, to an error.
func (d Data) Place(err error) error {
	at := d.node
	if at == nil {
		return err
	}
	if classes := at.Get("classes"); classes != nil {
		at = classes
	}
	return at.Errorf("%w", err)
}

// Outputs returns the model's output for each class of the data, and whether the other outputs are
// left out.
func (d Data) Outputs(names []string, classes int) (to []int, restrict bool, err error) {
	synsets := dataset.ImageNetSynsets()
	known := classes == len(synsets) && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(synsets, n) })
	switch {
	case len(d.Classes) == 1 && d.Classes[0] == "present":
		if !known {
			return nil, false, fmt.Errorf("classes: present needs data whose classes are ImageNet synsets, and a model of %d classes", len(synsets))
		}
		to, err = dataset.MatchClasses(names, synsets)
		return to, true, err
	case d.Classes != nil:
		to, err = d.listedOutputs(names, synsets)
		return to, true, err
	case known:
		to, err = dataset.MatchClasses(names, synsets)
		return to, false, err
	case len(names) == classes || len(names) < classes && numbered(names):
		for i := range names {
			to = append(to, i)
		}
		return to, false, nil
	}
	return nil, false, fmt.Errorf("the data have %d classes and the model %d: say with classes: which output each class is (%s, ...)", len(names), classes, names[0])
}

// Placed reports whether the model's output for each class of the data can be found without the key
// classes.
func Placed(names []string, classes int) bool {
	_, _, err := Data{}.Outputs(names, classes)
	return err == nil
}

func (d Data) listedOutputs(names, synsets []string) ([]int, error) {
	if len(d.Classes) != len(names) {
		return nil, fmt.Errorf("classes: names %d outputs for the %d classes of the data", len(d.Classes), len(names))
	}
	to := make([]int, len(names))
	for i, c := range d.Classes {
		if at := slices.Index(synsets, c); at >= 0 {
			to[i] = at
			continue
		}
		v, err := strconv.Atoi(c)
		if err != nil {
			return nil, fmt.Errorf("classes: %q is neither an index of an output nor an ImageNet synset", c)
		}
		to[i] = v
	}
	return to, nil
}

// numbered reports whether the names of the classes are their indices, as for labels of arrays.
func numbered(names []string) bool {
	for i, n := range names {
		if n != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// OutputNames returns names of a model's outputs: the data's classes if they are known, else
// numbers.
func OutputNames(names []string, to []int, classes int) []string {
	out := make([]string, classes)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	for i, o := range to {
		if o >= 0 && o < classes {
			out[o] = names[i]
		}
	}
	return out
}
