package ort

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A maxPoolGradient is the part of a graph, as package grad writes it, that computes the gradient
// dX of Y = MaxPool(X): the elements of dY are added to zeros at the positions of the largest
// elements, the second output of MaxPool. WebGPU would run that MaxPool on the CPU. Therefore
// forWebGPU replaces the part by operators that need no positions.
type maxPoolGradient struct {
	x, y, dy onnx.Value
	axes     []poolAxis // the spatial axes
	n        int        // number of axes before these
}

// A poolAxis tells how the windows of a pool lie along one axis. Tap t of window o is the position
// o stride + t dilation - before of the input.
type poolAxis struct {
	in, out                        int // sizes of the input and of the output
	taps, stride, dilation, before int
}

// length returns the length of the axis from the first tap to the last.
func (a poolAxis) length() int { return (a.out-1)*a.stride + (a.taps-1)*a.dilation + 1 }

// phaseLength returns the number of positions p < end for which p mod stride is the same, for an
// end that includes the windows and the input.
func (a poolAxis) phaseLength() int {
	end := max(a.length(), a.before+a.in)
	return (end + a.stride - 1) / a.stride
}

// maxTaps is the largest number of taps of a window for which a gradient is replaced. The number
// of nodes grows with it.
const maxTaps = 25

// maxPoolGradients returns the gradients that can be replaced, by the output of their
// ScatterElements. dropped has the outputs of nodes that are not needed then.
func maxPoolGradients(m *onnx.Model, static *infer.Info) (gradients map[string]*maxPoolGradient, dropped map[string]bool) {
	nodes := m.Nodes()
	users, producers := map[string][]*pb.NodeProto{}, map[string]*pb.NodeProto{}
	for _, n := range nodes {
		for _, name := range n.Input {
			users[name] = append(users[name], n)
		}
		for _, name := range n.Output {
			producers[name] = n
		}
	}
	gradients, dropped = map[string]*maxPoolGradient{}, map[string]bool{}
	for _, pool := range nodes {
		if !poolsPositions(pool) {
			continue
		}
		positions := pool.Output[1]
		all := map[string]*maxPoolGradient{}
		isOutput := func(name string) bool {
			return slices.ContainsFunc(m.Outputs(), func(o onnx.ValueInfo) bool { return o.Name == name })
		}
		ok := len(users[positions]) > 0 && !isOutput(positions)
		for _, reshape := range users[positions] {
			ok = ok && reshape.GetOpType() == "Reshape" && !isOutput(reshape.Output[0])
			for _, scatter := range users[reshape.GetOutput()[0]] {
				g := maxPoolGradientOf(pool, reshape, scatter, producers, static)
				ok = ok && g != nil
				all[scatter.GetOutput()[0]] = g
			}
		}
		if !ok {
			continue
		}
		dropped[positions] = true
		for _, reshape := range users[positions] {
			dropped[reshape.Output[0]] = true
		}
		for name, g := range all {
			gradients[name] = g
		}
	}
	return gradients, dropped
}

// maxPoolGradientOf returns the gradient that ends with the node scatter, or nil if that is none or
// sizes are unknown.
func maxPoolGradientOf(pool, reshape, scatter *pb.NodeProto, producers map[string]*pb.NodeProto, static *infer.Info) *maxPoolGradient {
	if scatter.GetOpType() != "ScatterElements" || onnx.AttrString(scatter, "reduction", "none") != "add" || onnx.AttrInt(scatter, "axis", 0) != 0 ||
		scatter.Input[1] != reshape.Output[0] || onnx.AttrInt(pool, "storage_order", 0) != 0 || static.Type(pool.Input[0]) != onnx.Float {
		return nil
	}
	flat, updates := producers[scatter.Input[0]], producers[scatter.Input[2]]
	if flat.GetOpType() != "Reshape" || updates.GetOpType() != "Reshape" || len(static.Shape(scatter.Input[1])) != 1 || !isZero(flat.Input[0], producers, static) {
		return nil
	}
	g := &maxPoolGradient{x: onnx.Value(pool.Input[0]), y: onnx.Value(pool.Output[0]), dy: onnx.Value(updates.Input[0])}
	kernel := onnx.AttrInts(pool, "kernel_shape")
	in, out := static.Shape(string(g.x)), static.Shape(string(g.y))
	g.n = len(in) - len(kernel)
	if g.n != 2 || len(out) != len(in) || len(static.Shape(string(g.dy))) != len(in) || tensor.Size(kernel) > maxTaps {
		return nil
	}
	strides, dilations, pads := onnx.AttrInts(pool, "strides"), onnx.AttrInts(pool, "dilations"), onnx.AttrInts(pool, "pads")
	auto := onnx.AttrString(pool, "auto_pad", "NOTSET")
	for i, taps := range kernel {
		a := poolAxis{in: in[g.n+i], out: out[g.n+i], taps: taps, stride: 1, dilation: 1}
		if strides != nil {
			a.stride = strides[i]
		}
		if dilations != nil {
			a.dilation = dilations[i]
		}
		if a.in < 1 || a.out < 1 {
			return nil
		}
		switch total := max(a.length()-a.in, 0); {
		case auto == "SAME_UPPER":
			a.before = total / 2
		case auto == "SAME_LOWER":
			a.before = total - total/2
		case auto != "VALID" && pads != nil:
			a.before = pads[i]
		}
		g.axes = append(g.axes, a)
	}
	return g
}

