package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A batchNorm is a BatchNormalization node in training mode, which normalises by the statistics of
// the batch:
//
//	y = scale (x - mean(x)) / sqrt(var(x) + epsilon) + bias
//	running mean <- m running mean + (1 - m) mean(x)
//	running variance <- m running variance + (1 - m) n / (n - 1) var(x)
//
// Here n is the number of values of a channel in the batch and m the momentum of the node.
// PyTorch's momentum is 1 - m.
type batchNorm struct {
	x                        string // input of the node
	mean, variance           string // running statistics: weights of the model
	momentum                 float64
	batchMean, batchVariance onnx.Value // in the graph of a step
}

// A mask is the random factor of a Dropout: 1 / (1 - ratio), or 0 with probability ratio.
type mask struct {
	name  string
	ratio float64
	shape []int // without the batch
}

// findStatistics lists the running statistics of the BatchNormalization nodes. In training mode
// each must be a float32 weight that no other BatchNormalization uses.
func (p *program) findStatistics(nodes []*pb.NodeProto, weights []onnx.ValueInfo) error {
	for _, n := range nodes {
		if n.GetOpType() != "BatchNormalization" || len(n.Input) < 5 {
			continue
		}
		for _, name := range n.Input[3:5] {
			at := slices.IndexFunc(weights, func(w onnx.ValueInfo) bool { return w.Name == name })
			if at < 0 && p.spec.TrainingMode {
				return fmt.Errorf("%s: the running statistics %q are not float32 weights and cannot be updated: leave out training mode", onnx.Label(n), name)
			}
			if at < 0 {
				continue
			}
			known := slices.ContainsFunc(p.statistics, func(s stateTensor) bool { return s.name == name })
			if known && p.spec.TrainingMode {
				return fmt.Errorf("%s: the running statistics %q are shared with another node and cannot be updated: leave out training mode", onnx.Label(n), name)
			}
			if !known {
				p.statistics = append(p.statistics, stateTensor{name, weights[at].Sizes()})
			}
		}
	}
	return nil
}

// applyTrainingMode replaces each BatchNormalization by its training mode, and each Dropout with a
// ratio above 0 by a product with a mask.
func (p *program) applyTrainingMode(b *onnx.Builder) error {
	p.norms, p.masks = nil, nil
	b.Replace("BatchNormalization", func(n *pb.NodeProto) []onnx.Value { return p.writeBatchNorm(b, n) })
	static := infer.Analyze(b.Snapshot())
	var failed error
	b.Replace("Dropout", func(n *pb.NodeProto) []onnx.Value {
		m, err := newMask(n, static)
		if err != nil {
			failed = fmt.Errorf("%s: %w", onnx.Label(n), err)
			return nil
		}
		if m.ratio == 0 {
			return nil
		}
		p.masks = append(p.masks, m)
		return []onnx.Value{b.Mul(onnx.Value(n.Input[0]), b.Input(m.name, onnx.Float, append([]int{-1}, m.shape...)...))}
	})
	if failed != nil {
		return failed
	}
	return b.Err()
}

// writeBatchNorm writes the operator's own training mode. With momentum 0 its running statistics
// have no effect, so they are zeros. updatedStatistics computes the real ones.
//
// ONNX Runtime writes the statistics of the batch over these zeros, and merges equal nodes. So the
// zeros of a second forward pass are computed in another way; merged with those of the first, both
// passes would return the statistics of one of them.
func (p *program) writeBatchNorm(b *onnx.Builder, n *pb.NodeProto) []onnx.Value {
	in := func(i int) onnx.Value { return onnx.Value(n.Input[i]) }
	second := slices.ContainsFunc(p.norms, func(m batchNorm) bool { return m.mean == n.Input[3] })
	zeros := func(v onnx.Value) onnx.Value {
		if second {
			return b.Mul(v, b.Scalar(0))
		}
		return b.Sub(v, v)
	}
	y := b.Ops("BatchNormalization", 3, onnx.Attrs{"training_mode": 1, "momentum": 0.0, "epsilon": onnx.AttrFloat(n, "epsilon", 1e-5)},
		in(0), in(1), in(2), zeros(in(3)), zeros(in(4)))
	p.norms = append(p.norms, batchNorm{n.Input[0], n.Input[3], n.Input[4], float64(onnx.AttrFloat(n, "momentum", 0.9)), y[1], y[2]})
	return y[:1]
}

