package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Y = mean of X over n positions: dX = dY / n
func globalAveragePool(op *operation) {
	const keepsChannels = true
	op.accumulateUnexpanded(0, keepsChannels, func() onnx.Value {
		rank := op.rank(op.x(0))
		if space := op.shape(op.x(0))[2:]; isFixed(space) {
			return op.times(op.dy(0), 1/float64(tensor.Size(space)))
		}
		return op.Div(op.dy(0), op.ReduceSum(op.filled(1, op.x(0)), true, spatialAxes(rank)...))
	})
}

// Y = maximum of X over all positions: dX = dY at the first maximum of each channel, 0 elsewhere
func globalMaxPool(op *operation) onnx.Value {
	first := op.Op("Hardmax", onnx.Attrs{"axis": 2}, op.Reshape(op.x(0), 0, 0, -1))
	return op.reshapeLike(op.Mul(first, op.Reshape(op.dy(0), 0, 0, -1)), op.x(0))
}

// Y = (sum |X|^p)^(1/p): dX = sign(X) |X|^(p-1) dY Y^(1-p)
func globalLpPool(op *operation) onnx.Value { return op.Mul(op.powerSlope(), op.rootSlope()) }

// lpPool is globalLpPool over windows.
func lpPool(op *operation) onnx.Value {
	f := op.poolGeometry()
	return op.Mul(op.powerSlope(), op.sumOverWindows(f, op.rootSlope()))
}

// powerSlope is sign(X) |X|^(p-1), the derivative of |X|^p / p.
func (op *operation) powerSlope() onnx.Value {
	x := op.x(0)
	switch p := op.attr("p", 2); p {
	case 1:
		return op.sign(x)
	case 2:
		return x
	default:
		return op.Mul(op.sign(x), op.Pow(op.Abs(x), op.num(float64(p-1))))
	}
}

// rootSlope is dY Y^(1-p), and 0 where Y is 0 unless p is 1.
func (op *operation) rootSlope() onnx.Value {
	dy, y := op.dy(0), op.y(0)
	switch p := op.attr("p", 2); p {
	case 1:
		return dy
	case 2:
		return op.zeroUnless(op.greater(y, op.num(0)), op.Div(dy, y))
	default:
		return op.zeroUnless(op.greater(y, op.num(0)), op.Mul(dy, op.Pow(y, op.num(float64(1-p)))))
	}
}

// Y = mean over windows: dX sums dY / n over the windows of a position, n their elements.
func averagePool(op *operation) onnx.Value {
	f := op.poolGeometry()
	return op.sumOverWindows(f, op.Div(op.dy(0), op.windowCounts(f)))
}

// poolGeometry is how a pool's windows slide. With ceil_mode the last may end beyond the padding,
// which is extended to it, for unknown sizes by the most that may be needed, in runtimeBefore and
// runtimeAfter (else "").
func (op *operation) poolGeometry() geometry {
	f := op.geometryOf(op.x(0), op.attrInts("kernel_shape"))
	f.group = 1
	if f.runtimeBefore != "" || op.attr("ceil_mode", 0) == 0 {
		return f
	}
	x, y := op.shape(op.x(0)), op.shape(op.y(0))
	f.after = slices.Clone(f.after)
	for i := range f.kernel {
		if x == nil || y == nil || x[2+i] < 0 || y[2+i] < 0 {
			tail := slices.Clone(f.after)
			for k := range tail {
				tail[k] += f.strides[k] - 1
			}
			f.runtimeBefore, f.runtimeAfter = op.Ints(f.before...), op.Ints(tail...)
			return f
		}
		f.after[i] = max(f.after[i], (y[2+i]-1)*f.strides[i]+f.reach(i)+1-x[2+i]-f.before[i])
	}
	return f
}

