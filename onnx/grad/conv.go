package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// conv: y[n, o, p] = b[o] + sum over i, k of w[o, i, k] x[n, i, p stride + k dilation - before].
func conv(c *vjp) {
	kernel, ok := c.kernelOf(c.x(0), c.x(1))
	if !ok {
		return
	}
	f, ok := c.filterOf(c.x(0), kernel)
	if !ok {
		return
	}
	c.accumulate(0, func() onnx.Value { return c.spread(f, c.dy(0), c.x(1), c.x(0)) })
	c.accumulate(1, func() onnx.Value { return c.kernelGradient(f, c.x(0), c.dy(0), c.x(1)) })
	c.accumulate(2, func() onnx.Value { return c.channelSums(c.dy(0), len(f.kernel)+2) })
}

// convTranspose is what spreads the gradient of a convolution with the same kernel, so its own
// gradient is that convolution, and by the kernel it is that of the convolution with input and
// output exchanged.
func convTranspose(c *vjp) {
	kernel, ok := c.kernelOf(c.x(0), c.x(1))
	if !ok {
		return
	}
	f := c.filter(kernel)
	if !c.checkFilter(f) || !c.transposedPads(&f) {
		return
	}
	n := len(f.kernel)
	dy := c.dy(0)
	c.accumulate(0, func() onnx.Value {
		g := c.Conv(c.padded(dy, f), c.x(1), "", onnx.Attrs{"pads": f.pads(), "strides": f.strides, "dilations": f.dilations, "group": f.group})
		return c.trimmed(g, c.x(0), n, c.attrInts("output_padding"), f.strides)
	})
	c.accumulate(1, func() onnx.Value { return c.kernelGradient(f, dy, c.x(0), c.x(1)) })
	c.accumulate(2, func() onnx.Value { return c.channelSums(dy, n+2) })
}

// trimmed takes away what a padding of the output by a whole stride or more has added.
func (c *vjp) trimmed(g, v onnx.Value, n int, extra, strides []int) onnx.Value {
	for i := range extra {
		if extra[i] >= strides[i] {
			return c.crop(g, make([]int, n), "", v)
		}
	}
	return g
}

// transposedPads works out the padding of a transposed convolution whose output shape is given, or
// is to be as long as the input times the stride.
func (c *vjp) transposedPads(f *filter) bool {
	auto := c.attrString("auto_pad", "NOTSET")
	same := auto == "SAME_UPPER" || auto == "SAME_LOWER"
	n := len(f.kernel)
	given := c.attrInts("output_shape")
	if auto == "VALID" && len(given) == 0 {
		f.before, f.after = make([]int, n), make([]int, n)
	}
	if !same && len(given) == 0 {
		return true
	}
	given = given[max(0, len(given)-n):] // it may begin with batch and channels
	shape, extra := c.shape(c.x(0)), c.perAxis("output_padding", n, 0)
	f.before, f.after, f.lead = make([]int, n), make([]int, n), ""
	for i := range n {
		if len(shape) != n+2 || shape[2+i] < 0 || f.kernel[i] < 0 {
			return c.padsRuntime(f, c.x(0), c.y(0), extra, auto != "SAME_UPPER")
		}
		out := shape[2+i] * f.strides[i]
		if len(given) == n {
			out = given[i]
		}
		total := max((shape[2+i]-1)*f.strides[i]+extra[i]+f.reach(i)+1-out, 0)
		f.before[i], f.after[i] = total-total/2, total/2
		if auto == "SAME_UPPER" {
			f.before[i], f.after[i] = f.after[i], f.before[i]
		}
	}
	return true
}

// kernelOf is the shape of the kernel of a convolution of x with the weights w (... x ... x
// kernel), -1 for what is not known.
func (c *vjp) kernelOf(x, w onnx.Value) ([]int, bool) {
	shape, kernel := c.shape(w), c.attrInts("kernel_shape")
	switch {
	case kernel != nil:
	case len(shape) > 2:
		kernel = slices.Clone(shape[2:])
		for i := range kernel {
			kernel[i] = max(kernel[i], -1)
		}
	case len(c.shape(x)) > 2:
		kernel = unknown(len(c.shape(x)) - 2)
	default:
		c.fail("the rank of its weights is not known before the graph runs")
		return nil, false
	}
	return kernel, true
}

func unknown(rank int) []int { return slices.Repeat([]int{-1}, rank) }

// channelSums sums over all axes but the second.
func (c *vjp) channelSums(g onnx.Value, rank int) onnx.Value {
	return c.ReduceSum(g, false, append([]int{0}, upTo(rank)[2:]...)...)
}

// spread adds up, at each place of v, what the places of dy whose kernel reads it have there: the
// gradient by the input v of a convolution with weights w (out x in / group x kernel). Without
// strides it is itself a convolution, with the kernels reversed and channels exchanged, which
// runtimes compute in fewer passes than a transposed one.
func (c *vjp) spread(f filter, dy, w, v onnx.Value) onnx.Value {
	shape := c.shape(w)
	if !f.strided() && f.lead == "" && fixed(shape) {
		g := c.spreadDensely(f, dy, c.mirrored(w, shape, f.group))
		if c.info.Constant(string(w)) && c.fits(v) {
			c.blockwise[g] = true
		}
		return g
	}
	return c.transposed(f, dy, w, v)
}

