package plan

import (
	"errors"
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A gridAccumulator is the accumulator of a grid. It drops a layer whose activations hold NaN or
// infinity: the scores of its pairs are undefined.
type gridAccumulator struct {
	measure.GridAccumulator
	target  *gridTarget          // the sides, layers and pairs
	dropped map[gridLayer]string // why layers were dropped
}

type gridLayer struct {
	side  measure.Side
	index int
}

// Feed implements Accumulator. A dropped layer is fed zeros.
func (a *gridAccumulator) Feed(at SampleIDs, z []tensor.Tensor) error {
	n := len(a.target.grid.A) // z has the activations of the layers of A, then those of B
	if len(a.dropped) > 0 {
		z = slices.Clone(z)
	}
	for l := range a.dropped {
		i := l.index + int(l.side)*n
		z[i] = tensor.New(z[i].Shape...)
	}
	// Place is a sample's position in the study's random order, Index its index in the data set.
	return a.Update(&measure.PairBatch{Place: at.Position, Index: at.Index, Label: at.Label, A: z[:n], B: z[n:]})
}

// drop drops the layer that the error names, on both sides if they have the same activations, and
// reports whether a pair is left.
func (a *gridAccumulator) drop(bad *measure.NonFiniteIn) bool {
	g := a.target
	layers := [2][]string{}
	for _, l := range g.grid.A {
		layers[0] = append(layers[0], l.Name)
	}
	for _, l := range g.grid.B {
		layers[1] = append(layers[1], l.Name)
	}
	if a.dropped == nil {
		a.dropped = map[gridLayer]string{}
	}
	for s, names := range layers {
		for i, name := range names {
			if g.sides[s] == g.sides[bad.Side] && name == layers[bad.Side][bad.Layer] {
				a.dropped[gridLayer{measure.Side(s), i}] = bad.Error()
			}
		}
	}
	return slices.ContainsFunc(g.grid.Pairs, func(p [2]int) bool { return a.dropReason(p) == "" })
}

// dropReason returns "" if no layer of the pair was dropped.
func (a *gridAccumulator) dropReason(pair [2]int) string {
	if why := a.dropped[gridLayer{measure.SideA, pair[0]}]; why != "" {
		return why
	}
	return a.dropped[gridLayer{measure.SideB, pair[1]}]
}

// DropGridLayer makes a grid continue without a layer, if err says that its activations hold NaN or
// infinity and another pair is left. It reports whether it did; then the batch can be fed again.
func (t *Task) DropGridLayer(acc Accumulator, err error) bool {
	a, ok := acc.(*gridAccumulator)
	var bad *measure.NonFiniteIn
	if !ok || !errors.As(err, &bad) {
		return false
	}
	return a.drop(bad) || len(t.Cell.Tasks) > 1
}

// Join implements Accumulator: it adds the samples of another accumulator of the same grid.
func (a *gridAccumulator) Join(other Accumulator) error {
	o := other.(*gridAccumulator)
	if a.dropped == nil {
		a.dropped = map[gridLayer]string{}
	}
	for l, why := range o.dropped {
		if a.dropped[l] == "" {
			a.dropped[l] = why
		}
	}
	return a.Merge(o.GridAccumulator)
}

// The name and the version that start the state of an accumulator with dropped layers.
const (
	droppedState        = "grid with lost layers"
	droppedStateVersion = 1
)

// MarshalBinary implements Accumulator. Without dropped layers, the state is the comparison's.
func (a *gridAccumulator) MarshalBinary() ([]byte, error) {
	raw, err := a.GridAccumulator.MarshalBinary()
	if err != nil || len(a.dropped) == 0 {
		return raw, err
	}
	return state.Marshal(droppedState, droppedStateVersion, func(c *state.Codec) {
		a.codeDropped(c, &raw)
	})
}

// UnmarshalBinary implements Accumulator.
func (a *gridAccumulator) UnmarshalBinary(data []byte) error {
	a.dropped = nil
	raw, hasDropped := data, false
	err := state.Unmarshal(data, droppedState, droppedStateVersion, func(c *state.Codec) {
		hasDropped, a.dropped = true, map[gridLayer]string{}
		a.codeDropped(c, &raw)
	})
	if hasDropped && err != nil {
		return err
	}
	return a.GridAccumulator.UnmarshalBinary(raw)
}

// codeDropped writes or reads the dropped layers and raw, the state of the comparison.
func (a *gridAccumulator) codeDropped(c *state.Codec, raw *[]byte) {
	layers := slices.SortedFunc(maps.Keys(a.dropped), func(x, y gridLayer) int {
		return slices.Compare([]int{int(x.side), x.index}, []int{int(y.side), y.index})
	})
	sizes := [2]int{len(a.target.grid.A), len(a.target.grid.B)}
	n := len(layers)
	for i := range c.Len(&n, sizes[0]+sizes[1]) {
		var side, index int
		var why string
		if !c.Reads() {
			side, index, why = int(layers[i].side), layers[i].index, a.dropped[layers[i]]
		}
		if c.Values(&side, &index, &why); !c.Reads() {
			continue
		}
		if side < 0 || side > 1 || index < 0 || index >= sizes[side] || why == "" {
			c.Fail(errors.New("the state drops a layer that the grid does not have"))
			return
		}
		a.dropped[gridLayer{measure.Side(side), index}] = why
	}
	c.Values(raw)
}

// Finish implements Accumulator: it returns the scores of all pairs.
func (a *gridAccumulator) Finish() (*TaskScores, error) {
	all, err := a.Scores()
	if err != nil {
		return nil, err
	}
	g := a.target
	byPair := map[[2]int][]measure.Score{}
	for _, s := range all {
		pair := [2]int{s.A, s.B}
		if why := a.dropReason(pair); why != "" {
			s.Score = s.Undefined(why)
		}
		byPair[pair] = append(byPair[pair], s.Score)
	}
	out := &TaskScores{}
	measured := 0
	for _, p := range g.grid.Pairs {
		if a.dropReason(p) == "" {
			measured++
		}
		names, mirrored := g.names(p[0], p[1]), g.mirrored(p[0], p[1])
		out.Layers = append(out.Layers, scores.Layer{Name: names[0], Depth: g.grid.A[p[0]].Depth, Other: names[1], Scores: byPair[p]})
		if g.mirror && mirrored != names { // the comparison is symmetric: the pair (j, i) has the same scores
			out.Layers = append(out.Layers, scores.Layer{Name: mirrored[0], Depth: g.grid.B[p[1]].Depth, Other: mirrored[1], Scores: byPair[p]})
		}
	}
	if measured == 0 {
		out.NonFinite = a.dropReason(g.grid.Pairs[0])
	}
	return out, nil
}
