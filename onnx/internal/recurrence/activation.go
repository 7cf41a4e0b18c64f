package recurrence

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// An activation is a function that a node names, with its parameters.
type activation struct {
	name        string
	alpha, beta float64
}

// known are the functions, with their parameters where the node has none: those that ONNX Runtime
// takes, as the standard names none for the last two.
var known = []struct {
	activation
	parameters int
}{
	{activation{"Sigmoid", 0, 0}, 0}, {activation{"Tanh", 0, 0}, 0}, {activation{"Relu", 0, 0}, 0}, {activation{"Softsign", 0, 0}, 0}, {activation{"Softplus", 0, 0}, 0},
	{activation{"LeakyRelu", 0.01, 0}, 1}, {activation{"Elu", 1, 0}, 1}, {activation{"ThresholdedRelu", 0, 0}, 1},
	{activation{"HardSigmoid", 0.2, 0.5}, 2}, {activation{"Affine", 0, 0}, 2}, {activation{"ScaledTanh", 0, 0}, 2},
}

// activations are those that a node names, or others. Their parameters are in two lists, of which
// each function takes the next if it has one.
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
			return nil, fmt.Errorf("there is no activation %q", name)
		}
	}
	return found, nil
}

// activated is a function of what the node's attribute clip bounds.
func (r recurrence) activated(a activation, x onnx.Value) onnx.Value {
	if bound := float64(onnx.AttrFloat(r.Proto, "clip", 0)); bound > 0 {
		x = r.Sub(r.Sub(r.Relu(r.Add(x, r.number(bound))), r.Relu(r.Sub(x, r.number(bound)))), r.number(bound))
	}
	return r.function(a, x)
}

// function writes an activation by operators that engines have for all numbers.
func (r recurrence) function(a activation, x onnx.Value) onnx.Value {
	switch a.name {
	case "LeakyRelu":
		return r.Sub(r.Relu(x), r.times(r.Relu(r.Neg(x)), a.alpha))
	case "Elu":
		return r.Add(r.Relu(x), r.times(r.Sub(r.Exp(r.Neg(r.Relu(r.Neg(x)))), r.number(1)), a.alpha))
	case "ThresholdedRelu":
		return r.Mul(r.Cast(r.Op("Greater", nil, x, r.number(a.alpha)), r.Float), x)
	case "HardSigmoid":
		line := r.Add(r.times(x, a.alpha), r.number(a.beta))
		return r.Sub(r.Relu(line), r.Relu(r.Sub(line, r.number(1))))
	case "Affine":
		return r.Add(r.times(x, a.alpha), r.number(a.beta))
	case "ScaledTanh":
		return r.times(r.Activation("Tanh", r.times(x, a.beta)), a.alpha)
	}
	return r.Activation(a.name, x)
}

// times multiplies by a number.
func (r recurrence) times(x onnx.Value, v float64) onnx.Value { return r.Mul(x, r.number(v)) }

// number is a constant of rank 0 of the type of the numbers.
func (r recurrence) number(v float64) onnx.Value {
	n := r.Scalar(float32(v))
	if r.Float != onnx.Float {
		n = r.Cast(n, r.Float)
	}
	return n
}
