package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/tensor"
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
	if g := dataset.GroupsOf(d.Source); g != nil {
		out.setGroups(g, classes, classNames)
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

// setGroups lets groups of the model's outputs stand for the classes of the data.
func (d *Data) setGroups(g *dataset.Groups, classes int, classNames []string) {
	names := spec.OutputNames(nil, nil, classes, classNames)
	to := make([]int, len(g.Outputs)) // the first output of each group stands for it
	for l, of := range g.Outputs {
		to[l] = of[0]
	}
	switch {
	case g.Largest() >= classes:
		d.mismatch = d.Entry.AddPosition(fmt.Errorf("the classes of the data are groups of ImageNet's 1,000, and the model has %d", classes))
		to = slices.Repeat([]int{dataset.NoLabel}, len(to))
	case g.Mean:
		d.Groups = g
		return // labels are positions of groups
	default:
		d.Groups = g
	}
	var err error
	if d.Source, err = dataset.MapClasses(d.Source, to, names); err != nil {
		panic(err) // cannot happen: the outputs exist
	}
}

// GroupLogs returns the log-probabilities, b x classes, with groups of outputs in place of the
// outputs. With Mean they are those of the groups: the logarithms of mean probabilities, which are
// normalised. Otherwise the first output of each group gets the largest value of the group in
// exchange for its own, so that it is predicted if any of the group is.
func (d *Data) GroupLogs(logs tensor.Tensor) tensor.Tensor {
	g := d.Groups
	if g == nil {
		return logs
	}
	n, width := logs.Shape[0], logs.Shape[1]
	if !g.Mean {
		for i := range n {
			row := logs.Data[i*width : (i+1)*width]
			for _, of := range g.Outputs {
				top := of[0]
				for _, k := range of {
					if row[k] > row[top] {
						top = k
					}
				}
				row[of[0]], row[top] = row[top], row[of[0]]
			}
		}
		return logs
	}
	out := tensor.New(n, len(g.Outputs))
	for i := range n {
		row, to := logs.Data[i*width:(i+1)*width], out.At(i).Data
		for l, of := range g.Outputs {
			sum := 0.0
			for _, k := range of {
				sum += math.Exp(float64(row[k]))
			}
			to[l] = float32(math.Log(sum / float64(len(of))))
		}
		normaliseLogs(to)
	}
	return out
}
