package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/onnx"
)

// An Optimiser updates parameters by their gradients. It is SGD, Adam or AdamW.
type Optimiser interface {
	check() error
	// baseRate returns the learning rate that a schedule scales.
	baseRate() float64
	// update writes the nodes that update a parameter p with gradient g, and returns the updated p.
	update(s *updater, p, g onnx.Value) onnx.Value
	// scalars returns the scalars of step t (from 1) that update reads by index, given the learning
	// rate: step sizes and bias corrections.
	scalars(t int, rate float64) []float64
}

// An updater gives an optimiser access to the graph b, the scalars of the step, and the state of
// one parameter: tensors that are kept from step to step, such as its velocity.
type updater struct {
	b      *onnx.Builder
	scalar func(i int) onnx.Value // scalar i of Optimiser.scalars
	// state declares a tensor of the optimiser's state with the shape of the parameter. It returns
	// its value and a function that sets its next value.
	state func(name string) (current onnx.Value, setNext func(onnx.Value))
}

// SGD is stochastic gradient descent, optionally with momentum. The tags of optimisers and networks
// are those of package config, for training files.
type SGD struct {
	Rate        float64 `key:"rate,required" short:"true" doc:"learning rate"`
	Momentum    float64 `key:"momentum" min:"0" doc:"below 1"`
	Nesterov    bool    `key:"nesterov" doc:"Nesterov momentum"`
	WeightDecay float64 `key:"weight-decay" json:"Decay" min:"0" doc:"weight decay"`
}

// Adam is the optimiser of Kingma and Ba. Weight decay is added to the gradient. Beta1, Beta2 and
// Epsilon have their defaults where they are 0.
type Adam struct {
	Rate        float64 `key:"rate,required" short:"true" doc:"learning rate"`
	Beta1       float64 `key:"beta1" default:"0.9" doc:"decay rate of the first moment"`
	Beta2       float64 `key:"beta2" default:"0.999" doc:"decay rate of the second moment"`
	Epsilon     float64 `key:"epsilon" default:"1e-8" doc:"added to the root of the second moment"`
	WeightDecay float64 `key:"weight-decay" json:"Decay" min:"0" doc:"weight decay"`
}

// AdamW is Adam with decoupled weight decay: p is multiplied by 1 - rate WeightDecay in each step.
type AdamW Adam

func checkRates(rate, decay float64) error {
	if !(rate > 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("the learning rate is %g: it must be above 0 and finite", rate)
	}
	if !(decay >= 0) || math.IsInf(decay, 0) {
		return fmt.Errorf("the weight decay is %g: it must be at least 0 and finite", decay)
	}
	return nil
}

func (o SGD) check() error {
	if !(o.Momentum >= 0 && o.Momentum < 1) {
		return fmt.Errorf("the momentum is %g: it must be at least 0 and below 1", o.Momentum)
	}
	if o.Nesterov && o.Momentum == 0 {
		return errors.New("the momentum is 0: Nesterov needs one above 0")
	}
	return checkRates(o.Rate, o.WeightDecay)
}

func (o SGD) baseRate() float64                     { return o.Rate }
func (o SGD) scalars(_ int, rate float64) []float64 { return []float64{rate} }

func (o SGD) update(s *updater, p, g onnx.Value) onnx.Value {
	b := s.b
	g = decayed(b, g, p, o.WeightDecay)
	if o.Momentum > 0 {
		v, setNext := s.state("velocity")
		next := b.Add(b.Mul(v, b.Scalar(float32(o.Momentum))), g)
		setNext(next)
		if o.Nesterov {
			next = b.Add(g, b.Mul(next, b.Scalar(float32(o.Momentum))))
		}
		g = next
	}
	return b.Sub(p, b.Mul(g, s.scalar(0)))
}

func (o Adam) complete() Adam {
	o.Beta1, o.Beta2, o.Epsilon = cmp.Or(o.Beta1, 0.9), cmp.Or(o.Beta2, 0.999), cmp.Or(o.Epsilon, 1e-8)
	return o
}

func (o Adam) check() error {
	o = o.complete()
	for _, beta := range []float64{o.Beta1, o.Beta2} {
		if !(beta > 0 && beta < 1) {
			return fmt.Errorf("a beta of Adam is %g: it must lie between 0 and 1", beta)
		}
	}
	if !(o.Epsilon > 0) {
		return fmt.Errorf("the epsilon of Adam is %g: it must be above 0", o.Epsilon)
	}
	return checkRates(o.Rate, o.WeightDecay)
}

func (o AdamW) check() error      { return Adam(o).check() }
func (o Adam) baseRate() float64  { return o.Rate }
func (o AdamW) baseRate() float64 { return o.Rate }

// update keeps M = m / (1 - b1) and V = v / (1 - b2) as its state, which saves two passes over the
// weights. Here m and v are Adam's running means of the gradient and of its square, b1, b2 and eps
// are Beta1, Beta2 and Epsilon, and a is the learning rate in step t. scalars returns s and e,
// which include the bias correction and these factors:
//
//	p <- p - s M / (sqrt V + e)
//	s = a (1 - b1) / (1 - b1^t) / c,  e = eps / c,  c = sqrt((1 - b2) / (1 - b2^t))
func (o Adam) update(s *updater, p, g onnx.Value) onnx.Value {
	o = o.complete()
	b := s.b
	g = decayed(b, g, p, o.WeightDecay)
	m, mSetNext := s.state("mean")
	v, vSetNext := s.state("square")
	mean := b.Add(b.Mul(m, b.Scalar(float32(o.Beta1))), g)
	square := b.Add(b.Mul(v, b.Scalar(float32(o.Beta2))), b.Mul(g, g))
	mSetNext(mean)
	vSetNext(square)
	return b.Sub(p, b.Mul(b.Div(mean, b.Add(b.Sqrt(square), s.scalar(1))), s.scalar(0)))
}

func (o Adam) scalars(t int, rate float64) []float64 {
	o = o.complete()
	c := math.Sqrt((1 - o.Beta2) / (1 - math.Pow(o.Beta2, float64(t))))
	return []float64{rate * (1 - o.Beta1) / (1 - math.Pow(o.Beta1, float64(t))) / c, o.Epsilon / c}
}

// scalars returns those of Adam and the factor of decoupled weight decay.
func (o AdamW) scalars(t int, rate float64) []float64 {
	return append(Adam(o).scalars(t, rate), 1-rate*o.WeightDecay)
}

func (o AdamW) update(s *updater, p, g onnx.Value) onnx.Value {
	decay := o.WeightDecay
	o.WeightDecay = 0
	if decay > 0 {
		p = s.b.Mul(p, s.scalar(2))
	}
	return Adam(o).update(s, p, g)
}

// decayed returns g + decay p. If g is a matrix product (Gemm), the term becomes the addend of the
// product, which saves a pass over the weights.
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
