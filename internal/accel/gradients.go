package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// minOutputChannels is the smallest number of output channels for which the native convolution with
// variable weights is faster.
const minOutputChannels = 4

// rewriteGradients replaces convolutions with variable weights, and gradients of convolutions, by
// native operators.
func rewriteGradients(b *onnx.Builder) bool {
	g, found := newGraph(b), false
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		for _, match := range []func(*pb.NodeProto) (nativeNode, bool){g.kernelGradient, g.mirroredConv, g.variableConvTranspose, g.variableConv} {
			if c, ok := match(n); ok {
				found = true
				return c.write(b)
			}
		}
		return nil
	})
	return found
}

type nativeNode struct {
	op      string // name of the operator; its ONNX domain is the constant domain
	attrs   onnx.Attrs
	inputs  []string
	outputs []string // the tensors that its outputs replace; nil: one
}

func (c nativeNode) write(b *onnx.Builder) []onnx.Value {
	inputs := make([]onnx.Value, len(c.inputs))
	for i, name := range c.inputs {
		inputs[i] = onnx.Value(name)
	}
	return b.Node(domain, c.op, max(1, len(c.outputs)), c.attrs, inputs...)
}

// native returns a native operator for a convolution with the geometry of w. tiled is the feature
// map that Winograd's algorithm divides into tiles: the result or its gradient.
func (g *graph) native(op string, w window, tiled string, weights []int, inputs ...string) nativeNode {
	attrs := w.attrs()
	attrs["side"] = tileSide(g.static.Shape(tiled), weights)
	return nativeNode{op: op, attrs: attrs, inputs: inputs}
}

func (g *graph) variable(w string) bool {
	shape := g.static.Shape(w)
	return len(shape) >= 3 && len(shape) <= 4 && slices.Min(shape) >= 1 && g.static.Type(w) == onnx.Float && !g.static.Constant(w)
}

func (g *graph) variableConv(n *pb.NodeProto) (nativeNode, bool) {
	if !isOp(n, "Conv") || !g.variable(n.Input[1]) || g.static.Shape(n.Input[1])[0] < minOutputChannels {
		return nativeNode{}, false
	}
	w, ok := windowOf(g.static, n)
	return g.native(conv, w, n.Output[0], g.static.Shape(n.Input[1]), n.Input...), ok
}

// Package grad writes the gradient of a convolution that has strides, with respect to its input, as
// such a node.
func (g *graph) variableConvTranspose(n *pb.NodeProto) (nativeNode, bool) {
	if !isOp(n, "ConvTranspose") || !g.variable(n.Input[1]) {
		return nativeNode{}, false
	}
	w, ok := windowOf(g.static, n)
	return g.native(convTranspose, w, n.Output[0], g.static.Shape(n.Input[1]), n.Input...), ok
}

// mirroredConv matches the gradient of a convolution without strides with respect to its input.
func (g *graph) mirroredConv(n *pb.NodeProto) (nativeNode, bool) {
	if !isOp(n, "Conv") || len(n.Input) != 2 {
		return nativeNode{}, false
	}
	weights, ok := g.mirrored(n.Input[1])
	if !ok || !g.variable(weights) {
		return nativeNode{}, false
	}
	w, ok := windowOf(g.static, n)
	if !ok || slices.Max(w.strides) > 1 {
		return nativeNode{}, false
	}
	axes := len(w.strides)
	for i := range w.pads {
		w.pads[i] = w.dilations[i%axes]*(g.static.Shape(weights)[2+i%axes]-1) - w.pads[i]
		if w.pads[i] < 0 {
			return nativeNode{}, false
		}
	}
	return g.native(convTranspose, w, n.Output[0], g.static.Shape(weights), n.Input[0], weights), true
}

// mirrored returns the weights, out x in x kernel, from which a tensor is computed by swapping the
// first two axes and reversing the kernel.
func (g *graph) mirrored(kernel string) (weights string, ok bool) {
	shape := g.static.Shape(kernel)
	x, ok := g.reshaped(kernel)
	if !ok || len(shape) < 3 || slices.Min(shape) < 1 {
		return "", false
	}
	size := elements(shape[2:])
	if size > 1 {
		if x, ok = g.reversed(x, size); !ok {
			return "", false
		}
	}
	if x, ok = g.reshaped(x); !ok {
		return "", false
	}
	if x, ok = g.transposed(x, 0, 2, 1, 3); !ok || !slices.Equal(g.static.Shape(x), []int{1, shape[1], shape[0], size}) {
		return "", false
	}
	if x, ok = g.reshaped(x); !ok || !slices.Equal(g.static.Shape(x), slices.Concat([]int{shape[1], shape[0]}, shape[2:])) {
		return "", false
	}
	return x, true
}

