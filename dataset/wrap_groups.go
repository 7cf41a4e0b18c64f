package dataset

import (
	"context"
	"fmt"
	"slices"
)

// Groups are the outputs of a model that stand for the classes of data whose classes are coarser
// than those of the model, such as a dog for all breeds.
type Groups struct {
	Outputs [][]int // for each class, at least one
	// Mean: a model predicts the class whose outputs have the largest mean probability. Otherwise it
	// predicts the class of the most probable of all its outputs, and none if that is in no group.
	Mean bool
}

// A grouped source has classes that groups of outputs stand for.
type grouped struct {
	wrapped
	groups Groups
}

// Grouped returns the samples of a source whose class is a key of outputs, with these classes in the
// order of their names, and with the groups of outputs as GroupsOf. It is an error if no sample has
// such a class.
func Grouped(ctx context.Context, src Source, outputs map[string][]int, mean bool) (Source, error) {
	var names []string
	to := make([]int, len(src.Classes()))
	g := Groups{Mean: mean}
	for l, name := range src.Classes() {
		to[l] = NoLabel
		if of := outputs[name]; len(of) > 0 {
			to[l] = len(names)
			names, g.Outputs = append(names, name), append(g.Outputs, of)
		}
	}
	labels, err := sampleLabels(ctx, src)
	if err != nil {
		return nil, err
	}
	var indices []int
	for i, l := range labels {
		if l != NoLabel && to[l] != NoLabel {
			indices = append(indices, i)
		}
	}
	if len(indices) == 0 {
		return nil, fmt.Errorf("none of the folders of classes (%s) is one of its classes", firstNames(src.Classes(), 3))
	}
	if len(indices) < src.Len() {
		src = newSubset(src, indices)
	}
	labelled, err := MapClasses(src, to, names)
	if err != nil {
		return nil, err
	}
	d := newDigest("groups")
	d.add(labelled.Fingerprint(), g.Outputs, g.Mean)
	return grouped{wrapped{labelled, d.String()}, g}, nil
}

// GroupsOf returns the groups of outputs of a source, or of the one that it wraps; nil if there are
// none.
func GroupsOf(src Source) *Groups {
	if g, ok := find[grouped](src); ok {
		return &g.groups
	}
	return nil
}

// Largest returns the largest output of the groups.
func (g *Groups) Largest() int {
	largest := 0
	for _, of := range g.Outputs {
		largest = max(largest, slices.Max(of))
	}
	return largest
}
