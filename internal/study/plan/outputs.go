package plan

import (
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// forModel returns a copy of the data in which the label of a sample is the index of the model's
// output for the sample's class. If the entry of the data in the study file restricts the outputs
// to the classes of the data, the label is the position of that index in the field Outputs. If the
// classes of data and model do not match, the copy has no labels, and mismatch says why. The model
// has the given number of classes; classNames are its names of them, or nil.
func (d *Data) forModel(classes int, classNames []string) *Data {
	out := *d
	out.modelClassNames = classNames
	out.described = new(map[int]Described) // filled anew, with the labels of this model
	names := d.Source.Classes()
	if names == nil || classes == 0 {
		return &out
	}
	classOutputs, restrict, err := d.Entry.Outputs(names, classes, classNames)
	if err == nil {
		outputs := spec.OutputNames(names, classOutputs, classes, classNames)
		if restrict {
			out.Source, out.Outputs, err = dataset.Restrict(d.Source, classOutputs, outputs)
		} else {
			out.Source, err = dataset.MapClasses(d.Source, classOutputs, outputs)
		}
	}
	if err != nil {
		out.mismatch = d.Entry.AddPosition(err) // with the line in the study file
		out.Source, err = dataset.MapClasses(d.Source, slices.Repeat([]int{dataset.NoLabel}, len(names)), spec.OutputNames(nil, nil, classes, classNames))
		if err != nil {
			panic(err) // cannot happen: a missing label is always accepted
		}
	}
	return &out
}

// classNames returns the names of the classes that a model with the given number of them predicts
// on these data, or nil for a model without classes.
func (d *Data) classNames(classes int) []string {
	if classes == 0 {
		return nil
	}
	if names := d.Source.Classes(); names != nil {
		return names
	}
	return spec.OutputNames(nil, nil, classes, d.modelClassNames)
}
