package grad

import "github.com/noether-ml/noether/onnx"

// normalized is hat = (x - mean) / sqrt(variance + epsilon), with the mean and the variance over
// some axes, and inverse = 1 / sqrt(variance + epsilon).
func (op *operation) normalized(x onnx.Value, axes []int) (hat, inverse onnx.Value) {
	centered := op.Sub(x, op.ReduceMean(x, true, axes...))
	inverse = op.inverseDeviation(op.ReduceMean(op.square(centered), true, axes...))
	return op.Mul(centered, inverse), inverse
}

// inverseDeviation is 1 / sqrt(variance + epsilon), with the node's epsilon.
func (op *operation) inverseDeviation(variance onnx.Value) onnx.Value {
	return op.Op("Reciprocal", nil, op.Sqrt(op.Add(variance, op.num(op.attrFloat("epsilon", 1e-5)))))
}

// normalizedGradient is dx = inverse (g - mean(g) - hat mean(g hat)) for g = dhat of normalized.
func (op *operation) normalizedGradient(g, hat, inverse onnx.Value, axes []int) onnx.Value {
	along := op.Mul(hat, op.ReduceMean(op.Mul(g, hat), true, axes...))
	return op.Mul(inverse, op.Sub(op.Sub(g, op.ReduceMean(g, true, axes...)), along))
}

// perChannel shapes v, one element per channel, to broadcast to a feature map of that rank.
func (op *operation) perChannel(v onnx.Value, rank int) onnx.Value {
	if rank <= 2 {
		return v
	}
	return op.Unsqueeze(v, upTo(rank - 1)[1:]...)
}

// Y = scale (X - mean) / sqrt(var + epsilon) + B for each channel. With inverse = 1 / sqrt(var +
// epsilon) and sums over all axes but the channels:
//
//	dX = dY scale inverse
//	dscale = sum(dY (X - mean)) inverse
//	dB = sum(dY)
//	dmean = -sum(dY) scale inverse
//	dvar = -1/2 dscale scale inverse^2
func batchNormalization(op *operation) {
	rank := op.rank(op.x(0))
	if op.attr("training_mode", 0) != 0 {
		batchNormalizationTraining(op, rank)
		return
	}
	if op.Opset() < 14 && op.y(1) != "" {
		op.fail("gradients of BatchNormalization in training mode need opset 14 or later")
	}
	dy, scale, mean, variance := op.dy(0), op.x(1), op.x(3), op.x(4)
	inverse := func() onnx.Value { return op.inverseDeviation(variance) }
	dScale := func() onnx.Value { return op.Mul(op.centeredSums(mean, rank), inverse()) }
	// One BatchNormalization, which a runtime can fuse with a convolution.
	op.accumulate(0, func() onnx.Value {
		zero := op.filled(0, scale)
		g := op.Op("BatchNormalization", onnx.Attrs{"epsilon": op.attrFloat("epsilon", 1e-5)}, dy, scale, zero, zero, variance)
		// g stays in ONNX Runtime's blocked layout NCHWc if dy is in it.
		return op.markBlocked(g, dy)
	})
	op.accumulate(1, dScale)
	op.accumulate(2, func() onnx.Value { return op.channelSums(dy, rank) })
	op.accumulate(3, func() onnx.Value { return op.Neg(op.Mul(op.Mul(op.channelSums(dy, rank), scale), inverse())) })
	op.accumulate(4, func() onnx.Value { return op.times(op.Mul(op.Mul(dScale(), scale), op.square(inverse())), -0.5) })
}

// centeredSums is sum(dY (X - mean)) for each channel.
func (op *operation) centeredSums(mean onnx.Value, rank int) onnx.Value {
	return op.channelSums(op.Mul(op.dy(0), op.Sub(op.x(0), op.perChannel(mean, rank))), rank)
}

// elementsPerChannel counts elements of X, in its type: a scalar or a vector of one. It reads the
// shape: the operator Size runs on the CPU, to which all of X would be copied.
func (op *operation) elementsPerChannel() onnx.Value {
	x := op.x(0)
	known, unknown := 1, []onnx.Value(nil)
	for axis, size := range op.shape(x) {
		switch {
		case axis == 1:
		case size >= 0:
			known *= size
		default:
			unknown = append(unknown, op.size(x, axis))
		}
	}
	if len(unknown) == 0 {
		return op.num(float64(known))
	}
	n := unknown[0]
	for _, size := range unknown[1:] {
		n = op.Mul(n, size)
	}
	return op.times(op.Cast(n, op.elementType(x)), float64(known))
}

