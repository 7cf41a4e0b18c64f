package firing

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/noether-ml/noether/internal/gates"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// A Global gathers the thresholds and global firing rates of units, and the inputs that drive them most. It sees each input once and keeps
// what the answers need, exactly: the k largest values of each sign, and the count of ties. With an Error it keeps a sketch of them, whose size
// does not depend on the number of inputs beyond log k, and thresholds alone.
type Global struct {
	units int
	sides []*tops // of s = +1, then of s = -1 unless the units are sparse
}

// GlobalOptions say what a Global keeps.
type GlobalOptions struct {
	Units      int
	Rank       int  // k, see Rank
	References int  // how many of the strongest inputs to keep, one at least
	Sparse     bool // s = +1 alone
	// Error is that of a threshold's rank, relative to Rank and in the root mean square, that a sketch may make; 0: none. Where the
	// values themselves take no more room than their sketch, they are kept, and there is no error.
	Error float64
	First int // number of the first unit, where these are some of more: what a sketch draws depends on it
}

// NewGlobal returns an empty Global.
func NewGlobal(o GlobalOptions) *Global {
	g := &Global{units: o.Units}
	for range o.signs() {
		g.sides = append(g.sides, newTops(o.Units, max(o.Rank, 1), max(o.References, 1), o.Error, o.First))
	}
	return g
}

// Bytes is the memory that a Global takes.
func (o GlobalOptions) Bytes() int64 {
	return int64(o.Units) * int64(o.signs()) * topsBytes(max(o.Rank, 1), max(o.References, 1), o.Error)
}

func (o GlobalOptions) signs() int {
	if o.Sparse {
		return 1
	}
	return 2
}

// signs are the values of s by side.
var signs = [2]float32{1, -1}

// An Input is what a Global is told of an input besides the responses to it.
type Input struct {
	Index     int  // it breaks ties between inputs that drive a unit equally: the lower one is the stronger
	Reference bool // it may stand as a reference: its trajectory is complete
}

// Update shows the responses of all units to some inputs: b x units, finite.
func (g *Global) Update(responses tensor.Tensor, inputs []Input) error {
	if len(inputs) != responses.Shape[0] || responses.Len() != len(inputs)*g.units {
		return fmt.Errorf("firing: responses of shape %v to %d inputs, for %d units", responses.Shape, len(inputs), g.units)
	}
	g.update(responses.Data, g.units, 0, g.units, inputs)
	g.count(inputs)
	return nil
}

// update shows the units from lo to hi the responses to inputs: rows of the given stride, of which the first value is that of
// unit lo. Parts of the units can be updated side by side; count is called once they have all been.
func (g *Global) update(responses []float32, stride, lo, hi int, inputs []Input) {
	step := g.block()
	eligible, ranked := g.eligible(inputs)
	room := min(len(inputs), mostRows) * min(hi-lo, step)
	taken := takeHits(2 * room)
	hits, strong := (*taken)[:room], (*taken)[room:]
	for at := lo; at < hi; at += step {
		for first := 0; first < len(inputs); first += mostRows {
			end := min(first+mostRows, len(inputs))
			b := block{lo: at, hi: min(hi, at+step), n: g.Len() + first, inputs: inputs[first:end], eligible: eligible[first:end], ranked: ranked[first:end]}
			g.updateBlock(b, gates.Rows{Data: responses[first*stride+at-lo:], Stride: stride, N: end - first}, hits, strong)
		}
	}
	freeHits.Put(taken)
}

// block is so many units that what is kept of them stays near the processor from one input to the next.
func (g *Global) block() int {
	const near = 256 << 10
	return min(max(64, near/(len(g.sides)*g.sides[0].bytes())), gates.MostColumns)
}

// mostRows are how many inputs are held against the gates before those are looked at again.
const mostRows = 64

// eligible is by input how many came before it that may stand as references, and whether it may itself: 1 or 0.
func (g *Global) eligible(inputs []Input) (before []int, itself []uint8) {
	before, itself = make([]int, len(inputs)), make([]uint8, len(inputs))
	n := g.References()
	for i, in := range inputs {
		before[i] = n
		if in.Reference {
			itself[i] = 1
			n++
		}
	}
	return before, itself
}

// freeHits is room for the values of a block that pass.
var freeHits = sync.Pool{New: func() any { return new([]gates.Hit) }}

func takeHits(n int) *[]gates.Hit {
	hits := freeHits.Get().(*[]gates.Hit)
	if len(*hits) < n {
		*hits = make([]gates.Hit, n)
	}
	return hits
}

// A block is some units from lo to hi and some inputs, of which the first is the n-th.
type block struct {
	lo, hi, n int
	inputs    []Input
	eligible  []int   // by input: references before it
	ranked    []uint8 // by input: 1 where it may be one, else 0
}

// updateBlock holds responses against the gates of each sign as they stand, and looks at those that pass one by one, when gates may have risen.
func (g *Global) updateBlock(b block, responses gates.Rows, hits, strong []gates.Hit) {
	for side, t := range g.sides {
		responses.Sign = signs[side]
		passed := hits[:gates.Pass(hits, responses, t.gate[b.lo:b.hi])]
		if t.sketch != nil && gates.Available() {
			t.enterAll(b, responses, passed, strong)
			continue
		}
		for _, hit := range passed {
			i, u, v := hit.Row(), b.lo+hit.Column(), responses.Value(hit)
			if v >= t.gate[u] {
				t.keep(u, v, b.n+i, b.eligible[i], int32(b.inputs[i].Index), b.inputs[i].Reference)
			}
		}
	}
}

