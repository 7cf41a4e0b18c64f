package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/onnx"
)

// An Optimiser updates parameters by their gradients: SGD, Adam or AdamW.
type Optimiser interface {
	check() error
	// base is the learning rate that a schedule scales.
	base() float64
	// update writes the nodes that move a parameter, and returns what it becomes.
	update(s *slots, p, g onnx.Value) onnx.Value
	// rates are the numbers of step t (from 1), in the order in which update has asked for them.
	rates(t int, rate float64) []float64
}

// slots is what an optimiser writes into: the graph, its memory of one parameter, and the rates that all share.
type slots struct {
	b      *onnx.Builder
	rate   func(i int) onnx.Value
	memory func(name string) (now onnx.Value, becomes func(onnx.Value))
}

// SGD is stochastic gradient descent.
type SGD struct {
	Rate        float64
	Momentum    float64
	Nesterov    bool
	WeightDecay float64
}

// Adam adapts the step of each weight; its decay is coupled, that is, part of the gradient.
type Adam struct {
	Rate         float64
	Beta1, Beta2 float64 // 0: 0.9 and 0.999
	Epsilon      float64 // 0: 1e-8
	WeightDecay  float64
}

// AdamW is Adam with decay apart from the gradient.
type AdamW Adam

func checkRates(rate, decay float64) error {
	if !(rate > 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("the learning rate is %g: it is above 0", rate)
	}
	if !(decay >= 0) || math.IsInf(decay, 0) {
		return fmt.Errorf("the weight decay is %g: it is at least 0", decay)
	}
	return nil
}

func (o SGD) check() error {
	if !(o.Momentum >= 0 && o.Momentum < 1) {
		return fmt.Errorf("the momentum is %g: it is from 0 to below 1", o.Momentum)
	}
	if o.Nesterov && o.Momentum == 0 {
		return errors.New("momentum by Nesterov is none where the momentum is 0")
	}
	return checkRates(o.Rate, o.WeightDecay)
}

func (o SGD) base() float64 { return o.Rate }

func (o SGD) rates(_ int, rate float64) []float64 { return []float64{rate} }

func (o SGD) update(s *slots, p, g onnx.Value) onnx.Value {
	b := s.b
	g = decayed(b, g, p, o.WeightDecay)
	if o.Momentum > 0 {
		v, becomes := s.memory("velocity")
		now := b.Add(b.Mul(v, b.Scalar(float32(o.Momentum))), g)
		becomes(now)
		if o.Nesterov {
			now = b.Add(g, b.Mul(now, b.Scalar(float32(o.Momentum))))
		}
		g = now
	}
	return b.Sub(p, b.Mul(g, s.rate(0)))
}

func (o Adam) complete() Adam {
	if o.Beta1 == 0 {
		o.Beta1 = 0.9
	}
	if o.Beta2 == 0 {
		o.Beta2 = 0.999
	}
	if o.Epsilon == 0 {
		o.Epsilon = 1e-8
	}
	return o
}

func (o Adam) check() error {
	o = o.complete()
	for _, beta := range []float64{o.Beta1, o.Beta2} {
		if !(beta > 0 && beta < 1) {
			return fmt.Errorf("a beta of Adam is %g: it lies between 0 and 1", beta)
		}
	}
	if !(o.Epsilon > 0) {
		return fmt.Errorf("the epsilon of Adam is %g: it is above 0", o.Epsilon)
	}
	return checkRates(o.Rate, o.WeightDecay)
}

func (o AdamW) check() error  { return Adam(o).check() }
func (o Adam) base() float64  { return o.Rate }
func (o AdamW) base() float64 { return o.Rate }

// adamMove is the step of both: the memory holds m / (1 - b1) and v / (1 - b2), which saves two passes over the weights, and
// what the bias correction and these factors come to is in the rates:
//
//	p - s M / (sqrt V + e),  s = a (1 - b1) / (1 - b1^t) / c,  e = eps / c,  c = sqrt((1 - b2) / (1 - b2^t)).
func (o Adam) adamMove(s *slots, p, g onnx.Value) onnx.Value {
	b := s.b
	g = decayed(b, g, p, o.WeightDecay)
	m, mBecomes := s.memory("mean")
	v, vBecomes := s.memory("square")
	mean := b.Add(b.Mul(m, b.Scalar(float32(o.Beta1))), g)
	square := b.Add(b.Mul(v, b.Scalar(float32(o.Beta2))), b.Mul(g, g))
	mBecomes(mean)
	vBecomes(square)
	return b.Sub(p, b.Mul(b.Div(mean, b.Add(b.Sqrt(square), s.rate(1))), s.rate(0)))
}

func (o Adam) adamRates(t int, rate float64) []float64 {
	o = o.complete()
	c := math.Sqrt((1 - o.Beta2) / (1 - math.Pow(o.Beta2, float64(t))))
	return []float64{rate * (1 - o.Beta1) / (1 - math.Pow(o.Beta1, float64(t))) / c, o.Epsilon / c}
}

func (o Adam) rates(t int, rate float64) []float64 { return o.adamRates(t, rate) }

func (o Adam) update(s *slots, p, g onnx.Value) onnx.Value {
	return o.complete().adamMove(s, p, g)
}

func (o AdamW) rates(t int, rate float64) []float64 {
	return append(Adam(o).adamRates(t, rate), 1-rate*o.WeightDecay)
}

func (o AdamW) update(s *slots, p, g onnx.Value) onnx.Value {
	decay := o.WeightDecay
	o.WeightDecay = 0
	if decay > 0 {
		p = s.b.Mul(p, s.rate(2))
	}
	return Adam(o).complete().adamMove(s, p, g)
}

// decayed is g + decay p. Where g is a matrix product the product adds it, which costs no pass over the weights.
func decayed(b *onnx.Builder, g, p onnx.Value, decay float64) onnx.Value {
	if decay == 0 {
		return g
	}
	nodes := b.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if len(n.Output) != 1 || n.Output[0] != string(g) {
			continue
		}
		if n.GetOpType() != "Gemm" || len(n.Input) != 2 {
			break
		}
		return b.Gemm(onnx.Value(n.Input[0]), onnx.Value(n.Input[1]), p, onnx.Attrs{
			"transA": onnx.AttrInt(n, "transA", 0), "transB": onnx.AttrInt(n, "transB", 0),
			"alpha": onnx.AttrFloat(n, "alpha", 1), "beta": float32(decay),
		})
	}
	return b.Add(g, b.Mul(p, b.Scalar(float32(decay))))
}
