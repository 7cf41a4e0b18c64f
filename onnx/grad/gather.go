package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// maxConstant bounds constants with an element for each position of an axis.
const maxConstant = 1 << 20

// output = data at indices along an axis: ddata sums doutput at each position taken.
func gather(op *operation) onnx.Value {
	rank, indexRank := op.rank(op.x(0)), op.rank(op.x(1))
	at := op.axisOf(0, rank)
	if indexRank <= 1 {
		if g := op.gatherByConstant(at, indexRank); g != "" {
			return g
		}
	}
	return op.gatherAny(at, rank, indexRank)
}

// maxRuns bounds runs of indices, each the one before plus a constant -1, 0 or 1, that are sliced.
const maxRuns = 3

// gatherByConstant is for known indices in few runs, or all different: only runs are summed
// (addRuns). Else it is empty. at counts from the front.
func (op *operation) gatherByConstant(at, indexRank int) onnx.Value {
	n := op.shape(op.x(0))[at]
	list, ok := op.info.Ints(string(op.x(1)))
	if !ok || n < 0 {
		return ""
	}
	indices := normalizeAxes(list, n) // negative ones count from the end
	g := op.dy(0)
	if indexRank == 0 {
		g = op.Unsqueeze(g, at)
	}
	if len(runsOf(indices)) <= maxRuns {
		return op.addRuns(g, at, indices, n)
	}
	if n > maxConstant {
		return ""
	}
	// For each position, an index of g; index len(indices) is the zero that padAxis adds.
	source := slices.Repeat([]int{len(indices)}, n)
	for i, index := range indices {
		if index < 0 || index >= n || source[index] < len(indices) {
			return ""
		}
		source[index] = i
	}
	return op.Gather(op.padAxis(g, at, 0, 1), op.Ints(source...), at)
}

// gatherAny moves the axes of the indices to the front and adds the slices up as rows of a matrix.
func (op *operation) gatherAny(at, rank, indexRank int) onnx.Value {
	// Of dy: the axes of the indices, then the others.
	permY := make([]int, indexRank, indexRank+rank-1)
	for i := range permY {
		permY[i] = at + i
	}
	permX := []int{at} // of x: the axis, then the others
	for k := range rank {
		switch {
		case k < at:
			permY, permX = append(permY, k), append(permX, k)
		case k > at:
			permY, permX = append(permY, k+indexRank-1), append(permX, k)
		}
	}
	g := op.permuted(op.dy(0), permY)
	rows := op.Flatten(op.Unsqueeze(g, indexRank), indexRank)
	g = op.addRows(op.size(op.x(0), at), func() onnx.Value { return op.positions(at) }, op.Reshape(op.toInt64(op.x(1)), -1), rows)
	if at == 0 {
		return op.reshapeLike(g, op.x(0))
	}
	g = op.ReshapeTo(g, op.Gather(op.shapeOf(op.x(0)), op.Ints(permX...), 0))
	return op.permuted(g, inverse(permX))
}

// toInt64 converts indices, which may be int32, to int64, as sizes are and ScatterND requires.
func (op *operation) toInt64(v onnx.Value) onnx.Value {
	if op.elementType(v) == onnx.Int64 {
		return v
	}
	return op.Cast(v, onnx.Int64)
}

func (op *operation) permuted(x onnx.Value, perm []int) onnx.Value {
	if slices.Equal(perm, upTo(len(perm))) {
		return x
	}
	return op.Transpose(x, perm...)
}

// addRows is n rows: row i sums the rows k of g, q x columns, with index[k] = i, a vector of q.
// positions writes 0, 1, ... n-1.
func (op *operation) addRows(n onnx.Value, positions func() onnx.Value, index, g onnx.Value) onnx.Value {
	if op.Opset() < 16 { // ScatterND cannot add
		return op.MatMul(op.oneHot(n, positions(), index), g)
	}
	zeros := op.Expand(op.num(0), op.Concat(0, n, op.Gather(op.Shape(g), op.Ints(1), 0)))
	return op.Op("ScatterND", onnx.Attrs{"reduction": "add"}, zeros, op.Unsqueeze(index, 1), g)
}

// oneHot is n x q: 1 where the row is the index of the column. Negative indices count from the end.
func (op *operation) oneHot(n, positions, index onnx.Value) onnx.Value {
	rows, columns := op.Unsqueeze(positions, 1), op.Unsqueeze(index, 0)
	fromEnd := op.equalInts(op.Sub(rows, n), columns)
	return op.mask(op.or(op.equalInts(rows, columns), fromEnd))
}

