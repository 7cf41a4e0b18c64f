package grad

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/einsum"
)

// einsum: y[out] = sum over the other indices of x0[in0] x1[in1] ...; dx_k is the Einsum of dy and
// the other operands with in_k as its result, and with a vector of ones for each index that only
// x_k has. Of an index that x_k repeats only the diagonal is read: there is an identity matrix for
// each repetition.
func einsumRule(c *vjp) {
	ranks := make([]int, len(c.node.Input))
	for i := range ranks {
		var known bool
		if ranks[i], known = c.rank(c.x(i)); !known {
			return
		}
	}
	terms, out, err := einsum.Read(c.attrString("equation", ""), ranks)
	if err != nil {
		c.fail("%v", err)
		return
	}
	for k := range terms {
		c.accumulate(k, func() onnx.Value { return c.einsumGradient(terms, out, k) })
	}
}

func (c *vjp) einsumGradient(terms []string, out string, k int) onnx.Value {
	var operands []onnx.Value
	var inputs []string
	add := func(v onnx.Value, term string) { operands, inputs = append(operands, v), append(inputs, term) }
	scalars := []onnx.Value{} // what has no axes takes no part in an equation
	if out == "" {
		scalars = append(scalars, c.dy(0))
	} else {
		add(c.dy(0), out)
	}
	for i, term := range terms {
		switch {
		case i == k:
		case term == "":
			scalars = append(scalars, c.x(i))
		default:
			add(c.x(i), term)
		}
	}
	target, free := []byte(terms[k]), einsum.Free(terms...)
	for at := range target {
		letter := target[at : at+1]
		switch {
		case strings.IndexByte(terms[k], letter[0]) < at:
			own := free[:1]
			free = free[1:]
			add(c.identityOf(c.size(c.x(k), at)), string(letter)+own)
			target[at] = own[0]
		case !strings.Contains(strings.Join(inputs, ""), string(letter)) && strings.Count(terms[k], string(letter)) == 1:
			add(c.Expand(c.num(1), c.size(c.x(k), at)), string(letter))
		}
	}
	var g onnx.Value
	if len(operands) > 0 {
		g = c.Op("Einsum", onnx.Attrs{"equation": strings.Join(inputs, ",") + "->" + string(target)}, operands...)
	} else {
		g, scalars = scalars[0], scalars[1:]
	}
	for _, s := range scalars {
		g = c.Mul(g, s)
	}
	return c.sumTo(g, c.extents(terms, string(target), k), c.x(k))
}

// extents are the sizes of indices, as all operands have them; of those that none has, the sizes of
// the axes of the k-th.
func (c *vjp) extents(terms []string, indices string, k int) []int {
	sizes := make([]int, 0, len(indices))
	for own, letter := range indices {
		var all [][]int
		for i, term := range terms {
			if at := strings.IndexRune(term, letter); at >= 0 {
				all = append(all, c.shape(c.x(i))[at:at+1])
			}
		}
		if all == nil {
			all = [][]int{c.shape(c.x(k))[own : own+1]}
		}
		sizes = append(sizes, broadcastShape(all...)...)
	}
	return sizes
}