// spreadDensely is spread without strides, with mirrored weights.
func (c *vjp) spreadDensely(f filter, dy, mirrored onnx.Value) onnx.Value {
	n := len(f.kernel)
	pads := make([]int, 2*n)
	for i := range n {
		pads[i], pads[n+i] = f.reach(i)-f.before[i], f.reach(i)-f.after[i]
		// What only padding has made has no gradient.
		end := 1<<31 - 1
		if pads[n+i] < 0 {
			end = pads[n+i]
		}
		if start := max(-pads[i], 0); start > 0 || end < 0 {
			dy = c.Slice(dy, 2+i, start, end, 1)
		}
		pads[i], pads[n+i] = max(pads[i], 0), max(pads[n+i], 0)
	}
	return c.Conv(dy, mirrored, "", onnx.Attrs{"pads": pads, "dilations": f.dilations, "group": f.group})
}

// transposed is spread as a transposed convolution.
func (c *vjp) transposed(f filter, dy, w, v onnx.Value) onnx.Value {
	n := len(f.kernel)
	shape := c.shape(v)
	attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "group": f.group}
	extra := make([]int, n)
	exact := f.lead == "" && len(shape) == n+2 && fixed(shape[2:]) && !slices.Contains(f.kernel, -1)
	for i := range n {
		extra[i] = f.strides[i] - 1
		if exact { // the rest of the padded input that no place of the output has read
			extra[i] = (shape[2+i] + f.before[i] + f.after[i] - f.reach(i) - 1) % f.strides[i]
			exact = extra[i] >= 0
		}
	}
	if exact {
		attrs["pads"], attrs["output_padding"] = f.pads(), extra
		return c.Op("ConvTranspose", attrs, dy, w)
	}
	attrs["output_padding"] = extra
	return c.crop(c.Op("ConvTranspose", attrs, dy, w), f.before, f.lead, v)
}

// mirrored is weights (out x in / group x kernel) as the gradient by the input needs them: in x out
// / group x kernel, the kernel reversed. Constant weights are rearranged here and now, unless there
// is a gradient by them: who differentiates again wants to find them.
func (c *vjp) mirrored(v onnx.Value, w []int, group int) onnx.Value {
	out, in, kernel := w[0]/group, w[1], w[2:]
	if constant, ok := c.info.Weights(string(v)); ok && !c.active[v] {
		return c.Const("", mirror(constant, group))
	}
	taps := tensor.Size(kernel)
	g := c.Transpose(c.Reshape(v, group, out, in, taps), 0, 2, 1, 3)
	g = c.reversed(c.Reshape(g, group*in, out, taps), 2, taps)
	return c.Reshape(g, append([]int{group * in, out}, kernel...)...)
}

// mirror rearranges weights, out x in / group x kernel, to in x out / group x reversed kernel.
func mirror(w tensor.Tensor, group int) tensor.Tensor {
	out, in, kernel := w.Shape[0]/group, w.Shape[1], w.Shape[2:]
	taps := tensor.Size(kernel)
	turned := tensor.New(append([]int{group * in, out}, kernel...)...)
	for g := range group {
		for i := range in {
			for o := range out {
				from := w.Data[((g*out+o)*in+i)*taps:][:taps]
				to := turned.Data[((g*in+i)*out+o)*taps:][:taps]
				for k := range to {
					to[k] = from[taps-1-k]
				}
			}
		}
	}
	return turned
}

// reversed turns the order of an axis of known size around.
func (c *vjp) reversed(x onnx.Value, axis, size int) onnx.Value {
	if size == 1 {
		return x
	}
	if c.Opset() >= 10 { // from which on slices go backwards
		return c.Slice(x, axis, -1, -size-1, -1)
	}
	order := upTo(size)
	slices.Reverse(order)
	return c.Gather(x, c.Ints(order...), axis)
}

// kernelGradient is the gradient by the weights w (out x in / group x kernel) of a convolution of x
// with output y:
//
//	dw[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, p stride + k dilation - before]
//
// which is itself a convolution: of x with dy as its kernel, batch and channels exchanged, strides
// and dilations too.
func (c *vjp) kernelGradient(f filter, x, dy, w onnx.Value) onnx.Value {
	if channels, ok := c.foldable(f, x); ok {
		return c.foldedKernelGradient(f, x, dy, channels)
	}
	n := len(f.kernel)
	swap := append([]int{1, 0}, upTo(n + 2)[2:]...)
	image, ok := c.channelsFirst(f, x, w, swap)
	if !ok {
		return ""
	}
	g := c.Conv(c.padded(image, f), c.Transpose(dy, swap...), "", onnx.Attrs{
		"pads": f.pads(), "strides": f.dilations, "dilations": f.strides, "group": f.group,
	})
	return c.cropKernel(c.Transpose(g, swap...), f, x, w)
}

