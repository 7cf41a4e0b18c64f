package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// listed is how long an axis may be for a constant that has a number for each of its places.
const listed = 1 << 20

// gather adds each slice of the gradient at the place that it was taken from.
func gather(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		picked, okIndices := c.rank(c.x(1))
		if !ok || !okIndices {
			return ""
		}
		at := axis(c.attr("axis", 0), rank)
		if picked <= 1 {
			if g, done := c.gatherKnown(at, picked); done {
				return g
			}
		}
		return c.gatherAny(at, rank, picked)
	})
}

// gatherKnown is the gradient where the indices are known, and few runs or all different: no sums
// over repetitions are needed then, or only of runs.
func (c *vjp) gatherKnown(at, picked int) (g onnx.Value, done bool) {
	n := c.shape(c.x(0))[at]
	list, ok := c.info.Ints(string(c.x(1)))
	if !ok || n < 0 {
		return "", false
	}
	places := slices.Clone(list)
	for i := range places {
		places[i] = axis(places[i], n)
	}
	g = c.dy(0)
	if picked == 0 {
		g = c.Unsqueeze(g, at)
	}
	if len(runsOf(places)) <= 3 {
		return c.ungather(g, at, places, n), true
	}
	if n > listed {
		return "", false
	}
	source := slices.Repeat([]int{len(places)}, n)
	for i, p := range places {
		if p < 0 || p >= n || source[p] < len(places) {
			return "", false
		}
		source[p] = i
	}
	return c.Gather(c.padAxis(g, at, 0, 1), c.Ints(source...), at), true
}

// gatherAny brings what was picked to the front and adds it up row by row.
func (c *vjp) gatherAny(at, rank, picked int) onnx.Value {
	front := make([]int, picked, picked+rank-1) // of dy: the picked axes, then the others
	for i := range front {
		front[i] = at + i
	}
	order := []int{at} // of x: the axis, then the others
	for k := range rank {
		switch {
		case k < at:
			front, order = append(front, k), append(order, k)
		case k > at:
			front, order = append(front, k+picked-1), append(order, k)
		}
	}
	g := c.permuted(c.dy(0), front)
	rows := c.Flatten(c.Unsqueeze(g, picked), picked)
	g = c.addRows(c.size(c.x(0), at), func() onnx.Value { return c.counting(at) }, c.Reshape(c.long(c.x(1)), -1), rows)
	if at == 0 {
		return c.reshapeLike(g, c.x(0))
	}
	g = c.ReshapeTo(g, c.Gather(c.shapeOf(c.x(0)), c.Ints(order...), 0))
	return c.permuted(g, inverse(order))
}

// long is integers as int64: indices may be of 32 bits, but what is counted beside them is not, nor
// is what ScatterND takes.
func (c *vjp) long(v onnx.Value) onnx.Value {
	if c.info.Type(string(v)) == onnx.Int64 {
		return v
	}
	return c.Cast(v, onnx.Int64)
}

// permuted is Transpose, where that does anything.
func (c *vjp) permuted(x onnx.Value, perm []int) onnx.Value {
	if slices.Equal(perm, upTo(len(perm))) {
		return x
	}
	return c.Transpose(x, perm...)
}

// addRows is a matrix of n rows, each of them the sum of those of g, q x columns, that an index, q
// in all, sends there. places are 0, 1, ... n-1.
func (c *vjp) addRows(n onnx.Value, places func() onnx.Value, index, g onnx.Value) onnx.Value {
	if c.Opset() < 16 { // scatters cannot add
		return c.MatMul(c.oneHot(n, places(), index), g)
	}
	zeros := c.Expand(c.num(0), c.Concat(0, n, c.Gather(c.Shape(g), c.Ints(1), 0)))
	return c.Op("ScatterND", onnx.Attrs{"reduction": "add"}, zeros, c.Unsqueeze(index, 1), g)
}

// oneHot is n x q: 1 where the row is the index of the column. Indices may count from the end.
func (c *vjp) oneHot(n, places, index onnx.Value) onnx.Value {
	rows, columns := c.Unsqueeze(places, 1), c.Unsqueeze(index, 0)
	fromEnd := c.Op("Equal", nil, c.Sub(rows, n), columns)
	return c.mask(c.Op("Or", nil, c.Op("Equal", nil, rows, columns), fromEnd))
}

