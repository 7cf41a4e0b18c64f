package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Of a convolution,
//
//	Y[n, o, p] = B[o] + sum over i, k of W[o, i, k] X[n, i, p stride + k dilation - before]
//
// for sample n, output channel o, input channel i (of the group of o), position p and tap k. dX and
// dW are inputGradient and kernelGradient; dB sums dY over all axes but channels.
func conv(op *operation) {
	f := op.geometryOf(op.x(0), op.kernelOf(op.x(0), op.x(1)))
	op.accumulate(0, func() onnx.Value { return op.inputGradient(f, op.dy(0), op.x(1), op.x(0)) })
	op.accumulate(1, func() onnx.Value { return op.kernelGradient(f, op.x(0), op.dy(0), op.x(1)) })
	op.accumulate(2, func() onnx.Value { return op.channelSums(op.dy(0), len(f.kernel)+2) })
}

// Y is the inputGradient of a convolution with gradient X and weights W, so dX convolves dY, and dW
// is its kernelGradient of dY and X.
func convTranspose(op *operation) {
	f := op.geometryWithPads(op.kernelOf(op.x(0), op.x(1)))
	op.transposedPads(&f)
	n := len(f.kernel)
	dy := op.dy(0)
	op.accumulate(0, func() onnx.Value {
		g := op.Conv(op.padded(dy, f), op.x(1), "", onnx.Attrs{"pads": f.pads(), "strides": f.strides, "dilations": f.dilations, "group": f.group})
		return op.trimmed(g, op.x(0), n, op.attrInts("output_padding"), f.strides)
	})
	op.accumulate(1, func() onnx.Value { return op.kernelGradient(f, dy, op.x(0), op.x(1)) })
	op.accumulate(2, func() onnx.Value { return op.channelSums(dy, n+2) })
}

// trimmed crops g, n spatial axes, to v where an output_padding of a stride or more gives further
// positions.
func (op *operation) trimmed(g, v onnx.Value, n int, extra, strides []int) onnx.Value {
	for i := range extra {
		if extra[i] >= strides[i] {
			return op.crop(g, make([]int, n), "", v) // from position 0 on
		}
	}
	return g
}

// transposedPads sets padding by output_shape or auto_pad: none for VALID; SAME_* for input times
// stride.
func (op *operation) transposedPads(f *geometry) {
	auto := op.attrString("auto_pad", "NOTSET")
	same := auto == "SAME_UPPER" || auto == "SAME_LOWER"
	n := len(f.kernel)
	outputShape := op.attrInts("output_shape")
	if auto == "VALID" && len(outputShape) == 0 {
		f.before, f.after = make([]int, n), make([]int, n)
	}
	if !same && len(outputShape) == 0 {
		return
	}
	outputShape = outputShape[max(0, len(outputShape)-n):] // it may begin with batch and channels
	shape, extra := op.shape(op.x(0)), op.perAxis("output_padding", n, 0)
	f.before, f.after, f.runtimeBefore = make([]int, n), make([]int, n), ""
	for i := range n {
		if len(shape) != n+2 || shape[2+i] < 0 || f.kernel[i] < 0 {
			op.padsRuntime(f, op.x(0), op.y(0), extra, auto != "SAME_UPPER")
			return
		}
		out := shape[2+i] * f.strides[i]
		if len(outputShape) == n {
			out = outputShape[i]
		}
		total := max((shape[2+i]-1)*f.strides[i]+extra[i]+f.reach(i)+1-out, 0)
		f.before[i], f.after[i] = total-total/2, total/2
		if auto == "SAME_UPPER" {
			f.before[i], f.after[i] = f.after[i], f.before[i]
		}
	}
}

func (op *operation) kernelOf(x, w onnx.Value) []int {
	if kernel := op.attrInts("kernel_shape"); kernel != nil {
		return kernel
	}
	if shape := op.shape(w); len(shape) > 2 {
		kernel := slices.Clone(shape[2:])
		for i := range kernel {
			kernel[i] = max(kernel[i], -1)
		}
		return kernel
	}
	if len(op.shape(x)) <= 2 {
		op.fail("the rank of its weights is not known before the graph runs")
	}
	return slices.Repeat([]int{-1}, len(op.shape(x))-2)
}

func (op *operation) channelSums(g onnx.Value, rank int) onnx.Value {
	return op.ReduceSum(g, false, append([]int{0}, spatialAxes(rank)...)...)
}

// inputGradient is the gradient by the input v with weights w (out x in / group x kernel): w dy
// summed over the windows of each position. Without strides it is a convolution with mirrored
// weights, in fewer passes than a transposed one. f.runtimeBefore is padding known only to the
// running graph, else "".
func (op *operation) inputGradient(f geometry, dy, w, v onnx.Value) onnx.Value {
	shape := op.shape(w)
	if !f.strided() && f.runtimeBefore == "" && isFixed(shape) {
		g := op.convMirrored(f, dy, op.mirrored(w, shape, f.group))
		if op.info.Constant(string(w)) && op.blockable(v) {
			op.blocked[g] = true
		}
		return g
	}
	return op.transposedConv(f, dy, w, v)
}

