package grad

import "github.com/noether-ml/noether/onnx"

// standardised is x less its mean and divided by its deviation over some axes, and the inverse of
// that deviation.
func (c *vjp) standardised(x onnx.Value, axes []int) (hat, inverse onnx.Value) {
	centred := c.Sub(x, c.ReduceMean(x, true, axes...))
	inverse = c.inverseDeviation(c.ReduceMean(c.square(centred), true, axes...))
	return c.Mul(centred, inverse), inverse
}

// inverseDeviation is 1 / sqrt(variance + epsilon), with the node's epsilon.
func (c *vjp) inverseDeviation(variance onnx.Value) onnx.Value {
	return c.Op("Reciprocal", nil, c.Sqrt(c.Add(variance, c.num(c.attrFloat("epsilon", 1e-5)))))
}

// standardisedInput is the gradient by what was standardised over some axes, given g, that by the
// result: (g - mean(g) - hat mean(g hat)) / deviation.
func (c *vjp) standardisedInput(g, hat, inverse onnx.Value, axes []int) onnx.Value {
	along := c.Mul(hat, c.ReduceMean(c.Mul(g, hat), true, axes...))
	return c.Mul(inverse, c.Sub(c.Sub(g, c.ReduceMean(g, true, axes...)), along))
}

// perChannel gives a vector of one number for each channel the rank of a feature map.
func (c *vjp) perChannel(v onnx.Value, rank int) onnx.Value {
	if rank <= 2 {
		return v
	}
	return c.Unsqueeze(v, upTo(rank - 1)[1:]...)
}

// batchNormalization: y = scale (x - mean) / sqrt(variance + epsilon) + bias, channel by channel.
func batchNormalization(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	if c.attr("training_mode", 0) != 0 {
		batchNormalizationTraining(c, rank)
		return
	}
	if c.Opset() < 14 && c.y(1) != "" {
		c.fail("gradients of BatchNormalization in training mode need opset 14 or later")
		return
	}
	dy, scale, mean, variance := c.dy(0), c.x(1), c.x(3), c.x(4)
	inverse := func() onnx.Value { return c.inverseDeviation(variance) }
	scaleSum := func() onnx.Value { // sum of dy (x - mean) / deviation
		return c.Mul(c.channelSums(c.Mul(dy, c.Sub(c.x(0), c.perChannel(mean, rank))), rank), inverse())
	}
	c.accumulate(0, func() onnx.Value { // the same node without its shifts, which a runtime folds into a convolution
		zero := c.filled(0, scale)
		g := c.Op("BatchNormalization", onnx.Attrs{"epsilon": c.attrFloat("epsilon", 1e-5)}, dy, scale, zero, zero, variance)
		return c.inBlocks(g, dy)
	})
	c.accumulate(1, scaleSum)
	c.accumulate(2, func() onnx.Value { return c.channelSums(dy, rank) })
	c.accumulate(3, func() onnx.Value { return c.Neg(c.Mul(c.Mul(c.channelSums(dy, rank), scale), inverse())) })
	c.accumulate(4, func() onnx.Value { // -1/2 scale sum / (variance + epsilon)
		return c.times(c.Mul(c.Mul(scaleSum(), scale), c.square(inverse())), -0.5)
	})
}

