package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/model/output"
)

// AddPosition adds the position of classes, or else of the entry, to an error.
func (d Data) AddPosition(err error) error {
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
// left out. The model has a number of classes, and labels for them or nil.
func (d Data) Outputs(names []string, classes int, labels []string) (to []int, restrict bool, err error) {
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
		to, err = d.listedOutputs(names, synsets, labels)
		return to, true, err
	case known:
		to, err = dataset.MatchClasses(names, synsets)
		return to, false, err
	}
	if to, err := matchLabels(names, labels); to != nil || err != nil {
		return to, false, err
	}
	switch {
	case len(names) == classes || len(names) < classes && numbered(names):
		for i := range names {
			to = append(to, i)
		}
		return to, false, nil
	}
	return nil, false, fmt.Errorf("the data have %d classes and the model has %d: set classes to the output of each class (%s, ...)", len(names), classes, names[0])
}

// HasOutputs reports whether the model's output for each class of the data can be inferred without
// the key classes.
func HasOutputs(names []string, classes int, labels []string) bool {
	_, _, err := Data{}.Outputs(names, classes, labels)
	return err == nil
}

// matchLabels returns the index of the label that each name matches, or nil if no name matches a
// label. It is an error if only some names match.
func matchLabels(names, labels []string) ([]int, error) {
	var to []int
	missing := ""
	for _, name := range names {
		if i := labelIndex(labels, name); i >= 0 {
			to = append(to, i)
		} else {
			missing = cmp.Or(missing, name)
		}
	}
	if len(to) == 0 || missing == "" {
		return to, nil
	}
	return nil, fmt.Errorf("class %q of the data is not a label of the model, but %d of %d classes are: set classes to the output of each class",
		missing, len(to), len(names))
}

// labelIndex returns the index of the only label that a name matches, or -1. Case is ignored, and _
// and - count as spaces. A label with alternatives, such as "tabby, tabby cat", matches each of
// them and the whole text.
func labelIndex(labels []string, name string) int {
	plain := func(s string) string {
		return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" _-", r) }), " "))
	}
	name = plain(name)
	exact, alternative, alternatives := -1, -1, 0
	for i, label := range labels {
		if plain(label) == name {
			if exact >= 0 {
				return -1
			}
			exact = i
		}
		if slices.ContainsFunc(strings.Split(label, ","), func(s string) bool { return plain(s) == name }) {
			alternative, alternatives = i, alternatives+1
		}
	}
	if exact < 0 && alternatives == 1 {
		return alternative
	}
	return exact
}

// TruthOutputs returns the class of a model's decoded output for each class of labelled boxes, -1: none. Classes
// are matched by name if the model has names, else by order if there are equally many, else by number.
func (d Data) TruthOutputs(classes []dataset.TruthClass, f *output.Format) ([]int, error) {
	var names []string
	largest := 0
	for _, c := range classes {
		names = append(names, c.Name)
		largest = max(largest, c.ID)
	}
	to := make([]int, len(classes))
	switch {
	case d.Classes != nil:
		return d.listedOutputs(names, nil, f.Names)
	case f.Names != nil:
		for i, name := range names {
			if to[i] = labelIndex(f.Names, name); to[i] < 0 {
				return nil, fmt.Errorf("category %q of the data is not a class of the model (%s, ...): set classes to the class of each category", name, f.Names[0])
			}
		}
	case f.Classes == len(classes):
		for i := range to {
			to[i] = i
		}
	case largest < f.ClassLimit():
		for i, c := range classes {
			to[i] = c.ID
		}
	default:
		return nil, fmt.Errorf("the data have %d categories, with numbers up to %d, and the model has %d classes without names: set classes to the class of each category", len(classes), largest, f.ClassLimit())
	}
	return to, nil
}

func (d Data) listedOutputs(names, synsets, labels []string) ([]int, error) {
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
			v = labelIndex(labels, c)
		}
		if err != nil && v < 0 {
			return nil, fmt.Errorf("classes: %q is neither an index of an output, an ImageNet synset nor a label of the model", c)
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

// OutputNames returns names of a model's outputs: the data's classes if they are known, else the
// model's labels, else numbers.
func OutputNames(names []string, to []int, classes int, labels []string) []string {
	out := make([]string, classes)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	if len(labels) == classes {
		copy(out, labels)
	}
	for i, o := range to {
		if o >= 0 && o < classes {
			out[o] = names[i]
		}
	}
	return out
}
