package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/decoded"
)

// AddPosition adds to an error the position of the key classes in the study file, or the position
// of the data entry (the description of one data set there) if it lacks the key.
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

// Outputs returns for each class of the data, given by its name, the index of the model's output.
// It returns restrict as true if the other outputs are removed before the softmax. The model has
// the given number of classes; modelNames are its names of them, or nil. Names that are all
// ImageNet synsets (WordNet IDs such as n01440764) match the outputs of a model of ImageNet's 1,000
// classes. The key classes can list the outputs, or be the word present, which keeps only the
// outputs of such synsets as the data have. It is an error if no rule finds the outputs. Listed
// indices are not checked against the number of classes.
func (d Data) Outputs(names []string, classes int, modelNames []string) (outputs []int, restrict bool, err error) {
	synsets := dataset.ImageNetSynsets()
	areSynsets := classes == len(synsets) && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(synsets, n) })
	switch {
	case len(d.Classes) == 1 && d.Classes[0] == "present":
		if !areSynsets {
			return nil, false, fmt.Errorf("classes: present needs data whose classes are ImageNet synsets, and a model of %d classes", len(synsets))
		}
		outputs, err = dataset.MatchClasses(names, synsets)
		return outputs, true, err
	case d.Classes != nil:
		outputs, err = d.listedOutputs(names, synsets, modelNames)
		return outputs, true, err
	case areSynsets:
		outputs, err = dataset.MatchClasses(names, synsets)
		return outputs, false, err
	}
	if outputs, err := matchNames(names, modelNames); outputs != nil || err != nil {
		return outputs, false, err
	}
	if len(names) == classes || len(names) < classes && AreIndices(names) {
		for i := range names {
			outputs = append(outputs, i)
		}
		return outputs, false, nil
	}
	return nil, false, fmt.Errorf("the data have %d classes and the model has %d: set classes to the output of each class (%s, ...)", len(names), classes, names[0])
}

// OrderDoubt returns why it is doubtful that the classes of the data are in the order of the
// model's outputs, or "". The arguments are those of Outputs. Classes whose order alone says which
// output is theirs are sorted by name as text, in which 10 comes before 2.
func (d Data) OrderDoubt(names []string, classes int, modelNames []string) string {
	imageNet := len(dataset.ImageNetSynsets())
	if d.Classes == nil && modelNames == nil && len(names) == imageNet && classes == imageNet+1 {
		return "the model has one output more than the data have classes, which in models of TensorFlow is the first, for the background: if it is, set classes to the output of each class, from 1 on"
	}
	if d.Classes != nil || len(names) != classes || classes == imageNet {
		return ""
	}
	if outputs, err := matchNames(names, modelNames); outputs != nil || err != nil {
		return ""
	}
	for i := range len(names) - 1 {
		if a, b := names[i], names[i+1]; numbersDescend(a, b) {
			return fmt.Sprintf("the classes are in the order of their names as text, %q before %q, and nothing says that the outputs of the model are: if they are not, set classes to the output of each class", a, b)
		}
	}
	return ""
}

// numbersDescend reports whether two names that are equal up to a number in both have a larger one
// first.
func numbersDescend(a, b string) bool {
	digit := func(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	for digit(a, at-1) {
		at--
	}
	number := func(s string) string {
		end := at
		for digit(s, end) {
			end++
		}
		return strings.TrimLeft(s[at:end], "0")
	}
	if !digit(a, at) || !digit(b, at) {
		return false
	}
	m, n := number(a), number(b)
	return len(m) > len(n) || len(m) == len(n) && m > n
}

// HasOutputs reports whether the model's output for each class of the data can be inferred without
// the key classes. The arguments are those of Outputs.
func HasOutputs(names []string, classes int, modelNames []string) bool {
	_, _, err := Data{}.Outputs(names, classes, modelNames)
	return err == nil
}

// matchNames returns for each name of a class of the data the index of the model's name that it
// matches, or nil if none matches. It is an error if only some match.
func matchNames(names, modelNames []string) ([]int, error) {
	var outputs []int
	missing := ""
	for _, name := range names {
		if i := nameIndex(modelNames, name); i >= 0 {
			outputs = append(outputs, i)
		} else {
			missing = cmp.Or(missing, name)
		}
	}
	if len(outputs) == 0 || missing == "" {
		return outputs, nil
	}
	return nil, fmt.Errorf("class %q of the data is not a label of the model, but %d of %d classes are: set classes to the output of each class",
		missing, len(outputs), len(names))
}

// nameIndex returns the index of the only one of the model's names that a name matches, or -1. Case
// is ignored, and _ and - match spaces. A model's name with alternatives, such as "tabby, tabby
// cat", matches each of them and the whole text.
func nameIndex(modelNames []string, name string) int {
	normalise := func(s string) string {
		return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" _-", r) }), " "))
	}
	name = normalise(name)
	exact, alternative, alternatives := -1, -1, 0
	for i, modelName := range modelNames {
		if normalise(modelName) == name {
			if exact >= 0 {
				return -1
			}
			exact = i
		}
		if slices.ContainsFunc(strings.Split(modelName, ","), func(s string) bool { return normalise(s) == name }) {
			alternative, alternatives = i, alternatives+1
		}
	}
	if exact < 0 && alternatives == 1 {
		return alternative
	}
	return exact
}

