package similarity

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure/resample"
)

// Layers of up to widestNarrow variables are multiplied together, all of one side with all of the
// other, which is faster. For wider ones it is not.
const widestNarrow = 256

// narrowLayers are those on one side of the pairs.
type narrowLayers struct {
	layers []int        // indices into the layers of the accumulator
	at     []int        // for each layer of the accumulator, its first variable among those of all narrow layers; -1: not narrow
	memory linalg.Block // the last block, whose memory is used again for the next one
}

// narrowLayers returns both sides of pairs with moments; other entries of a.pairs are nil.
func (a *accumulator) narrowLayers() (sides [2]narrowLayers) {
	for side := range sides {
		s := &sides[side]
		for range a.layers {
			s.at = append(s.at, -1)
		}
		width := 0
		for i, m := range a.pairs {
			u, v := a.pairLayers(i)
			w := [2]int{u, v}[side]
			if m != nil && a.layers[w].p <= widestNarrow && s.at[w] < 0 {
				s.layers, s.at[w] = append(s.layers, w), width
				width += a.layers[w].p
			}
		}
	}
	return sides
}

// block joins narrow layers' variables from the chunks of all layers. It is valid until the next
// call.
func (s *narrowLayers) block(chunks []chunk) linalg.Block {
	var blocks []linalg.Block
	for _, u := range s.layers {
		blocks = append(blocks, chunks[u].block)
	}
	s.memory = linalg.SideBySide(s.memory, blocks)
	return s.memory
}

func (a *accumulator) addPairs(chunks []chunk, group, from int) {
	// X and Y are first variables among all narrow layers'; products are added to All and Part.
	var crossings []linalg.Crossing
	var shuffled [][]linalg.Crossing // the same for the null: for each shuffle, one for each pair
	for i, m := range a.pairs {
		if m == nil {
			continue
		}
		u, v := a.pairLayers(i)
		x, y := a.narrow[0].at[u], a.narrow[1].at[v]
		if x < 0 || y < 0 {
			m.add(chunks[u], chunks[v], group, a.generator(from), &a.scratch)
			continue
		}
		m.addFourth(chunks[u], chunks[v], group) // fourth moments; m.add does this for wider layers
		crossings = append(crossings, linalg.Crossing{X: x, Y: y, All: m.xy, Part: m.part(group)})
		for k, null := range m.null {
			if k == len(shuffled) {
				shuffled = append(shuffled, nil)
			}
			shuffled[k] = append(shuffled[k], linalg.Crossing{X: x, Y: y, All: null})
		}
	}
	if len(crossings) == 0 {
		return
	}
	x, y := a.narrow[0].block(chunks), a.narrow[1].block(chunks)
	linalg.AddCrossings(x, y, crossings, &a.scratch)
	if n := x.N(); n > 1 {
		draw := a.generator(from)
		for _, null := range shuffled {
			linalg.AddCrossings(x, y.Permuted(resample.Cycle(draw, n)), null, &a.scratch)
		}
	}
}

// generator shuffles a block, of first place from, for the null, the same for all pairs.
func (a *accumulator) generator(from int) *rand.Rand {
	k := a.grid.Key
	return seed.Rand(k.Seed, "similarity null", k.Data, k.Transform, k.Trial, from)
}
