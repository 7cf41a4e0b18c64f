package dataset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// partFactor is the factor whose value is the index of the part that a concatenated sample comes
// from. Its categories are the names of the parts.
const partFactor = "part"

// A Concatenation is several sources, one after the other, for instance the training, validation
// and test sets of a corpus.
type Concatenation struct {
	metadata
	names      []string
	parts      []Source
	starts     []int   // index of the first sample of each part, then the length
	labels     [][]int // for each part: the index in classes of each of the part's classes
	categories map[string][]string
	// categoryOf holds, for each part and factor, the index in categories of each of the part's
	// categories.
	categoryOf []map[string][]int
	notes      []string
}

// Concat concatenates sources, the parts, in the order given, each under a name. The samples carry
// the factors that all parts have, and the factor part, which is the index of the part and has the
// names of the parts as categories. The classes are those of the first part, followed by those of
// later parts that it lacks; likewise the categories of each factor. If a part has no classes, no
// sample has a label, and Notes explains this. The index of a sample is its position in the
// concatenation, and its name starts with the name of its part. In study files a concatenation is
// called join.
//
// It is an error if there are fewer than two parts, if two have the same name, if a part has a
// factor called part, or if a factor is a number in the first part and a category in another, or
// the reverse.
func Concat(names []string, parts []Source) (*Concatenation, error) {
	j := &Concatenation{names: slices.Clone(names), parts: slices.Clone(parts), starts: []int{0}, categories: map[string][]string{partFactor: slices.Clone(names)}}
	if len(names) != len(parts) || len(parts) < 2 {
		return nil, fmt.Errorf("joining: %d names and %d parts: need two parts or more, each with a name", len(names), len(parts))
	}
	d := newDigest("joined")
	for i, src := range parts {
		if slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("joining: two parts are called %q", names[i])
		}
		if slices.Contains(src.Factors(), partFactor) {
			return nil, fmt.Errorf("joining: the samples of %s have a factor %q of their own", names[i], partFactor)
		}
		j.starts = append(j.starts, j.starts[i]+src.Len())
		d.add(names[i], src.Fingerprint())
		for _, note := range Notes(src) {
			j.notes = append(j.notes, names[i]+": "+note)
		}
	}
	j.fingerprint = d.String()
	j.mergeClasses()
	return j, j.mergeFactors()
}

// mergeClasses makes one list of the classes of all parts.
func (j *Concatenation) mergeClasses() {
	unlabelled := slices.IndexFunc(j.parts, func(s Source) bool { return s.Classes() == nil })
	labelled := slices.IndexFunc(j.parts, func(s Source) bool { return s.Classes() != nil })
	if unlabelled >= 0 {
		if labelled >= 0 {
			j.notes = append(j.notes, fmt.Sprintf("the labels of %s are left out, since %s has none", j.names[labelled], j.names[unlabelled]))
		}
		return
	}
	for _, src := range j.parts {
		j.labels = append(j.labels, mergeNames(&j.classes, src.Classes()))
	}
}

// mergeFactors finds the factors that all parts have, and makes one list of the categories of each.
func (j *Concatenation) mergeFactors() error {
	j.categoryOf = make([]map[string][]int, len(j.parts))
	j.factors = []string{partFactor}
	for _, name := range j.parts[0].Factors() {
		if slices.ContainsFunc(j.parts, func(s Source) bool { return !slices.Contains(s.Factors(), name) }) {
			continue
		}
		j.factors = append(j.factors, name)
		for i, src := range j.parts {
			names := Categories(src, name)
			if (names == nil) != (Categories(j.parts[0], name) == nil) {
				return fmt.Errorf("joining: the factor %s is a number in one of %s and %s, and a category in the other", name, j.names[0], j.names[i])
			}
			if names == nil {
				continue
			}
			if j.categoryOf[i] == nil {
				j.categoryOf[i] = map[string][]int{}
			}
			all := j.categories[name]
			j.categoryOf[i][name] = mergeNames(&all, names)
			j.categories[name] = all
		}
	}
	slices.Sort(j.factors)
	return nil
}

// mergeNames appends to all those of names that it lacks, and returns the index of each name in
// all.
func mergeNames(all *[]string, names []string) []int {
	out := make([]int, len(names))
	for i, name := range names {
		if out[i] = slices.Index(*all, name); out[i] < 0 {
			out[i] = len(*all)
			*all = append(*all, name)
		}
	}
	return out
}

func (j *Concatenation) Len() int { return j.starts[len(j.parts)] }

// Notes returns the notes of the parts, and one if labels are left out.
func (j *Concatenation) Notes() []string { return j.notes }

func (j *Concatenation) factorCategories(factor string) []string {
	return slices.Clone(j.categories[factor])
}

func (j *Concatenation) Close() error {
	var errs []error
	for _, src := range j.parts {
		errs = append(errs, Close(src))
	}
	return errors.Join(errs...)
}

// At reads sample i from its part. f says how images are resized and cropped. An unreadable sample
// is a BadSample error, which names the sample as the concatenation does.
func (j *Concatenation) At(ctx context.Context, i int, f Frame) (Sample, error) {
	if err := checkAccess(ctx, "joined "+strings.Join(j.names, ", "), i, j.Len()); err != nil {
		return Sample{}, err
	}
	k := j.partOf(i)
	s, err := j.parts[k].At(ctx, i-j.starts[k], f)
	s = j.adapt(s, k, i)
	if bad := (*BadSample)(nil); errors.As(err, &bad) {
		return s, &BadSample{Name: s.Name, Err: bad.Err}
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", j.names[k], err)
	}
	return s, nil
}

// describe returns sample i without its input; see Describe.
func (j *Concatenation) describe(ctx context.Context, i int) (Sample, error) {
	k := j.partOf(i)
	s, err := Describe(ctx, j.parts[k], i-j.starts[k])
	s = j.adapt(s, k, i)
	s.Input, s.Transformed = tensor.Tensor{}, nil
	return s, err
}

// partOf returns the index of the part that contains sample i.
func (j *Concatenation) partOf(i int) int {
	k := len(j.parts) - 1
	for j.starts[k] > i {
		k--
	}
	return k
}

// adapt sets the index, name, label and factors of sample i, which comes from part k.
func (j *Concatenation) adapt(s Sample, k, i int) Sample {
	s.Index, s.Name = i, j.names[k]+"/"+s.Name
	if j.labels == nil {
		s.Label = NoLabel
	} else if s.Label != NoLabel {
		s.Label = j.labels[k][s.Label]
	}
	factors := maps.Clone(s.Factors)
	if factors == nil {
		factors = map[string]float64{}
	}
	maps.DeleteFunc(factors, func(name string, _ float64) bool { return !slices.Contains(j.factors, name) })
	for name, to := range j.categoryOf[k] {
		if v, ok := factors[name]; ok {
			factors[name] = float64(to[int(v)])
		}
	}
	factors[partFactor] = float64(k)
	s.Factors = factors
	return s
}
