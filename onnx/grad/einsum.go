package grad

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/einsum"
)

// einsumRule is the rule of Einsum, which computes Output[out], the sum over all indices not in out
// of Input_0[in_0] Input_1[in_1] and so on. The gradient dInput_k is the Einsum of dOutput and the
// other inputs, with the indices in_k for the result. For an index that only Input_k has, a vector
// of ones is a further operand. If Input_k repeats an index, only its diagonal is read: in the
// result each repetition becomes a new index, and an identity matrix with the old and the new index
// is a further operand.
func einsumRule(op *operation) {
	ranks := make([]int, len(op.node.Input))
	for i := range ranks {
		ranks[i] = op.rank(op.x(i))
	}
	terms, out, err := einsum.Read(op.attrString("equation", ""), ranks)
	if err != nil {
		op.fail("%v", err)
	}
	for k := range terms {
		op.accumulate(k, func() onnx.Value { return op.einsumGradient(terms, out, k) })
	}
}

// einsumGradient is the gradient of the k-th input. terms are the indices of the inputs, and out
// those of the output.
func (op *operation) einsumGradient(terms []string, out string, k int) onnx.Value {
	var operands []onnx.Value
	var inputs []string
	add := func(v onnx.Value, term string) { operands, inputs = append(operands, v), append(inputs, term) }
	var scalars []onnx.Value // tensors without axes, which take no part in the equation
	if out == "" {
		scalars = append(scalars, op.dy(0))
	} else {
		add(op.dy(0), out)
	}
	for i, term := range terms {
		switch {
		case i == k:
		case term == "":
			scalars = append(scalars, op.x(i))
		default:
			add(op.x(i), term)
		}
	}
	target, free := []byte(terms[k]), einsum.Free(terms...) // free: the letters that no term uses
	for at := range target {
		letter := target[at : at+1]
		switch {
		case strings.IndexByte(terms[k], letter[0]) < at:
			fresh := free[:1]
			free = free[1:]
			add(op.identityOf(op.size(op.x(k), at)), string(letter)+fresh)
			target[at] = fresh[0]
		case !strings.Contains(strings.Join(inputs, ""), string(letter)) && strings.Count(terms[k], string(letter)) == 1:
			add(op.Expand(op.num(1), op.size(op.x(k), at)), string(letter))
		}
	}
	var g onnx.Value
	if len(operands) > 0 {
		g = op.Op("Einsum", onnx.Attrs{"equation": strings.Join(inputs, ",") + "->" + string(target)}, operands...)
	} else {
		g, scalars = scalars[0], scalars[1:]
	}
	for _, s := range scalars {
		g = op.Mul(g, s)
	}
	// Sum over the axes along which the input was broadcast.
	return op.sumTo(g, op.indexSizes(terms, string(target), k), op.x(k))
}

// indexSizes returns the sizes of indices. An index that no input has takes the size of that axis
// of the k-th input.
func (op *operation) indexSizes(terms []string, indices string, k int) []int {
	sizes := make([]int, 0, len(indices))
	for own, letter := range indices {
		var all [][]int
		for i, term := range terms {
			if at := strings.IndexRune(term, letter); at >= 0 {
				all = append(all, op.shape(op.x(i))[at:at+1])
			}
		}
		if all == nil {
			all = [][]int{op.shape(op.x(k))[own : own+1]}
		}
		sizes = append(sizes, broadcastShape(all...)...)
	}
	return sizes
}
