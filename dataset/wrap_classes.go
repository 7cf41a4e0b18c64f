package dataset

import (
	"context"
	"fmt"
	"slices"
)

// A relabelled source has indices of a model's outputs as labels.
type relabelled struct {
	wrapped
	to      []int // the new label for each label of the source
	classes []string
}

// MapClasses returns a source whose labels are indices of the outputs of a model. The samples of
// src with label l get the label to[l], which may be NoLabel. classes are the names of the model's
// outputs in order. It returns an error unless to has an entry, NoLabel or an index into classes,
// for each class of src. MatchClasses computes to from names.
func MapClasses(src Source, to []int, classes []string) (Source, error) {
	if have := len(src.Classes()); len(to) != have {
		return nil, fmt.Errorf("classes: %d outputs are given for the %d classes of the data", len(to), have)
	}
	for l, output := range to {
		if output < NoLabel || output >= len(classes) {
			return nil, fmt.Errorf("classes: class %q is mapped to output %d, and the model has %d", src.Classes()[l], output, len(classes))
		}
	}
	d := newDigest("classes")
	d.add(src.Fingerprint(), to)
	return relabelled{wrapped{src, d.String()}, slices.Clone(to), slices.Clone(classes)}, nil
}

// Restrict is MapClasses for data that have only some of a model's classes, such as ImageNet-A and
// ImageNet-R, which have 200 of 1,000. keep lists the outputs of these classes, in ascending order,
// and the new labels are positions in keep. The caller must remove the model's other outputs before
// the softmax.
func Restrict(src Source, to []int, classes []string) (restricted Source, keep []int, err error) {
	all, err := MapClasses(src, to, classes) // labelled by all outputs of the model
	if err != nil {
		return nil, nil, err
	}
	for _, output := range to {
		if output != NoLabel {
			keep = append(keep, output)
		}
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	newLabel := slices.Repeat([]int{NoLabel}, len(classes))
	names := make([]string, len(keep))
	for i, output := range keep {
		newLabel[output], names[i] = i, classes[output]
	}
	restricted, err = MapClasses(all, newLabel, names)
	return restricted, keep, err
}

// MatchClasses returns the index of each name among the names of a model's outputs. A name that no
// output has, or that several outputs have, is an error.
func MatchClasses(names, outputs []string) ([]int, error) {
	indices := make(map[string]int, len(outputs))
	for i, o := range outputs {
		if _, twice := indices[o]; twice {
			return nil, fmt.Errorf("classes: %q names two outputs of the model", o)
		}
		indices[o] = i
	}
	to := make([]int, len(names))
	for i, n := range names {
		output, ok := indices[n]
		if !ok {
			return nil, fmt.Errorf("classes: no output of the model has the name of class %q of the data", n)
		}
		to[i] = output
	}
	return to, nil
}

func (r relabelled) Classes() []string { return r.classes }

func (r relabelled) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := r.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	return r.relabel(s)
}

func (r relabelled) describe(ctx context.Context, i int) (Sample, error) {
	s, err := Describe(ctx, r.Source, i)
	if err != nil {
		return s, err
	}
	return r.relabel(s)
}

func (r relabelled) relabel(s Sample) (Sample, error) {
	if s.Label == NoLabel {
		return s, nil
	}
	if s.Label < 0 || s.Label >= len(r.to) {
		return s, fmt.Errorf("%s: label %d is outside the %d classes of the data", s.Name, s.Label, len(r.to))
	}
	s.Label = r.to[s.Label]
	return s, nil
}