// batchNormalizationTraining is for mean and variance of the batch. Further outputs are
// running_mean = momentum input_mean + (1 - momentum) mean, and running_var likewise. With n
// elements in a channel,
//
//	dmean/dX = 1 / n, dvar/dX = 2 (X - mean) / n
func batchNormalizationTraining(op *operation, rank int) {
	momentum := op.attrFloat("momentum", 0.9)
	axes := append([]int{0}, spatialAxes(max(rank, 2))...)
	dy, dRunningMean, dRunningVar := op.dy(0), op.dy(1), op.dy(2)
	if momentum == 0 && op.y(1) != "" && op.y(2) != "" && dRunningMean == "" && dRunningVar == "" {
		op.batchNormalizationKnown(op.y(1), op.y(2), rank)
		return
	}
	hat, inverse := op.normalized(op.x(0), axes)
	op.accumulate(0, func() onnx.Value {
		var terms []onnx.Value
		if dy != "" {
			terms = append(terms, op.normalizedGradient(op.Mul(dy, op.perChannel(op.x(1), rank)), hat, inverse, axes))
		}
		weight := op.Div(op.num(1-momentum), op.elementsPerChannel())
		if dRunningMean != "" {
			g := op.perChannel(op.Mul(dRunningMean, weight), rank)
			if rank >= 2 {
				g = op.Unsqueeze(g, 0)
			}
			terms = append(terms, op.expandLike(g, op.x(0)))
		}
		if dRunningVar != "" {
			g := op.perChannel(op.times(op.Mul(dRunningVar, weight), 2), rank)
			terms = append(terms, op.Mul(g, op.Div(hat, inverse)))
		}
		return op.addTerms(terms)
	})
	if dy != "" {
		op.accumulate(1, func() onnx.Value { return op.channelSums(op.Mul(dy, hat), rank) })
		op.accumulate(2, func() onnx.Value { return op.channelSums(dy, rank) })
	}
	if dRunningMean != "" {
		op.accumulate(3, func() onnx.Value { return op.times(dRunningMean, momentum) })
	}
	if dRunningVar != "" {
		op.accumulate(4, func() onnx.Value { return op.times(dRunningVar, momentum) })
	}
}

// batchNormalizationKnown is for further outputs that are the batch's mean and variance (momentum
// 0). With n elements in a channel, inverse = 1 / sqrt(var + epsilon) and S = sum(dY (X - mean)),
//
//	dX = scale inverse (dY - sum(dY) / n - (X - mean) inverse^2 S / n)
//
// Terms after the first are affine in X: one BatchNormalization.
func (op *operation) batchNormalizationKnown(mean, variance onnx.Value, rank int) {
	x, scale, dy := op.x(0), op.x(1), op.dy(0)
	inverse := op.inverseDeviation(variance)
	sum := op.channelSums(dy, rank)
	s := op.centeredSums(mean, rank)
	op.accumulate(0, func() onnx.Value {
		n := op.elementsPerChannel()
		slope := op.Neg(op.Div(op.Mul(op.Mul(scale, op.square(inverse)), s), n))
		shift := op.Neg(op.Div(op.Mul(op.Mul(scale, inverse), sum), n))
		affine := op.Op("BatchNormalization", onnx.Attrs{"epsilon": op.attrFloat("epsilon", 1e-5)}, x, slope, shift, mean, variance)
		return op.Add(op.Mul(dy, op.perChannel(op.Mul(scale, inverse), rank)), affine)
	})
	op.accumulate(1, func() onnx.Value { return op.Mul(s, inverse) })
	op.accumulate(2, func() onnx.Value { return sum })
}

// addTerms is the sum of terms, or empty if there are none.
func (op *operation) addTerms(terms []onnx.Value) onnx.Value {
	var sum onnx.Value
	for _, t := range terms {
		if sum == "" {
			sum = t
		} else {
			sum = op.Add(sum, t)
		}
	}
	return sum
}

// Y = Scale hat + B, with hat normalized over axes from axis on: normalizedGradient of dhat = dY
// Scale; dScale = sum(dY hat), dB = sum(dY). The outputs Mean and InvStdDev, float32, are used
// unless X is float64.
func layerNormalization(op *operation) {
	rank := op.rank(op.x(0))
	if op.dy(1) != "" || op.dy(2) != "" {
		op.fail("gradients through its mean and its inverse deviation are not supported")
	}
	axes := upTo(rank)[op.axisOf(-1, rank):]
	x, dy := op.x(0), op.dy(0)
	var hat, inverse onnx.Value
	if op.elementType(x) == onnx.Double {
		hat, inverse = op.normalized(x, axes)
	} else {
		inverse = op.AddOutput(op.y(0), 2)
		hat = op.Mul(op.Sub(x, op.AddOutput(op.y(0), 1)), inverse)
	}
	op.accumulate(0, func() onnx.Value { return op.normalizedGradient(op.Mul(dy, op.x(1)), hat, inverse, axes) })
	op.accumulate(1, func() onnx.Value { return op.sumTo(op.Mul(dy, hat), op.shape(x), op.x(1)) })
	op.accumulate(2, func() onnx.Value { return op.sumTo(dy, op.shape(x), op.x(2)) })
}

