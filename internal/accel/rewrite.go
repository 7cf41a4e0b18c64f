package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// The domain and the names of the native operators.
const (
	domain                    = "noether"
	adam                      = "Adam"
	batchNorm                 = "BatchNormalization"
	batchNormGradient         = "BatchNormalizationGradient"
	conv                      = "Conv"
	convTranspose             = "ConvTranspose"
	convKernelGradient        = "ConvKernelGradient"
	convChannelsLast          = "ConvChannelsLast"
	convTransposeChannelsLast = "ConvTransposeChannelsLast"
	channelsLast              = "ChannelsLast"
	channelsFirst             = "ChannelsFirst"
)

// IsNative reports whether a node is of an operator of this package.
func IsNative(n *pb.NodeProto) bool { return n.GetDomain() == domain }

// Rewrite returns a model that computes what m computes, with native operators. It returns m itself
// if it finds no nodes that a native operator computes faster, if a node lacks inputs or outputs,
// or if Width is 0: then native operators do not run. Sessions of the result run on the CPU only.
func Rewrite(m *onnx.Model) (*onnx.Model, error) {
	if Width() == 0 || !slices.ContainsFunc(m.Nodes(), func(n *pb.NodeProto) bool {
		return isOp(n, "Conv") || isOp(n, "ConvTranspose") || isOp(n, "Sqrt") // Sqrt: of Adam
	}) || slices.ContainsFunc(m.Nodes(), malformed) {
		return m, nil
	}
	b := onnx.Extend(m)
	var outputs []string
	for _, p := range m.Outputs() {
		outputs = append(outputs, p.Name)
	}
	rewritten := rewriteGradients(b)
	rewritten = rewriteAdam(b) || rewritten
	rewritten = rewriteBatchNorm(b, outputs) || rewritten
	grouped := rewriteGroups(b, outputs) // groups of nodes that compute with channels last
	if err := b.Err(); err != nil || !rewritten && !grouped {
		return m, err
	}
	b.NeedDomain(domain, 1)
	r, err := b.Model()
	if err != nil {
		return nil, err
	}
	r = rewrite.Prune(r)
	if !grouped {
		return r, nil
	}
	fuseOutputs(r) // lets native convolutions write NCHW too, with the ReLUs and sums after them
	return rewrite.Prune(r), nil
}

var required = map[string]int{
	"Relu": 1, "HardSigmoid": 1, "Cast": 1, "Transpose": 1, "Sqrt": 1,
	"Conv": 2, "ConvTranspose": 2, "Add": 2, "Sub": 2, "Mul": 2, "Div": 2, "Greater": 2, "Reshape": 2,
	"BatchNormalization": 5,
}

// ONNX Runtime refuses a model with such a node, with an error that names it.
func malformed(n *pb.NodeProto) bool {
	return onnx.IsStandard(n) && (len(n.Input) < required[n.GetOpType()] || len(n.Output) == 0)
}
