package firing

import (
	"fmt"
	"math"
	"slices"

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

// update adds the responses of units lo to hi to inputs. Row i of responses starts at i stride, with the value of unit lo. Disjoint
// ranges of units may be updated in parallel; count is called when all of them have been.
func (g *Global) update(responses []float32, stride, lo, hi int, inputs []Input) {
	eligible := g.eligible(inputs)
	block := g.blockSize()
	for from := lo; from < hi; from += block {
		to := min(hi, from+block)
		for side, t := range g.sides {
			for i, in := range inputs {
				row := responses[i*stride+from-lo : i*stride+to-lo]
				t.update(row, signs[side], from, g.Len()+i, eligible[i], in)
			}
		}
	}
}

// blockSize returns a number of units whose values and thresholds stay in the processor's cache from one input to the next.
func (g *Global) blockSize() int {
	const cache = 256 << 10
	return max(64, cache/(len(g.sides)*g.sides[0].bytes()))
}

// eligible returns, for each input, how many inputs before it may be references.
func (g *Global) eligible(inputs []Input) []int {
	before := make([]int, len(inputs))
	n := g.References()
	for i, in := range inputs {
		before[i] = n
		if in.Reference {
			n++
		}
	}
	return before
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
