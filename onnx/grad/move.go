package grad

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// transposed = data with permuted axes: ddata has the inverse permutation.
func transpose(op *operation) onnx.Value {
	perm := op.attrInts("perm")
	if perm == nil { // the default reverses all axes
		return op.Op("Transpose", nil, op.dy(0))
	}
	return op.Transpose(op.dy(0), inverse(perm)...)
}

func inverse(perm []int) []int {
	result := make([]int, len(perm))
	for i, p := range perm {
		result[p] = i
	}
	return result
}

// output = inputs joined along an axis: the gradient of each input is its slice.
func concat(op *operation) {
	at := op.axisOf(1, op.rank(op.x(0)))
	first := 0
	if output, n := op.concatOfPrefix(); n > 0 {
		op.tape.add(output, op.slicesOfInputs(0, n, at))
		first = n
	}
	for i := first; i < len(op.node.Input); i++ {
		op.accumulate(i, func() onnx.Value { return op.slicesOfInputs(i, i+1, at) })
	}
}

// concatOfPrefix finds an earlier Concat of the first n inputs, which gets their gradient in one
// piece; otherwise every layer of a DenseNet is sliced out of every later Concat. "": none.
func (op *operation) concatOfPrefix() (output onnx.Value, n int) {
	for n := len(op.node.Input) - 1; n > 1; n-- {
		if i, ok := op.concats[concatKey(op.node, n)]; ok && i < op.index {
			output := onnx.Value(op.nodes[i].Output[0])
			// The gradient of a target is a result, so it must be that of its real readers alone.
			if op.active[output] && !op.targets[output] {
				return output, n
			}
		}
	}
	return "", 0
}

func concatKey(node *pb.NodeProto, n int) string {
	return fmt.Sprintf("%d %q", onnx.AttrInt(node, "axis", 1), node.Input[:n])
}

func concatsOf(nodes []*pb.NodeProto) map[string]int {
	concats := map[string]int{}
	for i, n := range slices.Backward(nodes) {
		if n.GetOpType() == "Concat" && len(n.Output) == 1 {
			concats[concatKey(n, len(n.Input))] = i
		}
	}
	return concats
}

// slicesOfInputs is dy's slice of inputs i to end-1 of a Concat along at.
func (op *operation) slicesOfInputs(i, end, at int) onnx.Value {
	if len(op.node.Input) == 1 {
		return op.dy(0)
	}
	sizes, known := make([]int, end), true
	for k := range end {
		sizes[k] = -1
		if s := op.shape(op.x(k)); len(s) > at {
			sizes[k] = s[at]
		}
		known = known && sizes[k] >= 0
	}
	if known {
		start := total(sizes[:i])
		return op.Slice(op.dy(0), at, start, start+total(sizes[i:]), 1)
	}
	if op.Opset() < 10 {
		op.fail("before opset 10, the sizes that it joins must be fixed")
	}
	ends := []onnx.Value{op.Ints(0)}
	for k := range end {
		ends = append(ends, op.Add(ends[k], op.size(op.x(k), at)))
	}
	return op.Op("Slice", nil, op.dy(0), ends[i], ends[end], op.Ints(at))
}

func total(list []int) int {
	sum := 0
	for _, v := range list {
		sum += v
	}
	return sum
}

// output = pieces along an axis: dinput joins their gradients, zero for unread ones.
func split(op *operation) onnx.Value {
	at := op.axisOf(0, op.rank(op.x(0)))
	parts := make([]onnx.Value, len(op.node.Output))
	for i := range parts {
		if parts[i] = op.dy(i); parts[i] != "" {
			continue
		}
		if op.y(i) == "" {
			op.fail("output %d has no name: name it", i)
		}
		parts[i] = op.filled(0, op.y(i))
	}
	return op.Concat(at, parts...)
}

// output = input broadcast to a shape: dinput sums over the expanded axes.
func expand(op *operation) onnx.Value {
	to, ok := op.info.Ints(string(op.x(1)))
	if !ok {
		s := op.shape(op.x(1))
		if len(s) != 1 || s[0] < 0 {
			return op.sumTo(op.dy(0), nil, op.x(0))
		}
		to = slices.Repeat([]int{-1}, s[0])
	}
	return op.sumTo(op.dy(0), broadcastShape(op.shape(op.x(0)), to), op.x(0))
}

// output = copies along each axis: dinput sums r x n, for n elements r times.
func tile(op *operation) onnx.Value {
	rank := op.rank(op.x(0))
	if rank == 0 {
		return op.dy(0)
	}
	sizes := op.Unsqueeze(op.shapeOf(op.x(0)), 1)
	split := op.Reshape(op.Concat(1, op.Unsqueeze(op.x(1), 1), sizes), -1)
	if repeats, ok := op.info.Ints(string(op.x(1))); ok && isFixed(op.shape(op.x(0))) {
		split = op.Ints(interleave(repeats, op.shape(op.x(0)))...)
	}
	return op.ReduceSum(op.ReshapeTo(op.dy(0), split), false, evenUpTo(rank)...)
}

func interleave(a, b []int) []int {
	var list []int
	for i := range a {
		list = append(list, a[i], b[i])
	}
	return list
}

// output = DepthToSpace(input): dinput = SpaceToDepth(doutput), which orders channels as DCR: by
// position, then channel. For CRD they are exchanged.
func depthToSpace(op *operation) onnx.Value {
	block := op.attr("blocksize", 1)
	g := op.Op("SpaceToDepth", onnx.Attrs{"blocksize": block}, op.dy(0))
	if op.attrString("mode", "DCR") != "CRD" {
		return g
	}
	channels := op.Div(op.size(op.x(0), 1), op.Ints(block*block))
	split := op.Concat(0, op.Ints(0, block*block), channels, op.Ints(-1))
	if s := op.shape(op.x(0)); len(s) == 4 && s[1] >= 0 {
		split = op.Ints(0, block*block, s[1]/(block*block), -1)
	}
	return op.reshapeLike(op.Transpose(op.ReshapeTo(g, split), 0, 2, 1, 3), op.x(0))
}

// output = SpaceToDepth(input): dinput = DepthToSpace(doutput)
func spaceToDepth(op *operation) onnx.Value {
	return op.Op("DepthToSpace", onnx.Attrs{"blocksize": op.attr("blocksize", 1)}, op.dy(0))
}

// y = cumulative sum of x: dx is the cumulative sum of dy from the other end.
func cumSum(op *operation) onnx.Value {
	attrs := onnx.Attrs{"exclusive": op.attr("exclusive", 0), "reverse": 1 - op.attr("reverse", 0)}
	return op.Op("CumSum", attrs, op.dy(0), op.x(1))
}

// output = a triangle of input: dinput is the same triangle of doutput.
func trilu(op *operation) onnx.Value {
	inputs := []onnx.Value{op.dy(0)}
	for i := range op.node.Input[1:] {
		inputs = append(inputs, op.x(1+i))
	}
	return op.Op("Trilu", onnx.Attrs{"upper": op.attr("upper", 1)}, inputs...)
}