// MaskOutputs returns for each class of masks, which hold the class of each pixel, the class of a
// model's decoded output, or -1 if the model has none for it. f describes that output: boxes or a
// map of classes. The first class is the background. The others are categories, which are matched
// as by TruthOutputs, but by order or ID only if class 0 of the model is the background.
func (d Data) MaskOutputs(classes []dataset.TruthClass, f *decoded.Format) ([]int, error) {
	categories := classes[1:]
	outputs := []int{0} // of the background first
	if d.Classes != nil || f.Names != nil {
		to, err := d.TruthOutputs(categories, f)
		if named := nameIndex(f.Names, classes[0].Name); named >= 0 {
			outputs[0] = named
		} else if d.Classes == nil && slices.Contains(to, 0) {
			outputs[0] = -1 // the model has no background
		}
		return append(outputs, to...), err
	}
	smallest, largest := 1, 0
	for i, c := range categories {
		smallest, largest = min(smallest, c.ID), max(largest, c.ID)
		outputs = append(outputs, i+1)
	}
	switch {
	case f.Classes == len(classes):
		return outputs, nil
	case smallest == 1 && largest < f.ClassLimit():
		for i, c := range categories {
			outputs[i+1] = c.ID
		}
		return outputs, nil
	}
	return nil, fmt.Errorf("the data have %d categories, with numbers up to %d, and a background, and the model has %d classes without names: set classes to the class of each category", len(categories), largest, f.ClassLimit())
}

// TruthOutputs returns for each class of labelled boxes the class of a model's decoded output.
// Classes are matched by the key classes if it is set, by name if the model has names, by order if
// both have equally many, else by the ID of the class. The key may list -1 for a class that the
// model lacks; otherwise a class without a match is an error.
func (d Data) TruthOutputs(classes []dataset.TruthClass, f *decoded.Format) ([]int, error) {
	var names []string
	largest := 0
	for _, c := range classes {
		names = append(names, c.Name)
		largest = max(largest, c.ID)
	}
	outputs := make([]int, len(classes))
	switch {
	case d.Classes != nil:
		outputs, err := d.listedOutputs(names, nil, f.Names)
		for i, o := range outputs {
			if err == nil && (o < -1 || o >= f.ClassLimit()) {
				err = fmt.Errorf("classes: %s is not a class of the model, which has %d", d.Classes[i], f.ClassLimit())
			}
		}
		return outputs, err
	case f.Names != nil:
		for i, name := range names {
			if outputs[i] = nameIndex(f.Names, name); outputs[i] < 0 {
				return nil, fmt.Errorf("category %q of the data is not a class of the model (%s, ...): set classes to the class of each category", name, f.Names[0])
			}
		}
	case f.Classes == len(classes):
		return dataset.Indices(len(classes)), nil
	case largest < f.ClassLimit():
		for i, c := range classes {
			outputs[i] = c.ID
		}
	default:
		return nil, fmt.Errorf("the data have %d categories, with numbers up to %d, and the model has %d classes without names: set classes to the class of each category", len(classes), largest, f.ClassLimit())
	}
	return outputs, nil
}

// listedOutputs returns the outputs that the key classes lists: indices, ImageNet synsets or names
// of the model's classes.
func (d Data) listedOutputs(names, synsets, modelNames []string) ([]int, error) {
	if len(d.Classes) != len(names) {
		return nil, fmt.Errorf("classes: names %d outputs for the %d classes of the data", len(d.Classes), len(names))
	}
	outputs := make([]int, len(names))
	for i, c := range d.Classes {
		if synset := slices.Index(synsets, c); synset >= 0 {
			outputs[i] = synset
			continue
		}
		v, err := strconv.Atoi(c)
		if err != nil {
			v = nameIndex(modelNames, c)
		}
		if err != nil && v < 0 {
			return nil, fmt.Errorf("classes: %q is neither an index of an output, an ImageNet synset nor a label of the model", c)
		}
		outputs[i] = v
	}
	return outputs, nil
}

// AreIndices reports whether the names of classes are their indices, as in data read from arrays.
func AreIndices(names []string) bool {
	for i, n := range names {
		if n != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// OutputNames returns a name for each output of a model of the given number of classes: the name of
// the data's class that belongs to it (outputs[i] belongs to names[i]), else the model's name if
// there is one for each output, else the index of the output.
func OutputNames(names []string, outputs []int, classes int, modelNames []string) []string {
	out := make([]string, classes)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	if len(modelNames) == classes {
		copy(out, modelNames)
	}
	for i, o := range outputs {
		if o >= 0 && o < classes {
			out[o] = names[i]
		}
	}
	return out
}
