package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A Pair is a layer of the original and the layer of the other model that stands for it.
type Pair struct {
	Original, Other tensor.Layer
	By              string   // what matched them: "name", "module" or "order"
	Doubt           string   // why the names and shapes do not make the match certain; "": they do
	Fused           []string // operators of the original that the other computes in one, or nil
	Quantised       bool     // the other layer is a dequantised tensor

	same []string // further tensors of the other model with the same values
	span *span    // of the other layer; nil: not quantised, or not known
	turn turn     // from the other's axes to the original's
}

// Match matches the layers that two models were opened with: by the names of tensors, then by
// modules of PyTorch and their operators, then by order among layers of the same operator and shape. It
// returns the pairs in the original's order, and the original's layers without a counterpart.
func Match(original, other *model.Model) (pairs []Pair, unmatched []tensor.Layer) {
	m := newMatcher(original, other)
	m.byName()
	m.byModule()
	m.byModuleName()
	m.byOrder()
	m.addFused()
	for i, l := range m.layers {
		if p := m.pairs[i]; p != nil {
			pairs = append(pairs, *p)
		} else {
			unmatched = append(unmatched, l)
		}
	}
	return pairs, unmatched
}

type matcher struct {
	layers []tensor.Layer // of the original
	stands []stand        // of the other
	a, b   *network
	pairs  []*Pair // for each layer; nil: none yet
	taken  []bool  // for each stand
}

func newMatcher(original, other *model.Model) *matcher {
	m := &matcher{layers: measurable(original), a: networkOf(original), b: networkOf(other)}
	m.stands = stands(measurable(other), m.b)
	m.pairs, m.taken = make([]*Pair, len(m.layers)), make([]bool, len(m.stands))
	return m
}

func measurable(m *model.Model) []tensor.Layer {
	return slices.DeleteFunc(m.Layers(), func(l tensor.Layer) bool { return l.Shape == nil })
}

// pair pairs layer i with stand j, if their shapes agree.
func (m *matcher) pair(i, j int, by, doubt string) bool {
	l, s := m.layers[i], m.stands[j]
	t, ok := turnOf(l, s.Layer)
	if !ok || m.pairs[i] != nil || m.taken[j] {
		return false
	}
	m.pairs[i] = &Pair{Original: l, Other: s.Layer, By: by, Doubt: doubt, Quantised: s.quant, same: s.same, span: s.span, turn: t}
	m.taken[j] = true
	return true
}

// byName leaves out names that exporters number, unless the operators agree too.
func (m *matcher) byName() {
	index := map[string]int{}
	for j, s := range m.stands {
		index[s.name] = j
	}
	for i, l := range m.layers {
		if j, ok := index[l.Name]; ok && (l.Op == m.stands[j].op || !numbered.MatchString(l.Name)) {
			m.pair(i, j, "name", "")
		}
	}
}

func (m *matcher) byModule() {
	free, freeStands := m.free()
	keysOf := func(n int, layer func(k int) (name, op string), g *network) map[string]int {
		names, ops := make([]string, n), make([]string, n)
		for k := range n {
			names[k], ops[k] = layer(k)
		}
		return moduleKeys(names, ops, func(k int) string { return g.moduleOf(names[k]) })
	}
	a := keysOf(len(free), func(k int) (string, string) { l := m.layers[free[k]]; return l.Name, l.Op }, m.a)
	b := keysOf(len(freeStands), func(k int) (string, string) { s := m.stands[freeStands[k]]; return s.name, s.op }, m.b)
	for key, k := range a {
		if j, ok := b[key]; ok {
			m.pair(free[k], freeStands[j], "module", "")
		}
	}
}

// byModuleName matches the layers of a model without a graph, which frameworks name by modules, with
// the last operator of the module in the other model.
func (m *matcher) byModuleName() {
	if (len(m.a.nodes) == 0) == (len(m.b.nodes) == 0) {
		return
	}
	free, freeStands := m.free()
	last := map[string]int{} // of each module, in the list of the model with a graph
	add := func(i int, g *network, name string) {
		for module := g.moduleOf(name); module != ""; {
			last[module] = i
			module = module[:max(0, strings.LastIndexByte(module, '.'))]
		}
	}
	if len(m.a.nodes) > 0 {
		for _, i := range free {
			add(i, m.a, m.layers[i].Name)
		}
		for _, j := range freeStands {
			if i, ok := last[m.stands[j].name]; ok {
				m.pair(i, j, "module", "")
			}
		}
		return
	}
	for _, j := range freeStands {
		add(j, m.b, m.stands[j].name)
	}
	for _, i := range free {
		if j, ok := last[m.layers[i].Name]; ok {
			m.pair(i, j, "module", "")
		}
	}
}

// free returns the indices of the layers and stands that are not matched yet.
func (m *matcher) free() (layers, stands []int) {
	for i, p := range m.pairs {
		if p == nil {
			layers = append(layers, i)
		}
	}
	for j, taken := range m.taken {
		if !taken {
			stands = append(stands, j)
		}
	}
	return layers, stands
}

