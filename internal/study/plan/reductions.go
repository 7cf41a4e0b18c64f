package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Reductions are the functions of activations that the engine computes, so that these stay on the
// device.
type Reductions struct {
	List []engine.Reduction
	Of   map[*Task]int // index in List of the reduction that a task reads
}

// first returns the index of the first reduction of a layer, or -1.
func (r Reductions) first(layer string) int {
	return slices.IndexFunc(r.List, func(d engine.Reduction) bool { return d.Layer.Name == layer })
}

// deviceBytes returns an upper bound for one sample: the clean layers of the slots and, for each
// reduction, some tensors.
func (r Reductions) deviceBytes(slots int64) (sum int64) {
	const temporary = 4
	for i, d := range r.List {
		size := 4 * int64(tensor.Size(d.Layer.Shape))
		if r.first(d.Layer.Name) == i {
			sum += slots * size
		}
		sum += temporary * size
	}
	return sum
}

// SetBatch sets the batch size, the slots and, where activations are in a memory of the engine's own
// and batches are whole blocks, the reductions.
func (p *Pass) SetBatch(s *spec.Study, limits MemoryLimits) {
	if !slices.ContainsFunc(p.Models, func(m *Model) bool { return !m.Net.RunsElsewhere() }) {
		limits.slots = 2
	}
	p.Slots, p.Reductions = int(limits.slots), nil
	block := p.Data().Layout.Block
	if !p.noReduce && p.Start()%block == 0 {
		p.Reductions = map[*Model]Reductions{}
		for _, m := range p.Models {
			if !limits.keeps && !m.Net.Keeps() {
				continue
			}
			if r := p.reductionsOf(m); len(r.List) > 0 {
				p.Reductions[m] = r
			}
		}
	}
	p.Batch = BatchSize(s, p, limits)
	if len(p.Reductions) > 0 && p.Batch%block != 0 && p.Batch < p.Hi-p.Start() {
		p.Reductions = nil
		p.Batch = BatchSize(s, p, limits)
	}
}

// Retry prepares another attempt after the error of a pass with reductions: with smaller batches if
// the device lacks memory, else without reductions. It returns a remark on the change, or "".
func (p *Pass) Retry(err error) string {
	block := p.Data().Layout.Block
	switch {
	case len(p.Reductions) == 0:
		return ""
	case errors.Is(err, engine.ErrDeviceMemory) && p.Batch >= 2*block:
		p.mostBatch = p.Batch / 2 / block * block
		return fmt.Sprintf("the device has too little memory for batches of %d: running %d at a time", p.Batch, p.mostBatch)
	case errors.Is(err, engine.ErrDeviceMemory):
		p.noReduce, p.mostBatch = true, 0 // without reductions, sessions divide batches that do not fit
		return "the device has too little memory to keep activations: they are copied to the CPU"
	case errors.Is(err, measure.ErrNeedsActivations):
		p.noReduce = true
		return "activations are copied to the CPU: some are not finite, or their squares are too large or too small for float32"
	}
	return ""
}

// reductionsOf returns the reductions of layers that only tasks with a measure.Reducer read. There
// are none if the model cannot run all samples of a batch at once.
func (p *Pass) reductionsOf(m *Model) Reductions {
	out := Reductions{Of: map[*Task]int{}}
	if !m.Net.CanPair() {
		return out
	}
	read := map[string]bool{} // layers whose activations a task needs
	wanted := map[*Task]*measure.Reduction{}
	for view, tasks := range p.Tasks {
		for _, t := range tasks {
			if wanted[t] = t.reduction(p.Views[view], p.Data().Layout); wanted[t] != nil {
				continue
			}
			for _, r := range t.Readings() {
				if r.Model == m {
					read[r.Layer.Name] = true
				}
			}
		}
	}
	index := map[[2]string]int{} // of the reduction of a layer
	for _, t := range p.AllTasks() {
		r, layer := wanted[t], t.ScoredLayer()
		if r == nil || read[layer.Name] || t.Readings()[0].Model != m {
			continue
		}
		key := [2]string{layer.Name, fmt.Sprint(*r)}
		i, ok := index[key]
		if !ok {
			i = len(out.List)
			index[key] = i
			out.List = append(out.List, engine.Reduction{Layer: layer, Values: r})
		}
		out.Of[t] = i
	}
	return out
}

// reduction returns nil if the task needs the activations themselves, as it does to complete a
// block.
func (t *Task) reduction(v View, layout measure.Layout) *measure.Reduction {
	s, ok := t.target.(*siteTarget)
	if !ok || !v.TransformsInput() || s.other != nil || t.Fed%layout.Block != 0 && t.Fed < layout.N {
		return nil
	}
	reducer, ok := s.measure.(measure.Reducer)
	if !ok {
		return nil
	}
	return reducer.Reduction(s.site)
}

// Pools returns how the model pools layers of which all tasks that read them need only vectors.
func (p *Pass) Pools(m *Model) map[string]pooling.Kind {
	pools, whole := map[string]pooling.Kind{}, map[string]bool{}
	for view, tasks := range p.Tasks {
		for _, t := range tasks {
			for _, r := range t.Readings() {
				if r.Model != m || r.IsPrediction() {
					continue
				}
				name, kind := r.Layer.Name, t.pooling(r.Layer)
				if before := pools[name]; kind == "" || before != "" && before != kind || p.Views[view].On == "activations" || !m.Net.CanPool(r.Layer, kind) {
					whole[name] = true
				}
				pools[name] = kind
			}
		}
	}
	maps.DeleteFunc(pools, func(name string, _ pooling.Kind) bool { return whole[name] })
	return pools
}

// pooling returns "" if the task needs the whole activations of a layer.
func (t *Task) pooling(l tensor.Layer) pooling.Kind {
	if p, ok := t.Cell.Method.(measure.Pooler); ok {
		return pooling.Kind(p.Pooling(l))
	}
	return ""
}

// CopiedLayers returns the layers whose activations are read in the CPU's memory, and whether the
// prediction is.
func (p *Pass) CopiedLayers(m *Model) (layers []tensor.Layer, prediction bool) {
	layers, prediction = p.Layers(m)
	r := p.Reductions[m]
	return slices.DeleteFunc(layers, func(l tensor.Layer) bool { return r.first(l.Name) >= 0 }), prediction
}

// FeedReduced feeds a batch of the values of the task's reduction to its accumulator.
func (t *Task) FeedReduced(acc Accumulator, at SampleIDs, values tensor.Tensor) error {
	return acc.(*siteAccumulator).Update(&measure.Batch{Place: at.Position, Index: at.Index, Label: at.Label, Reduced: values})
}
