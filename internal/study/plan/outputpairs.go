package plan

import (
	"fmt"

	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// addOutputs compares the decoded outputs of two models on the same inputs, clean or both under a
// view.
func (p *Plan) addOutputs(a, b *Model, d *Data, v View, meas measure.Measure) {
	c := &Cell{Model: a, other: b, Data: d, View: v, Method: meas}
	for _, m := range []*Model{a, b} {
		if why := unmetNeed(meas.Needs(), m, d, v); why != "" {
			p.skip(c, "", "model "+m.Entry.Name+": "+why)
			return
		}
	}
	outputs, why := joinOutputs(a, b)
	if why != "" {
		p.skip(c, "", why)
		return
	}
	site := measure.Site{
		Layer: tensor.Layer{Depth: scores.NoDepth, Shape: outputs.format.Shape()}, Output: &outputs.format,
		Layout: d.Layout, KeepSamples: true,
		PerSample: v.Transform != nil && v.Per == "sample" && transform.Random(v.Transform),
		Budget:    int64(p.Study.Memory), Key: p.key(c),
	}
	if why := meas.Skip(site); why != "" {
		p.skip(c, "", why)
		return
	}
	target := &siteTarget{measure: meas, model: a, other: b, outputs: outputs, site: site, transformed: v.Name != ""}
	t := &Task{target: target, Cell: c, FullCost: meas.Cost(site)}
	t.cost = t.FullCost
	if borrower, ok := meas.(measure.Borrower); ok {
		t.Borrowed = borrower.Borrowed(site)
	}
	c.Tasks = []*Task{t}
	p.add(c)
}

// A jointOutput is the form that the decoded outputs of two models have in common.
type jointOutput struct {
	formats [2]*decoded.Format
	format  decoded.Format // with the classes of the first model
	classes []int          // the first model's class of each class of the second; nil: they are the same
}

// joinOutputs returns why if the outputs cannot be compared. Classes are matched by name, or by
// number if one model's have no names.
func joinOutputs(a, b *Model) (out *jointOutput, why string) {
	one, two := decodedFormat(a), decodedFormat(b)
	out = &jointOutput{formats: [2]*decoded.Format{one, two}, format: *one}
	switch {
	case one.Kind != two.Kind:
		return nil, fmt.Sprintf("the decoded output of model %s is %s, and of model %s %s", a.Entry.Name, one.Kind, b.Entry.Name, two.Kind)
	case one.Kind != decoded.BoxList && (one.Height != two.Height || one.Width != two.Width):
		return nil, fmt.Sprintf("the maps have %d x %d positions in model %s, and %d x %d in model %s", one.Height, one.Width, a.Entry.Name, two.Height, two.Width, b.Entry.Name)
	case one.Classes > 0 && two.Classes > 0 && one.Classes != two.Classes:
		return nil, fmt.Sprintf("the decoded output of model %s has %d classes, and of model %s %d", a.Entry.Name, one.Classes, b.Entry.Name, two.Classes)
	}
	if one.Classes > 0 && two.Classes > 0 {
		names := [2][]string{}
		for i, f := range out.formats {
			for k := range f.Classes {
				names[i] = append(names[i], f.ClassName(k))
			}
		}
		order, err := matchClasses(names, [2]string{a.Entry.Name, b.Entry.Name})
		if err != nil {
			return nil, err.Error()
		}
		if order != nil {
			out.classes = make([]int, len(order))
			for k, j := range order {
				out.classes[j] = k
			}
		}
	}
	out.format.Classes = max(one.Classes, two.Classes)
	out.format.Candidates = max(one.Candidates, two.Candidates)
	out.format.Channels = min(one.Channels, two.Channels)
	if one.Keypoints != two.Keypoints {
		out.format.Keypoints = 0
	}
	return out, ""
}

// align returns the decoded output of a model (0 or 1) in the common form.
func (j *jointOutput) align(model int, z tensor.Tensor) tensor.Tensor {
	from, to := j.formats[model], &j.format
	same := from.Candidates == to.Candidates && from.Channels == to.Channels && from.Keypoints == to.Keypoints
	if same && (model == 0 || j.classes == nil) {
		return z
	}
	n := z.Shape[0]
	out := tensor.New(append([]int{n}, to.Shape()...)...)
	for i := range n {
		row, dst := z.At(i).Data, out.At(i).Data
		if to.Kind != decoded.BoxList {
			copy(dst, row) // without the map of probabilities that only one model has
			for at, v := range dst[:to.Height*to.Width] {
				dst[at] = j.class(model, v)
			}
			continue
		}
		for k := range to.Candidates {
			r := dst[k*to.Columns() : (k+1)*to.Columns()]
			if k >= from.Candidates {
				r[4] = -1
				continue
			}
			copy(r, row[k*from.Columns():(k+1)*from.Columns()])
			r[5] = j.class(model, r[5])
		}
	}
	return out
}

// class returns the class of the first model. Values that are no class stay, so that the measure
// reports them.
func (j *jointOutput) class(model int, v float32) float32 {
	if model == 0 || !(v >= 0 && v < float32(len(j.classes))) {
		return v
	}
	return float32(j.classes[int(v)])
}

// depends is part of the cell's key.
func (j *jointOutput) depends() []string {
	return []string{spec.CanonicalJSON(j.formats), spec.CanonicalJSON(j.classes)}
}