// reversed returns the input of the Slice that reverses the last of three axes to produce x.
func (g *graph) reversed(x string, size int) (string, bool) {
	n, ok := g.producer(x, "Slice")
	if !ok {
		return "", false
	}
	starts, ends, axes, steps, ok := g.slice(n)
	if !ok || len(axes) != 1 || axes[0] != 2 || steps[0] != -1 || starts[0] != -1 || ends[0] > -size-1 {
		return "", false
	}
	return n.Input[0], true
}

func (g *graph) slice(n *pb.NodeProto) (starts, ends, axes, steps []int, ok bool) {
	if len(n.Input) != 5 {
		return nil, nil, nil, nil, false
	}
	lists := make([][]int, 4)
	for i := range lists {
		if lists[i], ok = g.static.Ints(n.Input[1+i]); !ok || len(lists[i]) != len(lists[0]) {
			return nil, nil, nil, nil, false
		}
	}
	return lists[0], lists[1], lists[2], lists[3], true
}

// uncropped returns the tensor that the Slices before x crop at the end of axes. ok is false if one
// of them does anything else.
func (g *graph) uncropped(x string) (tensor string, ok bool) {
	for {
		n, ok := g.producer(x, "Slice")
		if !ok {
			return x, true
		}
		starts, _, _, steps, ok := g.slice(n)
		if !ok || slices.Max(starts) != 0 || slices.Min(starts) != 0 || slices.Min(steps) != 1 || slices.Max(steps) != 1 {
			return "", false
		}
		x = n.Input[0]
	}
}

// kernelGradient matches the gradient of a convolution y of x with respect to its kernel. Package
// grad writes it as a convolution of one image. The channels of this image are the samples of x,
// its rows the rows of x, and its columns the pairs of a column and a channel of x. The kernel of
// this convolution is dy, the gradient with respect to y.
func (g *graph) kernelGradient(n *pb.NodeProto) (nativeNode, bool) {
	none := nativeNode{}
	if !isOp(n, "Transpose") {
		return none, false
	}
	shape := g.static.Shape(n.Output[0]) // out x in x kernel
	axes := len(shape) - 2
	if axes < 1 || axes > 2 || slices.Min(shape[1:]) < 1 || g.static.Type(n.Output[0]) != onnx.Float {
		return none, false
	}
	space := []int{2, 3}[:axes]
	y, ok := g.transposed(n.Output[0], slices.Concat([]int{0, axes + 1}, []int{1, 2}[:axes])...)
	if !ok {
		return none, false
	}
	if y, ok = g.reshaped(y); !ok {
		return none, false
	}
	if y, ok = g.uncropped(y); !ok {
		return none, false
	}
	c, ok := g.producer(y, "Conv")
	if !ok || len(c.Input) != 2 || onnx.AttrInt(c, "group", 1) != 1 {
		return none, false
	}
	x, ok := g.reshaped(c.Input[0])
	if !ok {
		return none, false
	}
	if x, ok = g.transposed(x, slices.Concat([]int{0}, space, []int{1})...); !ok {
		return none, false
	}
	dy, ok := g.transposed(c.Input[1], slices.Concat([]int{1, 0}, space)...)
	if !ok {
		return none, false
	}
	w, ok := g.unfolded(c, x, shape[1])
	w.kernel = shape[2:]
	return g.native(convKernelGradient, w, dy, shape, x, dy), ok
}

// unfolded returns the window of the convolution whose kernel gradient c computes. The last axis of
// the input of c combines the last axis of x and its channels. Strides and dilations change places
// in a kernel gradient.
func (g *graph) unfolded(c *pb.NodeProto, x string, channels int) (window, bool) {
	shape, folded := g.static.Shape(x), g.static.Shape(c.Input[0])
	axes := len(shape) - 2
	if axes < 1 || len(folded) != len(shape) || shape[1] != channels || folded[0] != 1 || folded[axes+1] != shape[axes+1]*channels {
		return window{}, false
	}
	w := window{strides: onnx.AttrInts(c, "dilations"), dilations: onnx.AttrInts(c, "strides"), pads: onnx.AttrInts(c, "pads")}
	if len(w.strides) != axes || len(w.dilations) != axes || len(w.pads) != 2*axes {
		return window{}, false
	}
	w.strides, w.pads = slices.Clone(w.strides), slices.Clone(w.pads)
	for _, v := range []*int{&w.strides[axes-1], &w.pads[axes-1], &w.pads[2*axes-1]} {
		if *v%channels != 0 || *v < 0 {
			return window{}, false
		}
		*v /= channels
	}
	return w, w.dilations[axes-1] == 1
}
