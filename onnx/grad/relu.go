package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// relu: dx = dy where y > 0. It reads its output rather than its input, so that a runtime can still fuse it with what
// made the input.
func relu(c *call) {
	c.give(0, func() onnx.Value {
		if c.blocked() {
			return c.Mul(c.dyBeside(c.x(0)), c.blockedMask())
		}
		return c.Mul(c.dyBeside(c.x(0)), c.mask(c.greater(c.y(0), c.num(0))))
	})
}

// block is how many channels ONNX Runtime keeps side by side in feature maps between convolutions; it is 8 on older
// machines.
const block = 16

// blocked reports whether the node's output is likely to be a feature map in blocks of channels: made by a convolution,
// perhaps with a normalisation or a sum after it. Only kernels that are constant have their channels put into blocks; in training
// they are not.
func (c *call) blocked() bool {
	shape := c.shape(c.y(0))
	if len(shape) != 4 || shape[1] <= 0 || shape[1]%block != 0 || c.Opset() < 11 {
		return false
	}
	for v, steps := c.x(0), 0; steps < 4; steps++ {
		maker := c.makers[v]
		switch {
		case maker == nil:
			return steps > 0
		case maker.GetOpType() == "Conv":
			return len(maker.Input) > 1 && c.static.Constant(maker.Input[1])
		case !slices.Contains([]string{"BatchNormalization", "Add", "Sum"}, maker.GetOpType()) || len(maker.Input) == 0:
			return steps > 0
		}
		v = onnx.Value(maker.Input[0])
	}
	return true
}

// blockedMask is 1 where the output is positive and else 0, by operators that ONNX Runtime computes in blocks: clip(y h,
// 0, 1) with a number h so large that no positive float32 in normal range times h is below 1. A comparison would have the
// feature map, and then the gradient, put into the usual order and back, which costs a tenth of a whole step.
func (c *call) blockedMask() onnx.Value {
	const huge = 1e38 // the smallest is 1.2e-38
	channels := c.shape(c.y(0))[1]
	scaled := c.Conv(c.y(0), c.Full(huge, channels, 1, 1, 1), "", onnx.Attrs{"group": channels})
	return c.Clip(scaled, c.Scalar(0), c.Scalar(1))
}