func isZero(name string, producers map[string]*pb.NodeProto, static *infer.Info) bool {
	if p := producers[name]; p.GetOpType() == "Expand" {
		name = p.Input[0]
	}
	v, ok := static.Values(name)
	return ok && len(v) > 0 && !slices.ContainsFunc(v, func(x float64) bool { return x != 0 })
}

// write adds the nodes that compute dX, and returns it flattened.
//
// For each tap in row-major order, the elements of X under that tap of all windows are a strided
// slice of X, of the shape of Y. Where they equal Y, they get dY, unless an earlier tap has got it.
// Placing these terms back is the reverse of the slice. Positions with the same remainders modulo
// the strides are a tensor of their own, in which the terms of a tap are a contiguous part: they
// are padded with zeros and added. At the end these tensors are interleaved.
func (g *maxPoolGradient) write(b *onnx.Builder) onnx.Value {
	x, zero := g.padded(b), b.Scalar(0)
	remaining := g.dy // what no tap has got
	sums := map[string]onnx.Value{}
	taps := g.taps()
	for i, tap := range taps {
		equal := b.Op("Equal", nil, g.under(b, x, tap), g.y)
		term := b.Where(equal, remaining, zero)
		if i < len(taps)-1 {
			remaining = b.Where(equal, zero, remaining)
		}
		remainders, before, after := g.place(tap)
		if slices.Max(before) > 0 || slices.Max(after) > 0 {
			none := make([]int, g.n)
			term = b.Op("Pad", nil, term, b.Ints(slices.Concat(none, before, none, after)...))
		}
		key := key(remainders)
		if sums[key] != "" {
			term = b.Add(sums[key], term)
		}
		sums[key] = term
	}
	dx := g.interleaved(b, sums, nil)
	for i, a := range g.axes {
		if a.phaseLength()*a.stride != a.in {
			dx = b.Slice(dx, g.n+i, a.before, a.before+a.in, 1)
		}
	}
	return b.Reshape(dx, -1)
}

// padded returns X with as much padding as the windows read. The padding is the lowest number, and
// equals no maximum.
func (g *maxPoolGradient) padded(b *onnx.Builder) onnx.Value {
	pads, rank := make([]int, 2*(g.n+len(g.axes))), g.n+len(g.axes)
	for i, a := range g.axes {
		pads[g.n+i], pads[rank+g.n+i] = a.before, max(a.length()-a.before-a.in, 0)
	}
	if slices.Max(pads) == 0 {
		return g.x
	}
	return b.Op("Pad", nil, g.x, b.Ints(pads...), b.Scalar(-3.4028234e38))
}

// under returns the elements of the padded x under a tap of each window.
func (g *maxPoolGradient) under(b *onnx.Builder, x onnx.Value, tap []int) onnx.Value {
	var starts, ends, axes, steps []int
	for i, a := range g.axes {
		start := tap[i] * a.dilation
		starts, ends = append(starts, start), append(ends, start+(a.out-1)*a.stride+1)
		axes, steps = append(axes, g.n+i), append(steps, a.stride)
	}
	return b.Op("Slice", nil, x, b.Ints(starts...), b.Ints(ends...), b.Ints(axes...), b.Ints(steps...))
}

// place returns the remainders modulo the strides of a tap's positions, and the numbers of
// positions with these remainders before and after its terms.
func (g *maxPoolGradient) place(tap []int) (remainders, before, after []int) {
	for i, a := range g.axes {
		start := tap[i] * a.dilation
		remainders = append(remainders, start%a.stride)
		before = append(before, start/a.stride)
		after = append(after, a.phaseLength()-start/a.stride-a.out)
	}
	return remainders, before, after
}

// interleaved returns the tensor of all positions with the given first remainders, from the sums
// for each list of remainders; missing sums are zeros.
func (g *maxPoolGradient) interleaved(b *onnx.Builder, sums map[string]onnx.Value, remainders []int) onnx.Value {
	i := len(remainders)
	if i == len(g.axes) {
		if v := sums[key(remainders)]; v != "" {
			return v
		}
		first := slices.Min(slices.Collect(maps.Keys(sums)))
		return b.Expand(b.Scalar(0), b.Shape(sums[first])) // all sums have the same shape
	}
	var parts []onnx.Value
	for r := range g.axes[i].stride {
		parts = append(parts, g.interleaved(b, sums, append(slices.Clone(remainders), r)))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	// Axes 0 to i of the spatial axes are those of the sums; the later axes are interleaved already.
	shape := []int{0, 0} // the same sizes
	for _, a := range g.axes[:i+1] {
		shape = append(shape, a.phaseLength())
	}
	rest := 1
	for _, a := range g.axes[i+1:] {
		rest *= a.phaseLength() * a.stride
	}
	for k := range parts {
		parts[k] = b.Reshape(parts[k], append(slices.Clone(shape), rest)...)
	}
	joined := b.Concat(g.n+i+1, parts...) // the rows of equal index follow one another
	shape[g.n+i] *= g.axes[i].stride
	for _, a := range g.axes[i+1:] {
		shape = append(shape, a.phaseLength()*a.stride)
	}
	return b.Reshape(joined, shape...)
}

func (g *maxPoolGradient) taps() [][]int {
	list := [][]int{nil}
	for _, a := range g.axes {
		var longer [][]int
		for _, tap := range list {
			for t := range a.taps {
				longer = append(longer, append(slices.Clone(tap), t))
			}
		}
		list = longer
	}
	return list
}

func key(list []int) string { return fmt.Sprint(list) }
