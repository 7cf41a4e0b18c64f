package train

import (
	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// ours puts operators of our own in the place of some of the engine's, which take longer.
func (p *program) ours(b *onnx.Builder) {
	if !p.fused() {
		return
	}
	b.NeedDomain(kernels.Domain, 1)
	normalise(b)
	grad.Convolve(b)
}

// normalise goes over a channel at a time, on all cores, where trainingMode has had the engine normalise by the batch.
func normalise(b *onnx.Builder) {
	static := infer.Analyze(b.Snapshot())
	b.Replace("BatchNormalization", func(n *pb.NodeProto) []onnx.Value {
		if onnx.AttrInt(n, "training_mode", 0) == 0 || onnx.AttrFloat(n, "momentum", 0.9) != 0 || len(n.Output) != 3 || static.Type(n.Input[0]) != onnx.Float {
			return nil
		}
		return b.Node(kernels.Domain, kernels.BatchNormalization, 3, onnx.Attrs{"epsilon": onnx.AttrFloat(n, "epsilon", 1e-5)},
			onnx.Value(n.Input[0]), onnx.Value(n.Input[1]), onnx.Value(n.Input[2]))
	})
}