// output = scale hat + B, with hat normalized over space: normalizedGradient of dhat = doutput
// scale; dscale = sum(doutput hat), dB = sum(doutput).
func instanceNormalization(op *operation) {
	rank := op.rank(op.x(0))
	axes, dy := spatialAxes(rank), op.dy(0)
	hat, inverse := op.normalized(op.x(0), axes)
	op.accumulate(0, func() onnx.Value {
		return op.normalizedGradient(op.Mul(dy, op.perChannel(op.x(1), rank)), hat, inverse, axes)
	})
	op.accumulate(1, func() onnx.Value { return op.channelSums(op.Mul(dy, hat), rank) })
	op.accumulate(2, func() onnx.Value { return op.channelSums(dy, rank) })
}

// Y = scale hat + bias, with hat normalized over groups of channels and space. Gradients are
// InstanceNormalization's. scale and bias are per channel since opset 21, per group before.
func groupNormalization(op *operation) {
	rank := op.rank(op.x(0))
	// n x groups x rest.
	grouped := func(v onnx.Value) onnx.Value { return op.Reshape(v, 0, op.attr("num_groups", 1), -1) }
	hat, inverse := op.normalized(grouped(op.x(0)), []int{2})
	dy, perGroup := op.dy(0), op.Opset() < 21
	op.accumulate(0, func() onnx.Value {
		g := grouped(dy)
		if perGroup {
			g = op.Mul(g, op.perChannel(op.x(1), 3))
		} else {
			g = grouped(op.Mul(dy, op.perChannel(op.x(1), rank)))
		}
		return op.reshapeLike(op.normalizedGradient(g, hat, inverse, []int{2}), op.x(0))
	})
	sums := func(g onnx.Value) onnx.Value { // g: n x groups x rest
		if perGroup {
			return op.channelSums(g, 3)
		}
		return op.channelSums(op.reshapeLike(g, op.x(0)), rank)
	}
	op.accumulate(1, func() onnx.Value { return sums(op.Mul(grouped(dy), hat)) })
	op.accumulate(2, func() onnx.Value { return sums(grouped(dy)) })
}

// output = input / norm over an axis: dinput = (doutput - dnorm/dinput sum(doutput output)) / norm.
// dinput is 0 where the norm is 0.
func lpNormalization(op *operation) onnx.Value {
	at := op.axisOf(-1, op.rank(op.x(0)))
	x, y, dy := op.x(0), op.y(0), op.dy(0)
	normSlope, norm := y, onnx.Value("") // the slope is dnorm/dinput
	if op.attr("p", 2) == 1 {
		normSlope, norm = op.sign(x), op.ReduceSum(op.Abs(x), true, at)
	} else {
		norm = op.Sqrt(op.ReduceSum(op.square(x), true, at))
	}
	g := op.Sub(dy, op.Mul(normSlope, op.ReduceSum(op.Mul(dy, y), true, at)))
	return op.zeroUnless(op.greater(norm, op.num(0)), op.Div(g, norm))
}

// Y = X s^-beta with s = bias + alpha / size (sum of X^2 over a window of channels):
//
//	dX = dY s^-beta - (2 alpha beta / size) X (sum of dY Y / s over a window)
//
// The window of this sum is mirrored: it has the channels whose windows contain the channel of X.
func lrn(op *operation) onnx.Value {
	size := op.attr("size", 1)
	// alpha of the formula / size.
	alpha, beta := op.attrFloat("alpha", 1e-4)/float64(size), op.attrFloat("beta", 0.75)
	below, above := (size-1)/2, size/2
	x, y, dy := op.x(0), op.y(0), op.dy(0)
	s := op.Add(op.times(op.channelWindowSums(op.square(x), below, above), alpha), op.num(op.attrFloat("bias", 1)))
	sums := op.channelWindowSums(op.Div(op.Mul(dy, y), s), above, below)
	return op.Sub(op.Mul(dy, op.Pow(s, op.num(-beta))), op.Mul(op.times(x, 2*alpha*beta), sums))
}

// channelWindowSums is, for each channel c of v, the sum over the channels c - below to c + above.
func (op *operation) channelWindowSums(v onnx.Value, below, above int) onnx.Value {
	plane := op.Reshape(op.Unsqueeze(v, 1), 0, 0, 0, -1) // n x 1 x c x space
	ones := op.Full(1, 1, 1, below+above+1, 1)
	return op.reshapeLike(op.Conv(plane, ones, "", onnx.Attrs{"pads": []int{below, 0, above, 0}}), op.x(0))
}