// outputStatistics writes the running statistics after the step. Each forward pass updates them.
// With TRADES the passes are on the samples x, on the adversarial examples x', and on x again.
func (p *program) outputStatistics(b *onnx.Builder) {
	running := map[string]onnx.Value{}
	for _, s := range p.statistics {
		running[s.name] = onnx.Value(s.name)
	}
	// Without the nodes that the output does not depend on, whose statistics are not in
	// p.statistics.
	norms := slices.DeleteFunc(slices.Clone(p.norms), func(n batchNorm) bool { return running[n.mean] == "" })
	if a := p.spec.Adversarial; a != nil && a.Defence == TRADES {
		norms = slices.Concat(norms, norms[:len(norms)/2])
	}
	static := infer.Analyze(b.Snapshot())
	for _, n := range norms {
		running[n.mean], running[n.variance] = n.updatedStatistics(b, static, running[n.mean], running[n.variance])
	}
	for _, s := range p.statistics {
		b.Output(nextName(s.name), running[s.name])
	}
}

// updatedStatistics writes the running statistics after a forward pass, given those before it and
// the shapes of the graph.
func (m *batchNorm) updatedStatistics(b *onnx.Builder, static *infer.Info, runningMean, runningVariance onnx.Value) (mean, variance onnx.Value) {
	follow := func(running, batch onnx.Value) onnx.Value {
		return b.Add(b.Mul(running, b.Scalar(float32(m.momentum))), b.Mul(batch, b.Scalar(float32(1-m.momentum))))
	}
	n := m.perChannel(b, static)
	unbiased := b.Div(n, b.Op("Max", nil, b.Sub(n, b.Scalar(1)), b.Scalar(1)))
	return follow(runningMean, m.batchMean), follow(runningVariance, b.Mul(m.batchVariance, unbiased))
}

// perChannel returns the number n of values of a channel in the batch, as a tensor of one element,
// given the shapes of the graph. It is computed from the shape of x alone: the operator Size runs
// on the CPU, and ONNX Runtime would first copy all of x there from another device.
func (m *batchNorm) perChannel(b *onnx.Builder, static *infer.Info) onnx.Value {
	x := onnx.Value(m.x)
	shape := static.Shape(m.x)
	if shape == nil {
		return b.Cast(b.Div(b.Op("Size", nil, x), b.Op("Size", nil, onnx.Value(m.mean))), onnx.Float)
	}
	n := b.Ints(1)
	for axis, size := range shape {
		switch {
		case axis == 1: // of the channels
		case size >= 0:
			n = b.Mul(n, b.Ints(size))
		default:
			n = b.Mul(n, b.Gather(b.Shape(x), b.Ints(axis), 0))
		}
	}
	return b.Cast(n, onnx.Float)
}

func newMask(n *pb.NodeProto, static *infer.Info) (mask, error) {
	m := mask{name: prefix + "mask " + n.Output[0], ratio: 0.5}
	if len(n.Output) > 1 && n.Output[1] != "" {
		return m, fmt.Errorf("the mask is read by other nodes, which is not supported: leave out training mode")
	}
	if len(n.Input) > 1 && n.Input[1] != "" {
		v, ok := static.Values(n.Input[1])
		if !ok || len(v) != 1 {
			return m, fmt.Errorf("the ratio is not constant: leave out training mode")
		}
		m.ratio = v[0]
	} else {
		m.ratio = float64(onnx.AttrFloat(n, "ratio", 0.5))
	}
	if !(m.ratio >= 0 && m.ratio < 1) {
		return m, fmt.Errorf("the ratio is %g: it must be at least 0 and below 1", m.ratio)
	}
	shape := static.Shape(n.Input[0])
	if len(shape) < 1 || slices.ContainsFunc(shape[1:], func(d int) bool { return d < 1 }) {
		return m, fmt.Errorf("the shape %v of the input is not fixed: leave out training mode", shape)
	}
	m.shape = shape[1:]
	return m, nil
}

// draw returns the mask of n samples in a step, from the seed base.
func (m *mask) draw(base uint64, step, n int) tensor.Tensor {
	t := tensor.New(append([]int{n}, m.shape...)...)
	r, keep := seed.Rand(base, m.name, step), float32(1/(1-m.ratio))
	limit := uint32(math.Min(m.ratio*(1<<32), math.MaxUint32))
	for i := range t.Data {
		if r.Uint32() >= limit {
			t.Data[i] = keep
		}
	}
	return t
}