// windowCounts is averagePool's elements of each window, 1 x 1 x space, or one number.
func (op *operation) windowCounts(f geometry) onnx.Value {
	n := len(f.kernel)
	include := op.attr("count_include_pad", 0) != 0
	padded := f.runtimeBefore != "" || slices.Max(f.pads()) > 0
	if !padded || include && op.attr("ceil_mode", 0) == 0 {
		return op.num(float64(tensor.Size(f.kernel)))
	}
	given := op.geometryWithPads(f.kernel) // without what poolGeometry adds
	// The ones are the elements that count, and rest has the padding that does not count.
	ones, rest := op.onesLike(op.x(0), n), f
	if include { // the padding of the attribute pads is counted, but not what ceil_mode adds
		rest.before, rest.after = make([]int, n), make([]int, n)
		for i := range n {
			rest.after[i] = max(f.after[i]-given.after[i], 0)
		}
		ones = op.onesLike(op.x(0), n, given.pads()...)
		if f.runtimeBefore != "" {
			rest.runtimeBefore, rest.runtimeAfter = op.Ints(make([]int, n)...), op.Sub(f.runtimeAfter, op.Ints(given.after...))
		}
	}
	attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "pads": rest.pads()}
	if rest.runtimeBefore != "" {
		attrs["pads"] = make([]int, 2*n)
	}
	counts := op.Conv(op.padded(ones, rest), op.Full(1, append([]int{1, 1}, f.kernel...)...), "", attrs)
	return op.cropToOutput(counts, f)
}

// cropToOutput crops the padded convolution v to the output: computed padding may be too much.
func (op *operation) cropToOutput(v onnx.Value, f geometry) onnx.Value {
	if f.runtimeBefore == "" {
		return v
	}
	return op.crop(v, make([]int, len(f.kernel)), "", op.y(0))
}

// onesLike is 1 x 1 x space ones, for the last n sizes of x plus pads.
func (op *operation) onesLike(x onnx.Value, n int, pads ...int) onnx.Value {
	more := make([]int, n) // padding at both ends of each axis together
	for i := range pads {
		more[i%n] += pads[i]
	}
	if s := op.shape(x); s != nil && isFixed(s[2:]) {
		sizes := []int{1, 1}
		for i := range n {
			sizes = append(sizes, s[2+i]+more[i])
		}
		if op.Opset() < 8 {
			return op.Full(1, sizes...)
		}
		return op.Expand(op.Scalar(1), op.Ints(sizes...))
	}
	if op.Opset() < 8 {
		op.fail("its gradient with spatial dimensions that are not fixed needs opset 8 or later")
	}
	return op.Expand(op.Scalar(1), op.Concat(0, op.Ints(1, 1), op.Add(op.spatialSizes(x, n), op.Ints(more...))))
}

// sumOverWindows sums g, of the output's shape, over each input position's windows.
func (op *operation) sumOverWindows(f geometry, g onnx.Value) onnx.Value {
	x := op.x(0)
	if s := op.shape(x); s != nil && s[1] > 0 {
		f.group = s[1]
		ones := op.Full(1, append([]int{f.group, 1}, f.kernel...)...)
		if !f.strided() && f.runtimeBefore == "" {
			return op.convMirrored(f, g, ones)
		}
		return op.transposedConv(f, g, ones, x)
	}
	ones := op.Full(1, append([]int{1, 1}, f.kernel...)...)
	return op.reshapeLike(op.transposedConv(f, op.planes(g, op.y(0)), ones, x), x)
}

// planes reshapes v, which has the spatial axes of like, to a batch of single channels.
func (op *operation) planes(v, like onnx.Value) onnx.Value {
	if s := op.shape(like); s != nil && isFixed(s[2:]) {
		return op.Reshape(v, append([]int{-1, 1}, s[2:]...)...)
	}
	n := len(op.attrInts("kernel_shape"))
	return op.ReshapeTo(v, op.Concat(0, op.Ints(-1, 1), op.spatialSizes(like, n)))
}
