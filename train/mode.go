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

// A norm is a BatchNormalization that normalises by the batch:
//
//	y = scale (x - mean(x)) / sqrt(var(x) + epsilon) + bias
//	running mean <- m running mean + (1 - m) mean(x)
//	running variance <- m running variance + (1 - m) n / (n - 1) var(x)
//
// with n the number of values of a channel in the batch and m the node's momentum, which is 1 - m in PyTorch's words.
type norm struct {
	x                        string
	mean, variance           string // the running ones, weights of the model
	momentum                 float64
	batchMean, batchVariance onnx.Value // in the graph of a step
}

// A mask is what a Dropout multiplies its input by: 1 / (1 - ratio), or 0 with the probability ratio.
type mask struct {
	name  string
	ratio float64
	shape []int // after the batch
}

// findNorms lists the running statistics of a graph. In training mode each must be a weight of its own.
func (p *program) findNorms(nodes []*pb.NodeProto, weights []onnx.Port) error {
	for _, n := range nodes {
		if n.GetOpType() != "BatchNormalization" || len(n.Input) < 5 {
			continue
		}
		for _, name := range n.Input[3:5] {
			at := slices.IndexFunc(weights, func(w onnx.Port) bool { return w.Name == name })
			if at < 0 && p.spec.TrainingMode {
				return fmt.Errorf("%s: its statistics %q are no float32 weights, so they cannot be trained: do without training mode", onnx.Label(n), name)
			}
			if at < 0 {
				continue
			}
			known := slices.ContainsFunc(p.statistics, func(s slot) bool { return s.name == name })
			if known && p.spec.TrainingMode {
				return fmt.Errorf("%s: it shares its statistics %q with another node, so they cannot be trained: do without training mode", onnx.Label(n), name)
			}
			if !known {
				p.statistics = append(p.statistics, slot{name, weights[at].Sizes()})
			}
		}
	}
	return nil
}

// trainingMode lets the normalisations of a graph go by the batch, and its dropouts drop.
func (p *program) trainingMode(b *onnx.Builder) error {
	p.norms, p.masks = nil, nil
	b.Replace("BatchNormalization", func(n *pb.NodeProto) []onnx.Value { return p.batchNorm(b, n) })
	static := infer.Analyze(b.Snapshot())
	var wrong error
	b.Replace("Dropout", func(n *pb.NodeProto) []onnx.Value {
		m, err := maskOf(n, static)
		if err != nil {
			wrong = fmt.Errorf("%s: %w", onnx.Label(n), err)
			return nil
		}
		if m.ratio == 0 {
			return nil
		}
		p.masks = append(p.masks, m)
		return []onnx.Value{b.Mul(onnx.Value(n.Input[0]), b.Input(m.name, onnx.Float, append([]int{-1}, m.shape...)...))}
	})
	if wrong != nil {
		return wrong
	}
	return b.Err()
}

// batchNorm is the operator's own training mode. The statistics that it is given count for nothing, as its momentum is 0,
// and it writes over them, so they are zeros of its own.
func (p *program) batchNorm(b *onnx.Builder, n *pb.NodeProto) []onnx.Value {
	in := func(i int) onnx.Value { return onnx.Value(n.Input[i]) }
	y := b.Ops("BatchNormalization", 3, onnx.Attrs{"training_mode": 1, "momentum": 0.0, "epsilon": onnx.AttrFloat(n, "epsilon", 1e-5)},
		in(0), in(1), in(2), b.Sub(in(3), in(3)), b.Sub(in(4), in(4)))
	p.norms = append(p.norms, norm{n.Input[0], n.Input[3], n.Input[4], float64(onnx.AttrFloat(n, "momentum", 0.9)), y[1], y[2]})
	return y[:1]
}

// becomes writes what the running statistics become.
func (m *norm) becomes(b *onnx.Builder) (mean, variance onnx.Value) {
	follow := func(running string, batch onnx.Value) onnx.Value {
		return b.Add(b.Mul(onnx.Value(running), b.Scalar(float32(m.momentum))), b.Mul(batch, b.Scalar(float32(1-m.momentum))))
	}
	n := b.Cast(b.Div(b.Op("Size", nil, onnx.Value(m.x)), b.Op("Size", nil, onnx.Value(m.mean))), onnx.Float)
	unbiased := b.Div(n, b.Op("Max", nil, b.Sub(n, b.Scalar(1)), b.Scalar(1)))
	return follow(m.mean, m.batchMean), follow(m.variance, b.Mul(m.batchVariance, unbiased))
}

// maskOf reads a Dropout.
func maskOf(n *pb.NodeProto, static *infer.Info) (mask, error) {
	m := mask{name: prefix + "mask " + n.Output[0], ratio: 0.5}
	if len(n.Output) > 1 && n.Output[1] != "" {
		return m, fmt.Errorf("its mask is read by other nodes, so it cannot be trained: do without training mode")
	}
	if len(n.Input) > 1 && n.Input[1] != "" {
		v, ok := static.Values(n.Input[1])
		if !ok || len(v) != 1 {
			return m, fmt.Errorf("its ratio is not fixed, so it cannot be trained: do without training mode")
		}
		m.ratio = v[0]
	} else {
		m.ratio = float64(onnx.AttrFloat(n, "ratio", 0.5))
	}
	if !(m.ratio >= 0 && m.ratio < 1) {
		return m, fmt.Errorf("its ratio is %g: it is from 0 to below 1", m.ratio)
	}
	shape := static.Shape(n.Input[0])
	if len(shape) < 1 || slices.ContainsFunc(shape[1:], func(d int) bool { return d < 1 }) {
		return m, fmt.Errorf("the shape %v of what it drops is not fixed, so it cannot be trained: do without training mode", shape)
	}
	m.shape = shape[1:]
	return m, nil
}

// draw fills a mask for n samples in a step.
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
