package plan

import (
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// forModel returns a copy of the data whose labels are indices of the model's outputs, or positions
// in Outputs if the entry restricts the outputs. If the classes do not match, it has no labels, and
// mismatch says why. classNames may be nil.
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
		out.orderDoubt = d.Entry.OrderDoubt(names, classes, classNames)
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

// classNames returns the names of the predicted classes, or nil for a model without classes.
func (d *Data) classNames(classes int) []string {
	if classes == 0 {
		return nil
	}
	if names := d.Source.Classes(); names != nil {
		return names
	}
	return spec.OutputNames(nil, nil, classes, d.modelClassNames)
}