// batchNormalizationTraining: mean and variance are those of the batch, and two more outputs are
// running = momentum given + (1 - momentum) batch.
func batchNormalizationTraining(c *vjp, rank int) {
	momentum := c.attrFloat("momentum", 0.9)
	axes := append([]int{0}, upTo(max(rank, 2))[2:]...)
	dy, runningMean, runningVariance := c.dy(0), c.dy(1), c.dy(2)
	if momentum == 0 && c.y(1) != "" && c.y(2) != "" && runningMean == "" && runningVariance == "" {
		c.batchNormalizationGiven(c.y(1), c.y(2), rank)
		return
	}
	hat, inverse := c.standardised(c.x(0), axes)
	c.accumulate(0, func() onnx.Value {
		var terms []onnx.Value
		if dy != "" {
			terms = append(terms, c.standardisedInput(c.Mul(dy, c.perChannel(c.x(1), rank)), hat, inverse, axes))
		}
		count := c.Cast(c.Div(c.Op("Size", nil, c.x(0)), c.Op("Size", nil, c.x(1))), c.info.Type(string(c.x(0))))
		share := c.Div(c.num(1-momentum), count)
		if runningMean != "" {
			g := c.perChannel(c.Mul(runningMean, share), rank)
			terms = append(terms, c.expandLike(c.leading(g, rank), c.x(0)))
		}
		if runningVariance != "" { // d variance / dx = 2 (x - mean) / count
			g := c.perChannel(c.times(c.Mul(runningVariance, share), 2), rank)
			terms = append(terms, c.Mul(g, c.Div(hat, inverse)))
		}
		return c.total(terms)
	})
	if dy != "" {
		c.accumulate(1, func() onnx.Value { return c.channelSums(c.Mul(dy, hat), rank) })
		c.accumulate(2, func() onnx.Value { return c.channelSums(dy, rank) })
	}
	if runningMean != "" {
		c.accumulate(3, func() onnx.Value { return c.times(runningMean, momentum) })
	}
	if runningVariance != "" {
		c.accumulate(4, func() onnx.Value { return c.times(runningVariance, momentum) })
	}
}

// batchNormalizationGiven is the gradient where the node has told mean and variance of the batch,
// as it does with a momentum of 0. With n values in a channel, inverse = 1 / sqrt(variance +
// epsilon) and S = sum of dy (x - mean),
//
//	dx = scale inverse (dy - sum(dy) / n - (x - mean) inverse^2 S / n)
//
// of which all but the first term is one affine function of x, and so a node of this kind.
func (c *vjp) batchNormalizationGiven(mean, variance onnx.Value, rank int) {
	x, scale, dy := c.x(0), c.x(1), c.dy(0)
	inverse := c.inverseDeviation(variance)
	sum := c.channelSums(dy, rank)
	along := c.channelSums(c.Mul(dy, c.Sub(x, c.perChannel(mean, rank))), rank)
	c.accumulate(0, func() onnx.Value {
		n := c.Cast(c.Div(c.Op("Size", nil, x), c.Op("Size", nil, scale)), c.info.Type(string(x)))
		slope := c.Neg(c.Div(c.Mul(c.Mul(scale, c.square(inverse)), along), n))
		shift := c.Neg(c.Div(c.Mul(c.Mul(scale, inverse), sum), n))
		rest := c.Op("BatchNormalization", onnx.Attrs{"epsilon": c.attrFloat("epsilon", 1e-5)}, x, slope, shift, mean, variance)
		return c.Add(c.Mul(dy, c.perChannel(c.Mul(scale, inverse), rank)), rest)
	})
	c.accumulate(1, func() onnx.Value { return c.Mul(along, inverse) })
	c.accumulate(2, func() onnx.Value { return sum })
}

// leading gives a vector per channel, already with the axes after it, the axis of the batch.
func (c *vjp) leading(g onnx.Value, rank int) onnx.Value {
	if rank < 2 {
		return g
	}
	return c.Unsqueeze(g, 0)
}

// total adds terms up; there may be none.
func (c *vjp) total(terms []onnx.Value) onnx.Value {
	var sum onnx.Value
	for _, t := range terms {
		if sum == "" {
			sum = t
		} else {
			sum = c.Add(sum, t)
		}
	}
	return sum
}

// layerNormalization: y = scale hat + bias, with x standardised over the axes from one on. The
// operator's two further outputs are the mean and the inverse deviation, so neither is computed
// again; but these are float32 even of float64.
func layerNormalization(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	if c.dy(1) != "" || c.dy(2) != "" {
		c.fail("gradients through its mean and its inverse deviation are not supported")
		return
	}
	axes := upTo(rank)[axis(c.attr("axis", -1), rank):]
	x, dy := c.x(0), c.dy(0)
	var hat, inverse onnx.Value
	if c.info.Type(string(x)) == onnx.Double {
		hat, inverse = c.standardised(x, axes)
	} else {
		inverse = c.AddOutput(c.y(0), 2)
		hat = c.Mul(c.Sub(x, c.AddOutput(c.y(0), 1)), inverse)
	}
	c.accumulate(0, func() onnx.Value { return c.standardisedInput(c.Mul(dy, c.x(1)), hat, inverse, axes) })
	c.accumulate(1, func() onnx.Value { return c.sumTo(c.Mul(dy, hat), c.shape(x), c.x(1)) })
	c.accumulate(2, func() onnx.Value { return c.sumTo(dy, c.shape(x), c.x(2)) })
}

