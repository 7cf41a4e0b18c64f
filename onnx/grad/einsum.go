package grad

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// einsum: y[out] = sum over the other indices of x0[in0] x1[in1] ...; dx_k is the Einsum of dy and the other operands
// with in_k as its result, and with a vector of ones for each index that only x_k has.
func einsum(c *call) {
	terms, out, ok := c.subscripts()
	if !ok {
		return
	}
	for k := range terms {
		c.give(k, func() onnx.Value { return c.einsumGradient(terms, out, k) })
	}
}

func (c *call) einsumGradient(terms []string, out string, k int) onnx.Value {
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
	others := strings.Join(inputs, "")
	for at, letter := range terms[k] {
		if !strings.ContainsRune(others, letter) {
			add(c.Expand(c.num(1), c.size(c.x(k), at)), string(letter))
		}
	}
	var g onnx.Value
	if len(operands) > 0 {
		g = c.Op("Einsum", onnx.Attrs{"equation": strings.Join(inputs, ",") + "->" + terms[k]}, operands...)
	} else {
		g, scalars = scalars[0], scalars[1:]
	}
	for _, s := range scalars {
		g = c.Mul(g, s)
	}
	return c.sumTo(g, c.extents(terms, terms[k]), c.x(k))
}

// extents are the sizes of indices, as all operands have them.
func (c *call) extents(terms []string, indices string) []int {
	sizes := make([]int, 0, len(indices))
	for _, letter := range indices {
		var all [][]int
		for i, term := range terms {
			if at := strings.IndexRune(term, letter); at >= 0 {
				all = append(all, c.shape(c.x(i))[at:at+1])
			}
		}
		sizes = append(sizes, broadcastShape(all...)...)
	}
	return sizes
}

// subscripts are the indices of the operands and of the result, one letter for each axis: an ellipsis is spelt out.
func (c *call) subscripts() (terms []string, out string, ok bool) {
	equation := strings.ReplaceAll(c.attrString("equation", ""), " ", "")
	left, out, explicit := strings.Cut(equation, "->")
	terms = strings.Split(left, ",")
	if len(terms) != len(c.node.Input) {
		c.fail("its equation %q has %d terms for %d operands", equation, len(terms), len(c.node.Input))
		return nil, "", false
	}
	free := c.ellipsis(terms)
	if !explicit {
		out = implied(terms)
	}
	longest := 0
	for i, term := range terms {
		rank, known := c.rank(c.x(i))
		if !known {
			return nil, "", false
		}
		hidden := rank - len(strings.Replace(term, "...", "", 1))
		if hidden < 0 || hidden > len(free) || hidden > 0 && !strings.Contains(term, "...") {
			c.fail("its equation %q does not fit operand %d, which has %d axes", equation, i, rank)
			return nil, "", false
		}
		longest = max(longest, hidden)
		terms[i] = strings.Replace(term, "...", free[len(free)-hidden:], 1)
		if repeats(terms[i]) {
			c.fail("gradients of an operand with a repeated index, as in %q, are not supported", equation)
			return nil, "", false
		}
	}
	return terms, strings.Replace(out, "...", free[len(free)-longest:], 1), true
}

// ellipsis are letters that no term uses, for the axes that an ellipsis stands for.
func (c *call) ellipsis(terms []string) string {
	used := strings.Join(terms, "")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(used, r) {
			return -1
		}
		return r
	}, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
}

// implied is the result of an equation without an arrow: the indices that occur once, in alphabetical order, after what
// an ellipsis stands for.
func implied(terms []string) string {
	all := strings.ReplaceAll(strings.Join(terms, ""), "...", "")
	var once []rune
	for _, letter := range all {
		if strings.Count(all, string(letter)) == 1 {
			once = append(once, letter)
		}
	}
	slices.Sort(once)
	if strings.Contains(strings.Join(terms, ""), "...") {
		return "..." + string(once)
	}
	return string(once)
}

func repeats(term string) bool {
	for i, letter := range term {
		if strings.ContainsRune(term[i+1:], letter) {
			return true
		}
	}
	return false
}
