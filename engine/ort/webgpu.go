package ort

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// forWebGPU returns a model that computes what m computes, without nodes that ONNX Runtime's WebGPU
// execution provider accepts and then fails to run. MaxPool that also returns the positions of the
// largest elements must run on the CPU: onCPU has the names of these nodes. Gradients of MaxPool
// are replaced where sizes are known. So is LogSoftmax. Convolutions whose padding it would ignore
// are in onCPU too. If m has no nodes of these kinds, forWebGPU returns m itself.
func forWebGPU(m *onnx.Model) (prepared *onnx.Model, onCPU []string, err error) {
	if !slices.ContainsFunc(m.Nodes(), func(n *pb.NodeProto) bool {
		return normalisesBatch(n) || poolsPositions(n) || isLogSoftmax(n, m) || mayPadAtEnd(n)
	}) {
		return m, nil, nil
	}
	static := infer.Analyze(m)
	gradients, dropped := maxPoolGradients(m, static)
	b := onnx.Extend(m)
	copyForCPU := func(n *pb.NodeProto) []onnx.Value {
		inputs := make([]onnx.Value, len(n.Input))
		for i, name := range n.Input {
			inputs[i] = onnx.Value(name)
		}
		outputs := b.Node("", n.GetOpType(), len(n.Output), onnx.AttrsOf(n), inputs...)
		onCPU = append(onCPU, b.Nodes()[len(b.Nodes())-1].GetName()) // the builder's nodes have unique names
		return outputs
	}
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if len(n.Output) == 0 {
			return nil
		}
		if g := gradients[n.Output[0]]; g != nil {
			return []onnx.Value{g.write(b)}
		}
		switch {
		case dropped[n.Output[0]]: // reshaped positions, which nothing reads
			return []onnx.Value{b.Ints(0)}
		case poolsPositions(n) && dropped[n.Output[1]]:
			return []onnx.Value{b.Op("MaxPool", onnx.AttrsOf(n), onnx.Value(n.Input[0])), b.Ints(0)}
		case isLogSoftmax(n, m):
			return []onnx.Value{logSoftmax(b, onnx.Value(n.Input[0]), onnx.AttrInt(n, "axis", -1))}
		case normalisesBatch(n) && len(static.Shape(n.Input[0])) >= 2:
			return normaliseBatch(b, n, len(static.Shape(n.Input[0])))[:len(n.Output)]
		case poolsPositions(n), ignoresPadding(n, static):
			return copyForCPU(n)
		}
		return nil
	})
	if prepared, err = b.Model(); err != nil {
		return nil, nil, err
	}
	// Leave out nodes that nothing reads, unless inputs would go with them.
	needed, err := rewrite.WithOutputs(prepared, names(m.Outputs()))
	if err == nil && len(needed.Inputs()) == len(prepared.Inputs()) {
		prepared = needed
	}
	return prepared, onCPU, err
}

func poolsPositions(n *pb.NodeProto) bool {
	return n.GetOpType() == "MaxPool" && n.GetDomain() == "" && len(n.Output) > 1 && n.Output[1] != ""
}

func mayPadAtEnd(n *pb.NodeProto) bool {
	if n.GetOpType() != "Conv" || n.GetDomain() != "" || len(n.Input) < 2 || onnx.AttrInt(n, "group", 1) != 1 {
		return false
	}
	pads := onnx.AttrInts(n, "pads")
	axes := len(pads) / 2
	positive := func(pad int) bool { return pad > 0 }
	return onnx.AttrString(n, "auto_pad", "NOTSET") == "SAME_UPPER" || slices.ContainsFunc(pads[axes:], positive) && !slices.ContainsFunc(pads[:axes], positive)
}

// ignoresPadding reports whether WebGPU ignores the padding of a convolution: it computes those
// with kernels of one element, or of the size of the input, as a matrix product if there is no
// padding before the input, even if there is some after it.
func ignoresPadding(n *pb.NodeProto, static *infer.Info) bool {
	if !mayPadAtEnd(n) {
		return false
	}
	x, w := static.Shape(n.Input[0]), static.Shape(n.Input[1])
	if len(w) < 3 || len(x) != len(w) {
		return true // unknown
	}
	single := slices.Max(w[2:]) == 1
	// Unknown sizes may be those of the kernel.
	whole := slices.EqualFunc(x[2:], w[2:], func(size, kernel int) bool { return size == kernel || size < 1 })
	if onnx.AttrString(n, "auto_pad", "NOTSET") == "SAME_UPPER" {
		return whole && slices.Contains(w[2:], 2) // a single element has no padding
	}
	return single || whole
}

func isLogSoftmax(n *pb.NodeProto, m *onnx.Model) bool {
	return n.GetOpType() == "LogSoftmax" && n.GetDomain() == "" && m.Opset() >= 13
}

// logSoftmax adds log softmax(x) = x - max x - log(sum of exp(x - max x)) along an axis.
func logSoftmax(b *onnx.Builder, x onnx.Value, axis int) onnx.Value {
	shifted := b.Sub(x, b.ReduceMax(x, true, axis))
	return b.Sub(shifted, b.Log(b.ReduceSum(b.Exp(shifted), true, axis)))
}

func normalisesBatch(n *pb.NodeProto) bool {
	return n.GetOpType() == "BatchNormalization" && n.GetDomain() == "" && onnx.AttrInt(n, "training_mode", 0) != 0
}

// normaliseBatch adds what BatchNormalization computes in training mode, for x of n x c x ... with
// the given number of axes: y = scale * (x - mean) / sqrt(variance + epsilon) + bias, with the mean
// and the variance of each channel over the batch, and the new running mean and variance. y is
// BatchNormalization with fixed statistics, one pass over x.
func normaliseBatch(b *onnx.Builder, n *pb.NodeProto, axes int) []onnx.Value {
	x := onnx.Value(n.Input[0])
	reduced := []int{0}
	for a := 2; a < axes; a++ {
		reduced = append(reduced, a)
	}
	mean := b.ReduceMean(x, true, reduced...)
	centred := b.Sub(x, mean)
	variance := b.Reshape(b.ReduceMean(b.Mul(centred, centred), true, reduced...), -1)
	mean = b.Reshape(mean, -1)
	y := b.Op("BatchNormalization", onnx.Attrs{"epsilon": onnx.AttrFloat(n, "epsilon", 1e-5)}, x, onnx.Value(n.Input[1]), onnx.Value(n.Input[2]), mean, variance)
	momentum := onnx.AttrFloat(n, "momentum", 0.9)
	running := func(old string, batch onnx.Value) onnx.Value {
		if momentum == 0 {
			return b.Identity(batch)
		}
		return b.Add(b.Mul(onnx.Value(old), b.Scalar(momentum)), b.Mul(batch, b.Scalar(1-momentum)))
	}
	return []onnx.Value{y, running(n.Input[3], mean), running(n.Input[4], variance)}
}
