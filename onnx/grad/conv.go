package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A filter is the geometry of a convolution or of a pool: numbers for each spatial axis.
type filter struct {
	kernel, strides, dilations []int
	before, after              []int // padding at both ends
	group                      int
}

// filterOf reads the geometry of a node whose kernel has a known size; it fails where the padding cannot be told.
func (c *call) filterOf(kernel []int) (filter, bool) {
	n := len(kernel)
	list := func(name string, otherwise int) []int {
		if v := c.attrInts(name); len(v) == n {
			return v
		}
		return slices.Repeat([]int{otherwise}, n)
	}
	f := filter{
		kernel: kernel, strides: list("strides", 1), dilations: list("dilations", 1), group: c.attr("group", 1),
		before: make([]int, n), after: make([]int, n),
	}
	auto := c.attrString("auto_pad", "NOTSET")
	if pads := c.attrInts("pads"); len(pads) == 2*n && (auto == "NOTSET" || auto == "") {
		f.before, f.after = pads[:n], pads[n:]
	}
	if auto == "SAME_UPPER" || auto == "SAME_LOWER" {
		return f, c.samePads(&f, auto == "SAME_LOWER")
	}
	return f, true
}

// samePads works out the padding that auto_pad asks for: as much as makes the output size / stride long, rounded up.
func (c *call) samePads(f *filter, lower bool) bool {
	shape := c.shape(c.x(0))
	if len(shape) != len(f.kernel)+2 {
		c.fail("auto_pad needs a tensor of known rank")
		return false
	}
	for i, size := range shape[2:] {
		reach := f.dilations[i]*(f.kernel[i]-1) + 1
		if size < 0 && f.strides[i] > 1 {
			c.fail("auto_pad %s needs spatial dimensions that are fixed", c.attrString("auto_pad", ""))
			return false
		}
		total := reach - f.strides[i]
		if size >= 0 && size%f.strides[i] != 0 {
			total = reach - size%f.strides[i]
		}
		total = max(total, 0)
		f.before[i], f.after[i] = total/2, total-total/2
		if lower {
			f.before[i], f.after[i] = f.after[i], f.before[i]
		}
	}
	return true
}

// conv: y = W * x + b. The gradient by x is a convolution of dy with the kernels reversed and channels exchanged.
func conv(c *call) {
	w := c.shape(c.x(1))
	if len(w) < 3 || !fixed(w) {
		c.fail("the shape of its weights must be fixed")
		return
	}
	f, ok := c.filterOf(w[2:])
	if !ok {
		return
	}
	c.give(0, func() onnx.Value { return c.convInput(f, w) })
	c.give(1, func() onnx.Value { return c.convWeights(f, w) })
	c.give(2, func() onnx.Value { return c.channelSums(c.dy(0), len(w)) })
}

// channelSums sums over all axes but the second.
func (c *call) channelSums(g onnx.Value, rank int) onnx.Value {
	axes := []int{0}
	for i := 2; i < rank; i++ {
		axes = append(axes, i)
	}
	return c.ReduceSum(g, false, axes...)
}

func (c *call) convInput(f filter, w []int) onnx.Value {
	if slices.Max(f.strides) > 1 {
		return c.convTransposed(f)
	}
	n := len(f.kernel)
	dy, pads, crop := c.dy(0), make([]int, 2*n), make([]int, 2*n)
	for i := range n {
		reach := f.dilations[i] * (f.kernel[i] - 1)
		pads[i], pads[n+i] = reach-f.before[i], reach-f.after[i]
	}
	for i, p := range pads {
		if p < 0 { // what only padding has made has no gradient
			pads[i], crop[i] = 0, -p
		}
	}
	for i := range n {
		if crop[i] == 0 && crop[n+i] == 0 {
			continue
		}
		end := 1<<31 - 1
		if crop[n+i] > 0 {
			end = -crop[n+i]
		}
		dy = c.Slice(dy, 2+i, crop[i], end, 1)
	}
	return c.Conv(dy, c.mirrored(c.x(1), w, f.group), "", onnx.Attrs{"pads": pads, "dilations": f.dilations, "group": f.group})
}

// convTransposed is the input's gradient as the transposed convolution that it is.
func (c *call) convTransposed(f filter) onnx.Value {
	n := len(f.kernel)
	shape := c.shape(c.x(0))
	extra := make([]int, n)
	for i := range n {
		if len(shape) != n+2 || shape[2+i] < 0 {
			c.fail("with strides, the spatial dimensions of its input must be fixed")
			return ""
		}
		rest := shape[2+i] + f.before[i] + f.after[i] - f.dilations[i]*(f.kernel[i]-1) - 1
		extra[i] = rest % f.strides[i]
	}
	return c.Op("ConvTranspose", onnx.Attrs{
		"pads": slices.Concat(f.before, f.after), "strides": f.strides, "dilations": f.dilations, "group": f.group,
		"output_padding": extra,
	}, c.dy(0), c.x(1))
}

// mirrored is weights (out x in / group x kernel) as the gradient by the input needs them: in x out / group x kernel,
// the kernel reversed. Constant weights are rearranged here and now.
func (c *call) mirrored(v onnx.Value, w []int, group int) onnx.Value {
	out, in, kernel := w[0]/group, w[1], w[2:]
	size := tensor.Size(kernel)
	if constant, ok := c.static.Weights(string(v)); ok {
		turned := tensor.New(append([]int{group * in, out}, kernel...)...)
		for g := range group {
			for i := range in {
				for o := range out {
					from := constant.Data[((g*out+o)*in+i)*size:][:size]
					to := turned.Data[((g*in+i)*out+o)*size:][:size]
					for k := range to {
						to[k] = from[size-1-k]
					}
				}
			}
		}
		return c.Const("", turned)
	}
	perm := []int{0, 2, 1}
	for i := range kernel {
		perm = append(perm, 3+i)
	}
	g := c.Transpose(c.Reshape(v, append([]int{group, out, in}, kernel...)...), perm...)
	g = c.Reshape(g, append([]int{group * in, out}, kernel...)...)
	for i, k := range kernel {
		g = c.reversed(g, 2+i, k)
	}
	return g
}

// reversed turns the order of an axis of known size around.
func (c *call) reversed(x onnx.Value, axis, size int) onnx.Value {
	if size == 1 {
		return x
	}
	order := make([]int, size)
	for i := range order {
		order[i] = size - 1 - i
	}
	return c.Gather(x, c.Ints(order...), axis)
}

// convWeights: dW[o, i, k] = sum over n and places p of dy[n, o, p] x[n, i, p strides + k dilations]: a convolution of x
// with dy as its kernel, where batch and channels have changed places, strides and dilations too.
func (c *call) convWeights(f filter, w []int) onnx.Value {
	n := len(f.kernel)
	perm := []int{1, 0}
	for i := range n {
		perm = append(perm, 2+i)
	}
	x, dy := c.x(0), c.dy(0)
	if f.group > 1 {
		c.fail("the gradient by the weights of a convolution in groups is not supported yet")
		return ""
	}
	g := c.Conv(c.Transpose(x, perm...), c.Transpose(dy, perm...), "", onnx.Attrs{
		"pads": slices.Concat(f.before, f.after), "strides": f.dilations, "dilations": f.strides,
	})
	g = c.Transpose(g, perm...)
	for i, k := range f.kernel {
		g = c.Slice(g, 2+i, 0, k, 1) // places that were left over at the end make more
	}
	return g
}