// convMirrored is inputGradient without strides, for weights that mirrored has rearranged.
func (op *operation) convMirrored(f geometry, dy, mirrored onnx.Value) onnx.Value {
	n := len(f.kernel)
	pads := make([]int, 2*n)
	for i := range n {
		pads[i], pads[n+i] = f.reach(i)-f.before[i], f.reach(i)-f.after[i]
		// Outputs that read only padding give no gradient: they are cropped where pads are
		// negative.
		end := 1<<31 - 1 // the end of the axis
		if pads[n+i] < 0 {
			end = pads[n+i]
		}
		if start := max(-pads[i], 0); start > 0 || end < 0 {
			dy = op.Slice(dy, 2+i, start, end, 1)
		}
		pads[i], pads[n+i] = max(pads[i], 0), max(pads[n+i], 0)
	}
	return op.Conv(dy, mirrored, "", onnx.Attrs{"pads": pads, "dilations": f.dilations, "group": f.group})
}

// transposedConv is inputGradient as a transposed convolution.
func (op *operation) transposedConv(f geometry, dy, w, v onnx.Value) onnx.Value {
	n := len(f.kernel)
	shape := op.shape(v)
	attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "group": f.group}
	extra := make([]int, n)
	exact := f.runtimeBefore == "" && len(shape) == n+2 && isFixed(shape[2:]) && !slices.Contains(f.kernel, -1)
	for i := range n {
		extra[i] = f.strides[i] - 1
		if exact { // positions at the end of the padded input that no output reads
			extra[i] = (shape[2+i] + f.before[i] + f.after[i] - f.reach(i) - 1) % f.strides[i]
			exact = extra[i] >= 0
		}
	}
	if exact {
		attrs["pads"], attrs["output_padding"] = f.pads(), extra
		return op.Op("ConvTranspose", attrs, dy, w)
	}
	attrs["output_padding"] = extra
	return op.crop(op.Op("ConvTranspose", attrs, dy, w), f.before, f.runtimeBefore, v)
}

// mirrored rearranges weights w, out x in / group x kernel, to in x out / group x reversed kernel.
// Constant weights become constants, unless their gradient is wanted, for which nodes must read w.
func (op *operation) mirrored(w onnx.Value, shape []int, group int) onnx.Value {
	out, in, kernel := shape[0]/group, shape[1], shape[2:]
	if constant, ok := op.info.Weights(string(w)); ok && !op.active[w] {
		return op.Const("", mirror(constant, group))
	}
	taps := tensor.Size(kernel)
	g := op.Transpose(op.Reshape(w, group, out, in, taps), 0, 2, 1, 3)
	g = op.reversed(op.Reshape(g, group*in, out, taps), 2, taps)
	return op.Reshape(g, append([]int{group * in, out}, kernel...)...)
}

func mirror(w tensor.Tensor, group int) tensor.Tensor {
	out, in, kernel := w.Shape[0]/group, w.Shape[1], w.Shape[2:]
	taps := tensor.Size(kernel)
	result := tensor.New(append([]int{group * in, out}, kernel...)...)
	for g := range group {
		for i := range in {
			for o := range out {
				from := w.Data[((g*out+o)*in+i)*taps:][:taps]
				to := result.Data[((g*in+i)*out+o)*taps:][:taps]
				for k := range to {
					to[k] = from[taps-1-k]
				}
			}
		}
	}
	return result
}

// reversed is x with an axis of known size in reverse order.
func (op *operation) reversed(x onnx.Value, axis, size int) onnx.Value {
	if size == 1 {
		return x
	}
	if op.Opset() >= 10 { // Slice has steps, which may be negative
		return op.Slice(x, axis, -1, -size-1, -1)
	}
	positions := upTo(size)
	slices.Reverse(positions)
	return op.Gather(x, op.Ints(positions...), axis)
}

// kernelGradient is the gradient with respect to the weights w (out x in / group x kernel) of a
// convolution of x. dy is the gradient of its output, and the letters are those of conv:
//
//	dw[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, p stride + k dilation - before]
//
// That is itself a convolution of x with dy as its kernel, with batch and channels exchanged, and
// strides and dilations exchanged.
func (op *operation) kernelGradient(f geometry, x, dy, w onnx.Value) onnx.Value {
	if channels, ok := op.foldable(f, x); ok {
		return op.foldedKernelGradient(f, x, dy, channels)
	}
	n := len(f.kernel)
	swap := append([]int{1, 0}, spatialAxes(n+2)...)
	g := op.Conv(op.padded(op.channelsFirst(f, x, w, swap), f), op.Transpose(dy, swap...), "", onnx.Attrs{
		"pads": f.pads(), "strides": f.dilations, "dilations": f.strides, "group": f.group,
	})
	g = op.Transpose(g, swap...)
	if slices.Contains(f.kernel, -1) {
		return op.crop(g, make([]int, n), "", w)
	}
	return op.cropTaps(g, f, x, f.kernel)
}