// positions is 0, 1, ... n-1, where n is the length of an axis of the node's first input.
func (op *operation) positions(axis int) onnx.Value {
	n := op.shape(op.x(0))[axis]
	if n >= 0 && n <= maxConstant {
		return op.Ints(upTo(n)...)
	}
	if op.Opset() < 11 {
		op.fail("before opset 11, the axis that it indexes must have a fixed size of at most %d", maxConstant)
	}
	return op.countTo(op.size(op.x(0), axis))
}

// countTo is 0, 1, ... n-1 for an int64 vector n of one element.
func (op *operation) countTo(n onnx.Value) onnx.Value {
	return op.Op("Range", nil, op.Int(0), op.Squeeze(n, 0), op.Int(1))
}

// output = data at indices, by elements: ddata sums doutput at each position taken.
func gatherElements(op *operation) onnx.Value {
	rank := op.rank(op.x(0))
	at := op.axisOf(0, rank)
	if op.Opset() >= 16 {
		attrs := onnx.Attrs{"axis": at, "reduction": "add"}
		return op.Op("ScatterElements", attrs, op.filled(0, op.x(0)), op.x(1), op.dy(0))
	}
	return op.addElements(at, rank, op.toInt64(op.x(1)), op.dy(0))
}

// addElements adds elements of g at their indices along an axis: it compares indices with
// positions, sums, and pads other axes. Before opset 11 only topK calls it, with complete axes.
func (op *operation) addElements(at, rank int, index, g onnx.Value) onnx.Value {
	n := op.size(op.x(0), at)
	positions := op.positions(at)
	if trailing := rank - 1 - at; trailing > 0 {
		positions = op.Reshape(positions, append([]int{-1}, slices.Repeat([]int{1}, trailing)...)...)
	}
	index = op.Unsqueeze(index, at+1)
	matches := op.or(op.equalInts(index, positions), op.equalInts(index, op.Sub(positions, n)))
	g = op.ReduceSum(op.Mul(op.mask(matches), op.Unsqueeze(g, at+1)), false, at)
	if op.Opset() < 11 {
		return g
	}
	missing := op.Sub(op.shapeOf(op.x(0)), op.Shape(g))
	return op.Op("Pad", nil, g, op.Concat(0, op.Ints(make([]int, rank)...), missing))
}

// output = slices at index tuples: ddata sums doutput's slices. Batch and indexed axes become rows.
func gatherND(op *operation) onnx.Value {
	batch := op.attr("batch_dims", 0)
	index := op.shape(op.x(1))
	op.rank(op.x(0)) // fails where it is unknown
	if len(index) == 0 || index[len(index)-1] < 0 {
		op.fail("the shape of its indices must be known before the graph runs")
	}
	indexRank := len(index) - 1
	if op.Opset() >= 16 && batch == 0 {
		return op.Op("ScatterND", onnx.Attrs{"reduction": "add"}, op.filled(0, op.x(0)), op.x(1), op.dy(0))
	}
	rows, count := op.rowNumbers(batch, index[indexRank])
	g := op.Flatten(op.Unsqueeze(op.dy(0), indexRank), indexRank)
	positions := func() onnx.Value { return op.countTo(count) }
	return op.reshapeLike(op.addRows(count, positions, rows, g), op.x(0))
}

// rowNumbers converts index tuples to rows; count is their number, of all batches.
func (op *operation) rowNumbers(batch, length int) (rows, count onnx.Value) {
	sizes, strides := make([]onnx.Value, length), make([]onnx.Value, length)
	count = op.Ints(1)
	for k := length - 1; k >= 0; k-- {
		sizes[k], strides[k] = op.size(op.x(0), batch+k), count
		count = op.Mul(count, sizes[k])
	}
	index := op.x(1)
	negative := op.less(index, op.Int(0))
	index = op.Add(index, op.Where(negative, op.Concat(0, sizes...), op.Int(0)))
	rows = op.ReduceSum(op.Mul(index, op.Concat(0, strides...)), false, -1)
	if batch == 0 {
		return op.Reshape(rows, -1), count
	}
	batches := op.Ints(1)
	for k := range batch {
		batches = op.Mul(batches, op.size(op.x(0), k))
	}
	start := op.Mul(op.Unsqueeze(op.countTo(batches), 1), count)
	rows = op.Add(op.ReshapeTo(rows, op.Concat(0, batches, op.Ints(-1))), start)
	return op.Reshape(rows, -1), op.Mul(count, batches)
}
