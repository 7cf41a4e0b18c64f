package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// globalAveragePool spreads the gradient of a mean evenly.
func globalAveragePool(c *vjp) {
	c.accumulateRepeated(0, true, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok {
			return ""
		}
		shape := c.shape(c.x(0))
		if !fixed(shape[2:]) {
			ones := c.filled(1, c.x(0))
			return c.Div(c.dy(0), c.ReduceSum(ones, true, upTo(rank)[2:]...))
		}
		count := 1
		for _, d := range shape[2:] {
			count *= d
		}
		return c.times(c.dy(0), 1/float64(count))
	})
}

// globalMaxPool sends the gradient to the first maximum of each channel.
func globalMaxPool(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		first := c.Op("Hardmax", onnx.Attrs{"axis": 2}, c.Reshape(c.x(0), 0, 0, -1))
		return c.reshapeLike(c.Mul(first, c.Reshape(c.dy(0), 0, 0, -1)), c.x(0))
	})
}

// globalLpPool: y = (sum |x|^p)^(1/p).
func globalLpPool(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.Mul(c.powerSlope(), c.rootSlope()) })
}

// lpPool is globalLpPool in windows.
func lpPool(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		f, ok := c.poolFilter()
		if !ok {
			return ""
		}
		return c.Mul(c.powerSlope(), c.spreadEvenly(f, c.rootSlope()))
	})
}

// powerSlope is the derivative of |x|^p / p: sign(x) |x|^(p-1).
func (c *vjp) powerSlope() onnx.Value {
	x := c.x(0)
	switch p := c.attr("p", 2); p {
	case 1:
		return c.sign(x)
	case 2:
		return x
	default:
		return c.Mul(c.sign(x), c.Pow(c.Abs(x), c.num(float64(p-1))))
	}
}

// rootSlope is dy times the derivative of the p-th root of s by s / p, y^(1-p), and 0 where y is.
func (c *vjp) rootSlope() onnx.Value {
	dy, y := c.dy(0), c.y(0)
	switch p := c.attr("p", 2); p {
	case 1:
		return dy
	case 2:
		return c.zeroUnless(c.greater(y, c.num(0)), c.Div(dy, y))
	default:
		return c.zeroUnless(c.greater(y, c.num(0)), c.Mul(dy, c.Pow(y, c.num(float64(1-p)))))
	}
}

// averagePool: each element of a window has its share of the gradient.
func averagePool(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		f, ok := c.poolFilter()
		if !ok {
			return ""
		}
		return c.spreadEvenly(f, c.Div(c.dy(0), c.windowCounts(f)))
	})
}

// poolFilter is the geometry of a pool. Where ceil_mode has made a last window that begins inside
// and ends beyond the padding, and sizes are fixed, the padding after is made as long as that
// needs.
func (c *vjp) poolFilter() (filter, bool) {
	f, ok := c.filterOf(c.x(0), c.attrInts("kernel_shape"))
	if !ok {
		return f, false
	}
	f.group = 1
	if f.lead != "" || c.attr("ceil_mode", 0) == 0 {
		return f, true
	}
	x, y := c.shape(c.x(0)), c.shape(c.y(0))
	f.after = slices.Clone(f.after)
	for i := range f.kernel {
		if x == nil || y == nil || x[2+i] < 0 || y[2+i] < 0 {
			f.lead = c.Ints(f.before...)
			f.tail = c.Ints(c.ceilings(f)...)
			return f, true
		}
		f.after[i] = max(f.after[i], (y[2+i]-1)*f.strides[i]+f.reach(i)+1-x[2+i]-f.before[i])
	}
	return f, true
}

// ceilings is the most padding after that ceil_mode may need.
func (c *vjp) ceilings(f filter) []int {
	tail := slices.Clone(f.after)
	for i := range tail {
		tail[i] += f.strides[i] - 1
	}
	return tail
}

// windowCounts is how many elements the mean of each window is over: 1 x 1 x space of the output.
func (c *vjp) windowCounts(f filter) onnx.Value {
	n, taps := len(f.kernel), 1
	for _, k := range f.kernel {
		taps *= k
	}
	include := c.attr("count_include_pad", 0) != 0
	padded := f.lead != "" || slices.Max(f.pads()) > 0
	if !padded || include && c.attr("ceil_mode", 0) == 0 {
		return c.num(float64(taps))
	}
	given := c.filter(f.kernel)
	ones, rest := c.onesLike(c.x(0), n), f
	if include { // of the padding that is given, but not of what lies beyond
		rest.before, rest.after = make([]int, n), make([]int, n)
		for i := range n {
			rest.after[i] = max(f.after[i]-given.after[i], 0)
		}
		ones = c.onesLike(c.x(0), n, given.pads()...)
		if f.lead != "" {
			rest.lead, rest.tail = c.Ints(make([]int, n)...), c.Sub(f.tail, c.Ints(given.after...))
		}
	}
	attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "pads": rest.pads()}
	if rest.lead != "" {
		attrs["pads"] = make([]int, 2*n)
	}
	counts := c.Conv(c.padded(ones, rest), c.Full(1, append([]int{1, 1}, f.kernel...)...), "", attrs)
	return c.likeOutput(counts, f)
}

// likeOutput cuts what windows of a padded input make to the output's size, where the padding was
// more than needed.
func (c *vjp) likeOutput(v onnx.Value, f filter) onnx.Value {
	if f.lead == "" {
		return v
	}
	return c.crop(v, make([]int, len(f.kernel)), "", c.y(0))
}

// onesLike is ones of shape 1 x 1 x the last n axes of x, longer by pads if there are any.
func (c *vjp) onesLike(x onnx.Value, n int, pads ...int) onnx.Value {
	more := make([]int, n)
	for i := range pads {
		more[i%n] += pads[i]
	}
	if s := c.shape(x); s != nil && fixed(s[2:]) {
		sizes := []int{1, 1}
		for i := range n {
			sizes = append(sizes, s[2+i]+more[i])
		}
		if c.Opset() < 8 {
			return c.Full(1, sizes...)
		}
		return c.Expand(c.Scalar(1), c.Ints(sizes...))
	}
	if c.Opset() < 8 {
		c.fail("its gradient with spatial dimensions that are not fixed needs opset 8 or later")
		return ""
	}
	return c.Expand(c.Scalar(1), c.Concat(0, c.Ints(1, 1), c.Add(c.spatialSizes(x, n), c.Ints(more...))))
}

// spreadEvenly adds g, of the output's shape, to every element of its window.
func (c *vjp) spreadEvenly(f filter, g onnx.Value) onnx.Value {
	x := c.x(0)
	if s := c.shape(x); s != nil && s[1] > 0 {
		f.group = s[1]
		ones := c.Full(1, append([]int{f.group, 1}, f.kernel...)...)
		if !f.strided() && f.lead == "" {
			return c.spreadDensely(f, g, ones)
		}
		return c.transposed(f, g, ones, x)
	}
	ones := c.Full(1, append([]int{1, 1}, f.kernel...)...)
	return c.reshapeLike(c.transposed(f, c.planes(g, c.y(0)), ones, x), x)
}

// planes makes a batch of single channels of v, which has the spatial axes of like.
func (c *vjp) planes(v, like onnx.Value) onnx.Value {
	if s := c.shape(like); s != nil && fixed(s[2:]) {
		return c.Reshape(v, append([]int{-1, 1}, s[2:]...)...)
	}
	n := len(c.attrInts("kernel_shape"))
	return c.ReshapeTo(v, c.Concat(0, c.Ints(-1, 1), c.spatialSizes(like, n)))
}