// instanceNormalization: y = scale hat + bias, with x standardised over space.
func instanceNormalization(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	axes, dy := upTo(rank)[2:], c.dy(0)
	hat, inverse := c.standardised(c.x(0), axes)
	c.accumulate(0, func() onnx.Value {
		return c.standardisedInput(c.Mul(dy, c.perChannel(c.x(1), rank)), hat, inverse, axes)
	})
	c.accumulate(1, func() onnx.Value { return c.channelSums(c.Mul(dy, hat), rank) })
	c.accumulate(2, func() onnx.Value { return c.channelSums(dy, rank) })
}

// groupNormalization: y = scale hat + bias, with x standardised over the channels of each group and
// space. Scale and bias are per channel since opset 21, and were per group before.
func groupNormalization(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	grouped := func(v onnx.Value) onnx.Value { return c.Reshape(v, 0, c.attr("num_groups", 1), -1) } // n x groups x rest
	hat, inverse := c.standardised(grouped(c.x(0)), []int{2})
	dy, perGroup := c.dy(0), c.Opset() < 21
	c.accumulate(0, func() onnx.Value {
		g := grouped(dy)
		if perGroup {
			g = c.Mul(g, c.perChannel(c.x(1), 3))
		} else {
			g = grouped(c.Mul(dy, c.perChannel(c.x(1), rank)))
		}
		return c.reshapeLike(c.standardisedInput(g, hat, inverse, []int{2}), c.x(0))
	})
	sums := func(g onnx.Value) onnx.Value { // g: n x groups x rest
		if perGroup {
			return c.channelSums(g, 3)
		}
		return c.channelSums(c.reshapeLike(g, c.x(0)), rank)
	}
	c.accumulate(1, func() onnx.Value { return sums(c.Mul(grouped(dy), hat)) })
	c.accumulate(2, func() onnx.Value { return sums(grouped(dy)) })
}

// lpNormalization: y = x / norm along an axis; of zeros, whose norm is 0, the gradient is taken to
// be 0.
func lpNormalization(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	c.accumulate(0, func() onnx.Value {
		at := axis(c.attr("axis", -1), rank)
		x, y, dy := c.x(0), c.y(0), c.dy(0)
		slope, norm := y, onnx.Value("") // slope: of the norm by x
		if c.attr("p", 2) == 1 {
			slope, norm = c.sign(x), c.ReduceSum(c.Abs(x), true, at)
		} else {
			norm = c.Sqrt(c.ReduceSum(c.square(x), true, at))
		}
		g := c.Sub(dy, c.Mul(slope, c.ReduceSum(c.Mul(dy, y), true, at)))
		return c.zeroUnless(c.greater(norm, c.num(0)), c.Div(g, norm))
	})
}

// lrn: y = x s^-beta with s = bias + alpha / size times the sum of squares of the channels around.
// So
//
//	dx = dy s^-beta - 2 alpha beta / size x (sum around of dy y / s)
//
// where the sum is over the channels whose surroundings the channel is in.
func lrn(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		size := c.attr("size", 1)
		alpha, beta := c.attrFloat("alpha", 1e-4)/float64(size), c.attrFloat("beta", 0.75)
		below, above := (size-1)/2, size/2
		x, y, dy := c.x(0), c.y(0), c.dy(0)
		s := c.Add(c.times(c.channelWindows(c.square(x), below, above), alpha), c.num(c.attrFloat("bias", 1)))
		around := c.channelWindows(c.Div(c.Mul(dy, y), s), above, below)
		return c.Sub(c.Mul(dy, c.Pow(s, c.num(-beta))), c.Mul(c.times(x, 2*alpha*beta), around))
	})
}

// channelWindows sums the channels from some below to some above each channel.
func (c *vjp) channelWindows(v onnx.Value, below, above int) onnx.Value {
	plane := c.Reshape(c.Unsqueeze(v, 1), 0, 0, 0, -1) // n x 1 x c x space
	ones := c.Full(1, 1, 1, below+above+1, 1)
	return c.reshapeLike(c.Conv(plane, ones, "", onnx.Attrs{"pads": []int{below, 0, above, 0}}), c.x(0))
}
