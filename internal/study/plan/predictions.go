package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// addPredictions compares the predictions of two models on the same inputs, clean or both under a
// view.
func (p *Plan) addPredictions(a, b *Model, d *Data, v View, meas measure.Measure) error {
	c := &Cell{Model: a, other: b, Data: d, View: v, Method: meas}
	for _, m := range []*Model{a, b} {
		if why := unmetNeed(meas.Needs(), m, d, v); why != "" {
			p.skip(c, "", why)
			return nil
		}
	}
	if dataset.GroupsOf(d.Source) != nil {
		p.skip(c, "", groupedSkip)
		return nil
	}
	joint, err := p.joinClasses(d, a, b)
	if err != nil {
		return p.failCell(c, err)
	}
	// PerSample: random parameters are drawn for each sample, not once for the trial. Budget is in
	// bytes.
	site := measure.Site{
		Layer:  tensor.Layer{Depth: scores.NoDepth, Shape: []int{len(joint.names)}, Axes: "NC"},
		Layout: d.Layout, Classes: joint.names, KeepSamples: p.Study.KeepsSamples(),
		PerSample: v.Transform != nil && v.Per == "sample" && transform.Random(v.Transform),
		Budget:    int64(p.Study.Memory), Key: p.key(c),
	}
	if why := meas.Skip(site); why != "" {
		p.skip(c, "", why)
		return nil
	}
	target := &siteTarget{measure: meas, model: a, other: b, joint: joint, site: site, transformed: v.Name != ""}
	cost := meas.Cost(site) // bytes of memory; FullCost is the same, for nothing is kept on disk
	c.Tasks = []*Task{{target: target, Cell: c, cost: cost, FullCost: cost}}
	p.add(c)
	return nil
}

// jointClasses are the common classes of two models' predictions, in the order of the first. Both
// are reduced to them.
type jointClasses struct {
	names      []string
	columns    [2][]int // for each model, the output of each class; nil: all outputs in their order
	subset     [2]bool  // for each model: some of its outputs are left out
	labels     []int    // for each class of the data, its position in names or dataset.NoLabel; nil: labels are positions already
	unlabelled bool     // the data have no labels
}

// joinClasses matches classes by name, or by order if one model's have no names.
func (p *Plan) joinClasses(d *Data, a, b *Model) (*jointClasses, error) {
	if a == b { // labels of the data are already outputs of the model
		return &jointClasses{names: d.classNames(a.Net.Classes()), unlabelled: d.Source.Classes() == nil || d.mismatch != nil}, d.listedMismatch()
	}
	data := [2]*Data{p.dataFor(d, a), p.dataFor(d, b)}
	out := &jointClasses{unlabelled: d.Source.Classes() == nil}
	var names [2][]string
	for i, m := range []*Model{a, b} {
		if err := data[i].listedMismatch(); err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Entry.Name, err)
		}
		out.unlabelled = out.unlabelled || data[i].mismatch != nil
		names[i], out.columns[i] = data[i].classNames(m.Net.Classes()), data[i].Outputs
		out.subset[i] = out.columns[i] != nil
	}
	order, err := matchClasses(names, [2]string{a.Entry.Name, b.Entry.Name})
	if err != nil {
		return nil, err
	}
	out.names = names[0]
	if order != nil {
		columns := make([]int, len(order))
		for i, j := range order {
			if columns[i] = j; out.subset[1] {
				columns[i] = out.columns[1][j]
			}
		}
		out.columns[1] = columns
	}
	if !out.unlabelled {
		out.labels, err = data[0].labelPositions(d, a.Net.Classes())
	}
	return out, err
}

// listedMismatch returns why classes cannot be mapped to the study's key classes, or nil.
func (d *Data) listedMismatch() error {
	if d.Entry.Classes == nil {
		return nil
	}
	return d.mismatch
}

// labelPositions returns for each class of raw its position among the outputs that d keeps, or
// dataset.NoLabel. classes is the number of outputs of the model.
func (d *Data) labelPositions(raw *Data, classes int) ([]int, error) {
	outputs, _, err := d.Entry.Outputs(raw.Source.Classes(), classes, d.modelClassNames)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(outputs)
	if d.Outputs != nil {
		for l, output := range outputs {
			if out[l] = slices.Index(d.Outputs, output); out[l] < 0 {
				out[l] = dataset.NoLabel
			}
		}
	}
	return out, nil
}

// matchClasses returns the second model's index of each class of the first, or nil for the same
// order.
func matchClasses(names [2][]string, models [2]string) ([]int, error) {
	a, b := names[0], names[1]
	if len(a) != len(b) {
		return nil, fmt.Errorf("model %s has %d classes and model %s %d: predictions are compared class by class; classes: under data takes the same classes of both",
			models[0], len(a), models[1], len(b))
	}
	if slices.Equal(a, b) || spec.AreIndices(a) || spec.AreIndices(b) {
		return nil, nil
	}
	indexOf := make(map[string]int, len(b))
	for j, name := range b {
		indexOf[name] = j
	}
	order := make([]int, len(a))
	for i, name := range a {
		j, ok := indexOf[name]
		if !ok || slices.Contains(order[:i], j) {
			return nil, fmt.Errorf("class %q of model %s is not a class of model %s (%s, ...): predictions are compared class by class, and need the same classes",
				name, models[0], models[1], b[0])
		}
		order[i] = j
	}
	return order, nil
}

func (c *jointClasses) label(l int) int {
	switch {
	case c.unlabelled || l == dataset.NoLabel:
		return dataset.NoLabel
	case c.labels == nil:
		return l
	case l < 0 || l >= len(c.labels):
		return dataset.NoLabel
	}
	return c.labels[l]
}

// prediction reduces the log-probabilities of a model (0 or 1), b x outputs, to b x classes.
func (c *jointClasses) prediction(model int, z tensor.Tensor) tensor.Tensor {
	columns := c.columns[model]
	if columns == nil {
		return z
	}
	n, width := z.Shape[0], z.Shape[1]
	out := tensor.New(n, len(columns))
	for i := range n {
		from, to := z.Data[i*width:(i+1)*width], out.Data[i*len(columns):(i+1)*len(columns)]
		for k, column := range columns {
			to[k] = from[column]
		}
		if c.subset[model] {
			normaliseLogs(to)
		}
	}
	return out
}

// normaliseLogs makes probabilities, given as logarithms, sum to 1.
func normaliseLogs(logs []float32) {
	top, sum := float64(slices.Max(logs)), 0.0
	for _, v := range logs {
		sum += math.Exp(float64(v) - top)
	}
	shift := top + math.Log(sum)
	for k, v := range logs {
		logs[k] = float32(float64(v) - shift)
	}
}

// depends is part of the cell's key.
func (c *jointClasses) depends() []string {
	return []string{fmt.Sprint("classes ", c.names, c.columns, c.subset, c.labels, c.unlabelled)}
}