// counting is 0, 1, ... n-1, where n is the length of an axis of the node's first input.
func (c *vjp) counting(axis int) onnx.Value {
	n := c.shape(c.x(0))[axis]
	if n >= 0 && n <= listed {
		return c.Ints(upTo(n)...)
	}
	if c.Opset() < 11 {
		c.fail("before opset 11, the axis that it picks from must have a fixed size, of %d at most", listed)
		return ""
	}
	return c.countingTo(c.size(c.x(0), axis))
}

// countingTo is 0, 1, ... n-1 for a vector n of one element.
func (c *vjp) countingTo(n onnx.Value) onnx.Value {
	return c.Op("Range", nil, c.Int(0), c.Squeeze(n, 0), c.Int(1))
}

// gatherElements adds each element of the gradient at the place that it was taken from.
func gatherElements(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok {
			return ""
		}
		at := axis(c.attr("axis", 0), rank)
		if c.Opset() >= 16 {
			attrs := onnx.Attrs{"axis": at, "reduction": "add"}
			return c.Op("ScatterElements", attrs, c.filled(0, c.x(0)), c.x(1), c.dy(0))
		}
		return c.addElements(at, rank, c.long(c.x(1)), c.dy(0))
	})
}

// addElements compares each index with each place of the axis and sums what is equal, then fills up
// the other axes, of which the indices may be short.
func (c *vjp) addElements(at, rank int, index, g onnx.Value) onnx.Value {
	n := c.size(c.x(0), at)
	places := c.counting(at)
	if trailing := rank - 1 - at; trailing > 0 {
		places = c.Reshape(places, append([]int{-1}, slices.Repeat([]int{1}, trailing)...)...)
	}
	index = c.Unsqueeze(index, at+1)
	is := c.Op("Or", nil, c.Op("Equal", nil, index, places), c.Op("Equal", nil, index, c.Sub(places, n)))
	g = c.ReduceSum(c.Mul(c.mask(is), c.Unsqueeze(g, at+1)), false, at)
	if c.Opset() < 11 {
		return g
	}
	short := c.Sub(c.shapeOf(c.x(0)), c.Shape(g))
	return c.Op("Pad", nil, g, c.Concat(0, c.Ints(make([]int, rank)...), short))
}

// gatherND adds each slice of the gradient at the place that it was taken from: batches and the
// axes that are indexed are counted through as rows of a matrix.
func gatherND(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		batch := c.attr("batch_dims", 0)
		_, ok := c.rank(c.x(0))
		index := c.shape(c.x(1))
		if !ok || len(index) == 0 || index[len(index)-1] < 0 {
			c.fail("the shape of its indices must be known before the graph runs")
			return ""
		}
		depth, picked := index[len(index)-1], len(index)-1
		if c.Opset() >= 16 && batch == 0 {
			return c.Op("ScatterND", onnx.Attrs{"reduction": "add"}, c.filled(0, c.x(0)), c.x(1), c.dy(0))
		}
		rows, count := c.rowNumbers(batch, depth)
		g := c.Flatten(c.Unsqueeze(c.dy(0), picked), picked)
		places := func() onnx.Value { return c.countingTo(count) }
		return c.reshapeLike(c.addRows(count, places, rows, g), c.x(0))
	})
}

// rowNumbers turns tuples of indices into numbers of rows, of which there are count, batches
// included.
func (c *vjp) rowNumbers(batch, depth int) (rows, count onnx.Value) {
	sizes := make([]onnx.Value, depth)
	strides := make([]onnx.Value, depth)
	count = c.Ints(1)
	for k := depth - 1; k >= 0; k-- {
		sizes[k], strides[k] = c.size(c.x(0), batch+k), count
		count = c.Mul(count, sizes[k])
	}
	index := c.x(1)
	negative := c.Op("Less", nil, index, c.Int(0))
	index = c.Add(index, c.Where(negative, c.Concat(0, sizes...), c.Int(0)))
	rows = c.ReduceSum(c.Mul(index, c.Concat(0, strides...)), false, -1)
	if batch == 0 {
		return c.Reshape(rows, -1), count
	}
	batches := c.Ints(1)
	for k := range batch {
		batches = c.Mul(batches, c.size(c.x(0), k))
	}
	start := c.Mul(c.Unsqueeze(c.countingTo(batches), 1), count)
	rows = c.Add(c.ReshapeTo(rows, c.Concat(0, batches, c.Ints(-1))), start)
	return c.Reshape(rows, -1), c.Mul(count, batches)
}