// enterAll is keep for the values of a block that passed: they enter the sketch all, and then the strongest are looked at.
func (t *tops) enterAll(b block, responses gates.Rows, hits, strong []gates.Hit) {
	s := t.sketch
	w := s.waiting(b.lo, b.hi)
	w.Last, w.Apart, w.Ranked = t.best[(b.lo+1)*t.z-1:], t.z, b.ranked
	found := 0
	for at := 0; at < len(hits); at++ {
		at, found = gates.Enter(hits, at, responses, &w, strong, found)
		if at < len(hits) {
			u := b.lo + hits[at].Column()
			s.empty(u)
			t.gate[u] = t.sketchedGate(u)
		}
	}
	for _, hit := range strong[:found] {
		i, u := hit.Row(), b.lo+hit.Column()
		t.rank(u, responses.Value(hit), b.eligible[i], int32(b.inputs[i].Index))
		t.gate[u] = t.sketchedGate(u)
	}
}

// count takes note that all units have seen the inputs.
func (g *Global) count(inputs []Input) {
	for _, t := range g.sides {
		for _, in := range inputs {
			t.n++
			if in.Reference {
				t.eligible++
			}
		}
	}
}

// Len is the number of inputs seen.
func (g *Global) Len() int { return g.sides[0].n }

// References is the number of inputs seen that may stand as references.
func (g *Global) References() int { return g.sides[0].eligible }

// Threshold is that of unit u with a sign of +1 or -1: it fires where sign x h >= q. global is the share of the inputs where it
// does, NaN from a sketch: the rate at a threshold that is not exact is for a second look at the inputs to count.
func (g *Global) Threshold(u, sign int) (q float32, global float64) {
	t := g.side(sign)
	q, count := t.threshold(u)
	if t.sketch != nil {
		return q, math.NaN()
	}
	return q, float64(count) / float64(t.n)
}

// Strongest are the indices of the references that drive unit u most, the strongest first.
func (g *Global) Strongest(u, sign int) []int {
	var out []int
	for _, i := range g.side(sign).strongest(u) {
		out = append(out, int(i))
	}
	return out
}

func (g *Global) side(sign int) *tops {
	if sign < 0 {
		return g.sides[1]
	}
	return g.sides[0]
}

// Merge adds what another Global of the same options has seen of other inputs.
func (g *Global) Merge(o *Global) error {
	if g.units != o.units || len(g.sides) != len(o.sides) || g.sides[0].k != o.sides[0].k || g.sides[0].z != o.sides[0].z || !g.sides[0].alike(o.sides[0]) {
		return fmt.Errorf("firing: merging thresholds of %d units and of %d, or of other ranks or errors", g.units, o.units)
	}
	for i := range g.sides {
		g.sides[i].merge(o.sides[i])
	}
	return nil
}

const (
	globalKind    = "firing: global"
	globalVersion = 2
)

// MarshalBinary implements encoding.BinaryMarshaler.
func (g *Global) MarshalBinary() ([]byte, error) {
	w := state.NewWriter(globalKind, globalVersion)
	g.write(w)
	return w.Bytes(), nil
}

func (g *Global) write(w *state.Writer) {
	w.Ints([]int{g.units, len(g.sides), g.sides[0].k, g.sides[0].z, g.sides[0].n, g.sides[0].eligible})
	for _, t := range g.sides {
		t.write(w)
	}
}

func (t *tops) write(w *state.Writer) {
	if t.sketch != nil {
		t.sketch.write(w)
	}
	w.Float32s(t.heap)
	w.Int32s(t.tied)
	w.Float32s(t.best)
	w.Int32s(t.at)
	w.Float32s(t.gate)
}

func (t *tops) read(r *state.Reader) {
	if t.sketch != nil {
		t.sketch.read(r)
	}
	r.Float32sInto(t.heap)
	r.Int32sInto(t.tied)
	r.Float32sInto(t.best)
	r.Int32sInto(t.at)
	r.Float32sInto(t.gate)
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The Global must have been made with the same options.
func (g *Global) UnmarshalBinary(data []byte) error {
	r, err := state.NewReader(data, globalKind, globalVersion)
	if err != nil {
		return fmt.Errorf("reading thresholds: %w", err)
	}
	g.read(r)
	if err := r.Close(); err != nil {
		return fmt.Errorf("reading thresholds: %w", err)
	}
	return nil
}

func (g *Global) read(r *state.Reader) {
	t := g.sides[0]
	is := r.Ints()
	if len(is) != 6 || !slices.Equal(is[:4], []int{g.units, len(g.sides), t.k, t.z}) || is[4] < 0 || is[5] < 0 || is[5] > is[4] {
		r.Fail(fmt.Errorf("they are of other units or ranks"))
		return
	}
	for _, t := range g.sides {
		t.read(r)
		t.n, t.eligible = is[4], is[5]
	}
}
