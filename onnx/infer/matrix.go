package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/einsum"
)

// The layouts of products and sums over axes.

// mixed is what an axis means after a matrix with weights has mixed its places: channels, unless it
// had another meaning and channels are on another axis, as in the token mixing of an MLP-Mixer.
func mixed(places axis, others layout, size int) axis {
	isChannel := func(a axis) bool { return a.letter() == 'C' }
	if !isChannel(places) && slices.ContainsFunc(others, isChannel) {
		return one(blank, size)
	}
	return one('C', size)
}

func (c *node) matMul() layout {
	x, y := c.arg(0), c.arg(1)
	dataX, dataY := len(c.args) > 0 && c.args[0].data, len(c.args) > 1 && c.args[1].data
	if c.node.GetOpType() == "QLinearMatMul" {
		y, dataY = c.arg(3), len(c.args) > 3 && c.args[3].data
	}
	if len(x) == 0 || len(y) == 0 {
		return nil
	}
	// A vector counts as a matrix of one row or column, which the product does not keep.
	rowX, columnY := len(x) == 1, len(y) == 1
	if rowX {
		x = layout{one(blank, 1), x[0]}
	}
	if columnY {
		y = layout{y[0], one(blank, 1)}
	}
	rows, columns := x[len(x)-2], y[len(y)-1]
	leading := c.broadcast(x[:len(x)-2], y[:len(y)-2])
	switch {
	case dataX && !dataY:
		columns = mixed(x[len(x)-1], x[:len(x)-1], columns.size())
	case dataY && !dataX:
		rows = mixed(y[len(y)-2], slices.Concat(leading, layout{columns}), rows.size())
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

func (c *node) gemm() layout {
	x, y := c.arg(0), c.arg(1)
	if len(x) != 2 || len(y) != 2 {
		return unknowns(2)
	}
	row, column := 0, 1
	if onnx.AttrInt(c.node, "transA", 0) != 0 {
		row = 1
	}
	if onnx.AttrInt(c.node, "transB", 0) != 0 {
		column = 0
	}
	out := layout{x[row], y[column]}
	if !c.args[1].data {
		out[1] = one('C', y[column].size())
	}
	return out
}

// einsum gives each index of the result the best of the axes that it names; what only weights name
// is channels.
func (c *node) einsum() layout {
	ranks := make([]int, len(c.args))
	for i := range ranks {
		if c.arg(i) == nil {
			return nil
		}
		ranks[i] = len(c.arg(i))
	}
	terms, result, err := einsum.Read(onnx.AttrString(c.node, "equation", ""), ranks)
	if err != nil {
		return nil
	}
	named := map[rune][]layout{}
	ofData := map[rune]bool{}
	for i, term := range terms {
		for j, index := range term {
			named[index] = append(named[index], layout{c.arg(i)[j]})
			ofData[index] = ofData[index] || c.args[i].data
		}
	}
	out := make(layout, 0, len(result))
	for _, index := range result {
		if named[index] == nil {
			return nil
		}
		a := c.broadcast(named[index]...)[0]
		if !ofData[index] && a.letter() == '?' && len(a) == 1 && a[0].letter == blank {
			a = one('C', a.size())
		}
		out = append(out, a)
	}
	return out
}

func (c *node) reduce(x layout) layout {
	axes, ok := c.list("axes", 1)
	switch {
	case x == nil:
		return nil
	case !ok && onnx.AttrInt(c.node, "keepdims", 1) == 1:
		return x.unsized()
	case !ok:
		return nil
	}
	if len(axes) == 0 && onnx.AttrInt(c.node, "noop_with_empty_axes", 0) == 1 {
		return x
	}
	gone := map[int]bool{}
	for _, a := range axes {
		if a, ok := front(a, len(x)); ok {
			gone[a] = true
		}
	}
	return collapsed(x, func(i int) bool { return len(axes) == 0 || gone[i] }, onnx.AttrInt(c.node, "keepdims", 1) == 1)
}

func (c *node) argReduce(x layout) layout {
	at, ok := c.axisOf("axis", 0, len(x))
	if !ok {
		return nil
	}
	return collapsed(x, func(i int) bool { return i == at }, onnx.AttrInt(c.node, "keepdims", 1) == 1)
}

// collapsed is a layout without some axes, or with those of size 1.
func collapsed(x layout, gone func(i int) bool, keep bool) layout {
	out := layout{}
	for i, a := range x {
		switch {
		case !gone(i):
			out = append(out, a)
		case keep:
			out = append(out, a.resized(1))
		}
	}
	return out
}
