package train

import (
	"slices"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// narrow is how many channels a convolution gives at least for an operator of our own: fewer leave most of its vectors empty.
const narrow = 4

// ours puts operators of our own in the place of some of the engine's, which take longer.
func (p *program) ours(b *onnx.Builder) {
	if !p.fused() {
		return
	}
	b.NeedDomain(kernels.Domain, 1)
	normalise(b)
	if kernels.Convolves() {
		convolve(b)
	}
}

// normalise goes over a channel at a time, on all cores, where trainingMode has had the engine normalise by the batch.
func normalise(b *onnx.Builder) {
	static := b.Static()
	b.Replace("BatchNormalization", func(n *pb.NodeProto) []onnx.Value {
		if onnx.AttrInt(n, "training_mode", 0) == 0 || onnx.AttrFloat(n, "momentum", 0.9) != 0 || len(n.Output) != 3 || static.Type(n.Input[0]) != onnx.Float {
			return nil
		}
		return b.Node(kernels.Domain, kernels.BatchNormalization, 3, onnx.Attrs{"epsilon": onnx.AttrFloat(n, "epsilon", 1e-5)},
			onnx.Value(n.Input[0]), onnx.Value(n.Input[1]), onnx.Value(n.Input[2]))
	})
}

// convolve does the convolutions with weights that change, for which the engine has nothing prepared.
func convolve(b *onnx.Builder) {
	static := b.Static()
	b.Replace("Conv", func(n *pb.NodeProto) []onnx.Value {
		w := n.Input[1]
		shape := static.Shape(w)
		if len(shape) < 3 || len(shape) > 4 || slices.Min(shape) < 1 || shape[0] < narrow || static.Constant(w) || static.Type(w) != onnx.Float {
			return nil
		}
		if onnx.AttrInt(n, "group", 1) != 1 || onnx.AttrString(n, "auto_pad", "NOTSET") != "NOTSET" {
			return nil
		}
		axes := len(shape) - 2
		list := func(name string, count, otherwise int) []int {
			if v := onnx.AttrInts(n, name); v != nil {
				return v
			}
			return slices.Repeat([]int{otherwise}, count)
		}
		var inputs []onnx.Value
		for _, name := range n.Input {
			inputs = append(inputs, onnx.Value(name))
		}
		return b.Node(kernels.Domain, kernels.Convolution, 1, onnx.Attrs{
			"strides": list("strides", axes, 1), "dilations": list("dilations", axes, 1), "pads": list("pads", 2*axes, 0),
		}, inputs...)
	})
}
