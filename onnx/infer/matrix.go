package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/einsum"
)

// Layouts of MatMul, Gemm, Einsum and reductions. dependsOnInput tells activations from weights.

// mixedAxis returns the new axis of a product with weights that sums over axis a. others are the
// tensor's other axes. It is channels, but has no letter if one of the others is channels and a is
// not, as in the token mixing of an MLP-Mixer.
func mixedAxis(a axis, others layout, size int) axis {
	isChannel := func(a axis) bool { return a.letter() == 'C' }
	if !isChannel(a) && slices.ContainsFunc(others, isChannel) {
		return newAxis(blank, size)
	}
	return newAxis('C', size)
}

func (op *operation) matMul() layout {
	x, y := op.layout(0), op.layout(1)
	xDepends, yDepends := len(op.args) > 0 && op.args[0].dependsOnInput, len(op.args) > 1 && op.args[1].dependsOnInput
	if op.node.GetOpType() == "QLinearMatMul" { // the scale and the zero point of x come before y
		y, yDepends = op.layout(3), len(op.args) > 3 && op.args[3].dependsOnInput
	}
	if len(x) == 0 || len(y) == 0 {
		return nil
	}
	// A vector is a matrix of one row or column, an axis that the product does not keep.
	rowX, columnY := len(x) == 1, len(y) == 1
	if rowX {
		x = layout{newAxis(blank, 1), x[0]}
	}
	if columnY {
		y = layout{y[0], newAxis(blank, 1)}
	}
	rows, columns := x[len(x)-2], y[len(y)-1]
	leading := op.broadcast(x[:len(x)-2], y[:len(y)-2])
	switch {
	case xDepends && !yDepends:
		columns = mixedAxis(x[len(x)-1], x[:len(x)-1], columns.size())
	case yDepends && !xDepends:
		rows = mixedAxis(y[len(y)-2], slices.Concat(leading, layout{columns}), rows.size())
	}
	out := slices.Clone(leading)
	if !rowX {
		out = append(out, rows)
	}
	if !columnY {
		out = append(out, columns)
	}
	return out
}

// If the second matrix of a Gemm is weights, the output's columns are channels.
func (op *operation) gemm() layout {
	second := 1
	if op.node.GetOpType() == "QGemm" { // the scale and the zero point of x come before y
		second = 3
	}
	x, y := op.layout(0), op.layout(second)
	if len(x) != 2 || len(y) != 2 {
		return unknownSizes(2)
	}
	row, column := 0, 1
	if onnx.AttrInt(op.node, "transA", 0) != 0 {
		row = 1
	}
	if onnx.AttrInt(op.node, "transB", 0) != 0 {
		column = 0
	}
	out := layout{x[row], y[column]}
	if !op.args[second].dependsOnInput {
		out[1] = newAxis('C', y[column].size())
	}
	return out
}

// einsum broadcasts, for each index of the result, the axes with this index in the operands. An
// index that only weights have becomes channels.
func (op *operation) einsum() layout {
	ranks := make([]int, len(op.args))
	for i := range ranks {
		if op.layout(i) == nil {
			return nil
		}
		ranks[i] = len(op.layout(i))
	}
	terms, result, err := einsum.Read(onnx.AttrString(op.node, "equation", ""), ranks)
	if err != nil {
		return nil
	}
	named := map[rune][]layout{}
	dependsOnInput := map[rune]bool{}
	for i, term := range terms {
		for j, index := range term {
			named[index] = append(named[index], layout{op.layout(i)[j]})
			dependsOnInput[index] = dependsOnInput[index] || op.args[i].dependsOnInput
		}
	}
	out := make(layout, 0, len(result))
	for _, index := range result {
		if named[index] == nil {
			return nil
		}
		a := op.broadcast(named[index]...)[0]
		// Only a single factor without meaning (letter '?') becomes channels: products such as
		// height x width keep theirs.
		if !dependsOnInput[index] && a.letter() == '?' && len(a) == 1 && a[0].letter == blank {
			a = newAxis('C', a.size())
		}
		out = append(out, a)
	}
	return out
}

func (op *operation) reduce(x layout) layout {
	axes, ok := op.list("axes", 1)
	switch {
	case x == nil:
		return nil
	case !ok && onnx.AttrInt(op.node, "keepdims", 1) == 1:
		return x.unsized()
	case !ok:
		return nil
	}
	if len(axes) == 0 && onnx.AttrInt(op.node, "noop_with_empty_axes", 0) == 1 {
		return x
	}
	removed := map[int]bool{}
	for _, a := range axes {
		if a, ok := normalizeAxis(a, len(x)); ok {
			removed[a] = true
		}
	}
	return reduced(x, func(i int) bool { return len(axes) == 0 || removed[i] }, onnx.AttrInt(op.node, "keepdims", 1) == 1)
}

func (op *operation) argReduce(x layout) layout {
	at, ok := op.axisOf(0, len(x))
	if !ok {
		return nil
	}
	return reduced(x, func(i int) bool { return i == at }, onnx.AttrInt(op.node, "keepdims", 1) == 1)
}

func reduced(x layout, isReduced func(i int) bool, keep bool) layout {
	out := layout{}
	for i, a := range x {
		switch {
		case !isReduced(i):
			out = append(out, a)
		case keep:
			out = append(out, a.resized(1))
		}
	}
	return out
}