// foldable reports whether the channels of x can lie along its last axis, and how many there are.
func (c *vjp) foldable(f filter, x onnx.Value) (channels int, ok bool) {
	shape, last := c.shape(x), len(f.kernel)-1
	if len(shape) != last+3 || !fixed(shape[1:]) || slices.Contains(f.kernel, -1) || f.lead != "" || f.group != 1 || f.dilations[last] != 1 {
		return 0, false
	}
	return shape[1], true
}

// foldedKernelGradient is kernelGradient where the channels of x are not a batch, as then each of
// them has a matrix product to itself that is only as wide as the kernel has taps. They lie side by
// side along the last axis instead, where a tap to the right is as many places to the right as
// there are channels: one image, n x height x (width in), and one product for all.
func (c *vjp) foldedKernelGradient(f filter, x, dy onnx.Value, channels int) onnx.Value {
	n, last := len(f.kernel), len(f.kernel)-1
	space := slices.Clone(c.shape(x)[2:])
	space[last] *= channels
	image := c.Reshape(c.Transpose(x, slices.Concat([]int{0}, upTo(n + 2)[2:], []int{1})...), append([]int{1, -1}, space...)...)
	pads, dilations := slices.Clone(f.pads()), slices.Clone(f.strides)
	pads[last] *= channels
	pads[n+last] *= channels
	dilations[last] *= channels
	g := c.Conv(image, c.Transpose(dy, append([]int{1, 0}, upTo(n + 2)[2:]...)...), "", onnx.Attrs{
		"pads": pads, "strides": f.dilations, "dilations": dilations,
	})
	taps := slices.Clone(f.kernel)
	taps[last] *= channels
	for i, k := range taps {
		if !c.usesAll(f, x, i) {
			g = c.Slice(g, 2+i, 0, k, 1)
		}
	}
	g = c.Reshape(g, slices.Concat([]int{-1}, f.kernel, []int{channels})...)
	return c.Transpose(g, slices.Concat([]int{0, n + 1}, upTo(n + 1)[1:])...)
}

// channelsFirst is x, n x (group in) x space, as a batch of in, each of group n channels.
func (c *vjp) channelsFirst(f filter, x, w onnx.Value, swap []int) (onnx.Value, bool) {
	image := c.Transpose(x, swap...)
	if f.group == 1 {
		return image, true
	}
	in := -1
	if s := c.shape(w); s != nil && s[1] > 0 {
		in = s[1]
	} else if s := c.shape(x); s != nil && s[1] > 0 {
		in = s[1] / f.group
	}
	if in < 0 {
		c.fail("the number of its channels must be fixed, as it has groups")
		return "", false
	}
	parts := []part{size(f.group), size(in), c.dimension(x, 0)}
	joined := []part{size(in), {size: -1}}
	perm := []int{1, 0, 2}
	for i := range f.kernel {
		parts, perm = append(parts, c.dimension(x, 2+i)), append(perm, 3+i)
		joined = append(joined, c.dimension(x, 2+i))
	}
	if in == 1 { // n channels each follow one another already
		return c.joinGroups(image, x, joined), true
	}
	return c.joinGroups(c.Transpose(c.reshapeTo(image, parts...), perm...), x, joined), true
}

// joinGroups reshapes to in x (group n) x space, of which the second is worked out.
func (c *vjp) joinGroups(g, x onnx.Value, joined []part) onnx.Value {
	free := 0
	for _, p := range joined {
		if p.size < 0 {
			free++
		}
	}
	if free == 1 {
		sizes := make([]int, len(joined))
		for i, p := range joined {
			sizes[i] = p.size
		}
		return c.Reshape(g, sizes...)
	}
	space := c.Slice(c.Shape(x), 0, 2, len(joined), 1)
	return c.ReshapeTo(g, c.Concat(0, c.Ints(joined[0].size, -1), space))
}

// cropKernel takes away the taps beyond the kernel that places left over at the end make.
func (c *vjp) cropKernel(g onnx.Value, f filter, x, w onnx.Value) onnx.Value {
	if slices.Contains(f.kernel, -1) {
		return c.crop(g, make([]int, len(f.kernel)), "", w)
	}
	for i, k := range f.kernel {
		if !c.usesAll(f, x, i) {
			g = c.Slice(g, 2+i, 0, k, 1)
		}
	}
	return g
}

// usesAll reports whether so few places of x are left over at the end of an axis of space that they
// make no taps beyond the kernel: fewer than a dilation. Where that is not known it is false.
func (c *vjp) usesAll(f filter, x onnx.Value, i int) bool {
	shape := c.shape(x)
	if len(shape) != len(f.kernel)+2 || shape[2+i] < 1 || f.lead != "" || f.kernel[i] < 1 {
		return false
	}
	beyond := shape[2+i] + f.before[i] + f.after[i] - f.reach(i) - 1
	return beyond >= 0 && beyond%f.strides[i] < f.dilations[i]
}