func (op *operation) foldable(f geometry, x onnx.Value) (channels int, ok bool) {
	shape, last := op.shape(x), len(f.kernel)-1
	if len(shape) != last+3 || !isFixed(shape[1:]) || slices.Contains(f.kernel, -1) || f.runtimeBefore != "" || f.group != 1 || f.dilations[last] != 1 {
		return 0, false
	}
	return shape[1], true
}

// foldedKernelGradient takes the c channels of x as part of the last axis, not as the batch: one
// image, samples x height x (width c), with taps c apart. As the batch, each channel is a product
// as narrow as the kernel's taps; folded, there is one product.
func (op *operation) foldedKernelGradient(f geometry, x, dy onnx.Value, channels int) onnx.Value {
	n, last := len(f.kernel), len(f.kernel)-1
	space := slices.Clone(op.shape(x)[2:])
	space[last] *= channels
	image := op.Reshape(op.Transpose(x, slices.Concat([]int{0}, spatialAxes(n+2), []int{1})...), append([]int{1, -1}, space...)...)
	pads, dilations := slices.Clone(f.pads()), slices.Clone(f.strides)
	pads[last] *= channels
	pads[n+last] *= channels
	dilations[last] *= channels
	g := op.Conv(image, op.Transpose(dy, append([]int{1, 0}, spatialAxes(n+2)...)...), "", onnx.Attrs{
		"pads": pads, "strides": f.dilations, "dilations": dilations,
	})
	taps := slices.Clone(f.kernel)
	taps[last] *= channels
	g = op.cropTaps(g, f, x, taps)
	g = op.Reshape(g, slices.Concat([]int{-1}, f.kernel, []int{channels})...)
	return op.Transpose(g, slices.Concat([]int{0, n + 1}, upTo(n + 1)[1:])...)
}

// channelsFirst rearranges x, samples x (group in) x space, to in x (group samples) x space; swap
// exchanges the first two axes.
func (op *operation) channelsFirst(f geometry, x, w onnx.Value, swap []int) onnx.Value {
	image := op.Transpose(x, swap...)
	if f.group == 1 {
		return image
	}
	in := -1
	if s := op.shape(w); s != nil && s[1] > 0 {
		in = s[1]
	} else if s := op.shape(x); s != nil && s[1] > 0 {
		in = s[1] / f.group
	}
	if in < 0 {
		op.fail("the number of its channels must be fixed, as it has groups")
	}
	n := len(f.kernel)
	space, batch := slices.Repeat([]int{-1}, n), -1 // unknown where they are not positive
	if s := op.shape(x); s != nil {
		for i := range space {
			space[i] = max(s[2+i], -1)
		}
		batch = s[0]
	}
	spaceValue := func() onnx.Value { return op.Slice(op.Shape(x), 0, 2, 2+n, 1) }
	if in > 1 { // with one channel in each group, the samples of a group follow one another already
		image = op.reshapeAny(image, append([]int{f.group, in, batch}, space...), func() onnx.Value {
			return op.Concat(0, op.Ints(f.group, in), op.Slice(op.Shape(x), 0, 0, 1, 1), spaceValue())
		})
		image = op.Transpose(image, append([]int{1, 0}, spatialAxes(n+3)...)...)
	}
	return op.reshapeAny(image, append([]int{in, -1}, space...), func() onnx.Value {
		return op.Concat(0, op.Ints(in, -1), spaceValue())
	})
}

// reshapeAny reshapes x; sizes that are not positive are unknown. With several, it uses computed's
// tensor.
func (op *operation) reshapeAny(x onnx.Value, sizes []int, computed func() onnx.Value) onnx.Value {
	unknown := 0
	for i, size := range sizes {
		if size <= 0 {
			sizes[i] = -1
			unknown++
		}
	}
	if unknown <= 1 {
		return op.Reshape(x, sizes...)
	}
	return op.ReshapeTo(x, computed())
}

// cropTaps crops the kernel gradient g, which has more taps if no window reads x's last positions.
func (op *operation) cropTaps(g onnx.Value, f geometry, x onnx.Value, taps []int) onnx.Value {
	for i, k := range taps {
		if !op.usesAll(f, x, i) {
			g = op.Slice(g, 2+i, 0, k, 1)
		}
	}
	return g
}

// usesAll: fewer positions than the dilation follow the last window on axis i, so that there are no
// additional taps. False if unknown.
func (op *operation) usesAll(f geometry, x onnx.Value, i int) bool {
	shape := op.shape(x)
	if len(shape) != len(f.kernel)+2 || shape[2+i] < 1 || f.runtimeBefore != "" || f.kernel[i] < 1 {
		return false
	}
	rest := shape[2+i] + f.before[i] + f.after[i] - f.reach(i) - 1
	return rest >= 0 && rest%f.strides[i] < f.dilations[i]
}