// byOrder matches what is left between two layers that are matched, by the longest common sequence
// of operators and shapes. It is certain where both sides have one of an operator and shape.
func (m *matcher) byOrder() {
	place := map[string]int{} // of each stand
	for j, s := range m.stands {
		place[s.Layer.Name] = j
	}
	from, at := 0, 0
	for i := 0; i <= len(m.layers); i++ {
		to := len(m.stands)
		if i < len(m.layers) {
			if m.pairs[i] == nil {
				continue
			}
			if to = place[m.pairs[i].Other.Name]; to < at {
				continue // the other file has another order here
			}
		}
		m.alignBetween(from, i, at, to)
		from, at = i+1, to+1
	}
}

func (m *matcher) alignBetween(from, to, standFrom, standTo int) {
	var layers, stands []int
	for i := from; i < to; i++ {
		if m.pairs[i] == nil {
			layers = append(layers, i)
		}
	}
	for j := standFrom; j < min(standTo, len(m.stands)); j++ {
		if !m.taken[j] {
			stands = append(stands, j)
		}
	}
	if len(layers) == 0 || len(stands) == 0 {
		return
	}
	a, b := make([]string, len(layers)), make([]string, len(stands))
	count := map[string][2]int{}
	for k, i := range layers {
		a[k] = m.layers[i].Op + " " + canonicalShape(m.layers[i])
		c := count[a[k]]
		count[a[k]] = [2]int{c[0] + 1, c[1]}
	}
	for k, j := range stands {
		b[k] = m.stands[j].op + " " + canonicalShape(m.stands[j].Layer)
		c := count[b[k]]
		count[b[k]] = [2]int{c[0], c[1] + 1}
	}
	for _, match := range commonSequence(a, b) {
		doubt := ""
		if c := count[a[match[0]]]; c != [2]int{1, 1} {
			op, shape, _ := strings.Cut(a[match[0]], " ")
			doubt = fmt.Sprintf("by order alone: one of %d layers %s of shape %s in the original, and of %d in the other", c[0], op, shape, c[1])
		}
		m.pair(layers[match[0]], stands[match[1]], "order", doubt)
	}
}

// commonSequence returns the pairs of indices of a longest common subsequence.
func commonSequence(a, b []string) (pairs [][2]int) {
	length := make([][]int32, len(a)+1) // of the longest one of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// fusable are operators that runtimes and quantisers compute together with the node before.
var fusable = []string{"BatchNormalization", "Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Add"}

// addFused moves a match to the end of a chain of nodes that the other model computes in one: a
// convolution whose normalisation is in its weights, or whose ReLU is in the range of its quantised
// type.
func (m *matcher) addFused() {
	index := map[string]int{}
	for i, l := range m.layers {
		index[l.Name] = i
	}
	for i := range m.layers {
		p := m.pairs[i]
		if p == nil {
			continue
		}
		ops := []string{cmp.Or(m.layers[i].Op, "?")}
		for at := i; ; {
			next := m.a.onlyReader(m.layers[at].Name)
			if next == nil || !slices.Contains(fusable, next.GetOpType()) || len(next.Output) == 0 {
				break
			}
			j, ok := index[next.Output[0]]
			if !ok || m.pairs[j] != nil || m.computes(p.Other.Name, next) {
				break
			}
			t, ok := turnOf(m.layers[j], p.Other)
			if !ok || next.GetOpType() == "Add" && !m.addsBias(next) {
				break
			}
			ops = append(ops, next.GetOpType())
			moved := *p
			moved.Original, moved.turn, moved.Fused = m.layers[j], t, slices.Clone(ops)
			m.pairs[at], m.pairs[j], at = nil, &moved, j
		}
	}
}

// computes reports whether a node of the other model that reads a tensor has the operator of n.
func (m *matcher) computes(name string, n *pb.NodeProto) bool {
	return slices.ContainsFunc(m.b.readers[name], func(r *pb.NodeProto) bool { return r.GetOpType() == n.GetOpType() })
}

// addsBias reports whether a sum of the original has a constant term.
func (m *matcher) addsBias(n *pb.NodeProto) bool {
	return slices.ContainsFunc(n.Input, func(in string) bool {
		p := m.a.producer[in]
		return m.a.weights[in] != nil || p != nil && p.GetOpType() == "Constant"
	})
}

// PairOf returns the pair of two layers whose shapes agree, up to the order of axes.
func PairOf(original, other tensor.Layer) (Pair, bool) {
	t, ok := turnOf(original, other)
	return Pair{Original: original, Other: other, turn: t}, ok
}

// Turned reports whether the layers have different orders of axes.
func (p *Pair) Turned() bool { return p.turn != nil }

// Align returns a batch of the other model's layer in the order of axes of the original, with the
// original's shape, in dst if it has room. Unless the pair is turned it shares the memory of z.
func (p *Pair) Align(dst []float32, z tensor.Tensor) tensor.Tensor {
	return p.turn.apply(dst, z, p.Original.Shape)
}
