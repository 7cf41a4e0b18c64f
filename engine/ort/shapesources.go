package ort

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// sameShape has those standard operators of ONNX whose first output has the shape of their first
// input.
var sameShape = func() map[string]bool {
	ops := map[string]bool{}
	for _, op := range strings.Fields(`
		Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Cast Ceil Celu Clip Cos Cosh Dropout Elu Erf Exp Floor Gelu
		HardSigmoid HardSwish Identity InstanceNormalization LayerNormalization LeakyRelu Log LogSoftmax LRN Mish Neg Not
		Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu`) {
		ops[op] = true
	}
	return ops
}()

// shapeSources returns, for tensors of the main graph (not of the bodies of If and Loop), an
// earlier tensor that always has the same shape. Tensors that no node reads are left out: ONNX
// Runtime computes them only if they are outputs of the model.
func shapeSources(m *onnx.Model) map[string]string {
	read := map[string]bool{}
	for _, n := range m.Nodes() {
		for _, name := range onnx.Reads(n) {
			read[name] = true
		}
	}
	sources := map[string]string{}
	for _, n := range m.Nodes() { // in the order of computation
		if n.GetDomain() != "" || !sameShape[n.GetOpType()] || len(n.Input) == 0 || len(n.Output) == 0 || !read[n.Output[0]] {
			continue
		}
		source := n.Input[0]
		if earlier := sources[source]; earlier != "" {
			source = earlier
		}
		sources[n.Output[0]] = source
	}
	return sources
}
