package study

import (
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/study/spec"
)

// under is the data as a model of the given number of classes sees them: labels are its outputs.
func (d *openData) under(classes int) *openData {
	out := *d
	out.described = new(map[int]dataset.Sample) // whose labels are this model's outputs
	names := d.source.Classes()
	if names == nil || classes == 0 {
		return &out
	}
	to, restrict, err := d.spec.Outputs(names, classes)
	if err == nil {
		outputs := spec.OutputNames(names, to, classes)
		if restrict {
			out.source, out.keep, err = dataset.Restrict(d.source, to, outputs)
		} else {
			out.source, err = dataset.MapClasses(d.source, to, outputs)
		}
	}
	if err != nil {
		out.mismatch = d.spec.Place(err)
		out.source, err = dataset.MapClasses(d.source, slices.Repeat([]int{dataset.NoLabel}, len(names)), spec.OutputNames(nil, nil, classes))
		if err != nil {
			panic(err) // no label is always a label
		}
	}
	return &out
}

// classNames are those of the predictions on these data.
func (d *openData) classNames(classes int) []string {
	if classes == 0 {
		return nil
	}
	if names := d.source.Classes(); names != nil {
		return names
	}
	return spec.OutputNames(nil, nil, classes)
}
