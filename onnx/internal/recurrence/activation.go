package recurrence

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// An activation is a function with its parameters; those that it lacks are 0.
type activation struct {
	name        string
	alpha, beta float64
}

// known lists functions with the defaults of the operators of that name; ThresholdedRelu, Affine
// and ScaledTanh have 0 as in ONNX Runtime.
var known = []struct {
	activation
	parameters int // number of parameters: 0, alpha, or alpha and beta
}{
	{activation{"Sigmoid", 0, 0}, 0}, {activation{"Tanh", 0, 0}, 0}, {activation{"Relu", 0, 0}, 0}, {activation{"Softsign", 0, 0}, 0}, {activation{"Softplus", 0, 0}, 0},
	{activation{"LeakyRelu", 0.01, 0}, 1}, {activation{"Elu", 1, 0}, 1}, {activation{"ThresholdedRelu", 0, 0}, 1},
	{activation{"HardSigmoid", 0.2, 0.5}, 2}, {activation{"Affine", 0, 0}, 2}, {activation{"ScaledTanh", 0, 0}, 2},
}

// activations returns the functions that a node names, by default names. activation_alpha and
// activation_beta list parameters of those that have them, in order; missing ones have defaults.
func activations(n *pb.NodeProto, names []string) ([]activation, error) {
	if given := onnx.AttrStrings(n, "activations"); given != nil {
		names = given
	}
	alphas, betas := onnx.AttrFloats(n, "activation_alpha"), onnx.AttrFloats(n, "activation_beta")
	next := func(list *[]float32, v *float64) {
		if len(*list) > 0 {
			*v, *list = float64((*list)[0]), (*list)[1:]
		}
	}
	found := make([]activation, len(names))
	for i, name := range names {
		for _, k := range known {
			if !strings.EqualFold(name, k.name) {
				continue
			}
			found[i] = k.activation
			if k.parameters > 0 {
				next(&alphas, &found[i].alpha)
			}
			if k.parameters > 1 {
				next(&betas, &found[i].beta)
			}
		}
		if found[i].name == "" {
			return nil, fmt.Errorf("unknown activation %q", name)
		}
	}
	return found, nil
}

// clipAndActivate limits x to [-clip, clip], if the node has that attribute, and applies a.
func (r recurrence) clipAndActivate(a activation, x onnx.Value) onnx.Value {
	if clip := float64(onnx.AttrFloat(r.node, "clip", 0)); clip > 0 {
		x = r.Sub(r.Sub(r.Relu(r.Add(x, r.number(clip))), r.Relu(r.Sub(x, r.number(clip)))), r.number(clip))
	}
	return r.activate(a, x)
}

// activate uses operators that ONNX Runtime has in float32 and float64.
func (r recurrence) activate(a activation, x onnx.Value) onnx.Value {
	switch a.name {
	case "LeakyRelu":
		return r.Sub(r.Relu(x), r.times(r.Relu(r.Neg(x)), a.alpha))
	case "Elu":
		return r.Add(r.Relu(x), r.times(r.Sub(r.Exp(r.Neg(r.Relu(r.Neg(x)))), r.number(1)), a.alpha))
	case "ThresholdedRelu":
		return r.Mul(r.Cast(r.Op("Greater", nil, x, r.number(a.alpha)), r.float), x)
	case "HardSigmoid":
		line := r.Add(r.times(x, a.alpha), r.number(a.beta))
		return r.Sub(r.Relu(line), r.Relu(r.Sub(line, r.number(1))))
	case "Affine":
		return r.Add(r.times(x, a.alpha), r.number(a.beta))
	case "ScaledTanh":
		return r.times(r.Tanh(r.times(x, a.beta)), a.alpha)
	}
	return r.Op(a.name, nil, x)
}

func (r recurrence) times(x onnx.Value, v float64) onnx.Value { return r.Mul(x, r.number(v)) }

// number returns a constant of rank 0, of the type of the activations, r.float.
func (r recurrence) number(v float64) onnx.Value {
	n := r.Scalar(float32(v))
	if r.float != onnx.Float {
		n = r.Cast(n, r.float)
	}
	return n
}
