package grad

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
)

// Options select the tensor that Add differentiates and the tensors that it differentiates by.
type Options struct {
	// Of is the tensor to differentiate. If it is empty, it is the model's only output.
	Of string
	// Cotangent is a tensor of Of's shape that weights its elements: the gradients are those of
	// sum(Of * Cotangent). Without such a tensor it becomes an input; empty: all 1.
	Cotangent string
	// By are inputs, initializers or intermediate tensors; empty: the model's only input.
	By []string
	// Names are the outputs' names by tensor; default "grad/" + the name.
	Names map[string]string
}

// Add returns a model that computes the outputs of m and, as further outputs in the order of By,
// the gradients of Of. Missing tensors, and operators without a rule on the way, are errors.
func Add(m *onnx.Model, o Options) (*onnx.Model, error) {
	o, err := o.Defaults(m)
	if err != nil {
		return nil, fmt.Errorf("adding gradients: %w", err)
	}
	b := onnx.Extend(m)
	if _, ok := b.Find(onnx.Value(o.Of)); !ok {
		return nil, fmt.Errorf("adding gradients: %w", errNoTensor("of", o.Of, infer.Analyze(b.Snapshot())))
	}
	cotangent := onnx.Value(o.Cotangent)
	if _, ok := b.Find(cotangent); !ok && cotangent != "" {
		cotangent = infer.InputLike(b, o.Cotangent, onnx.Value(o.Of))
	}
	by := make([]onnx.Value, len(o.By))
	for i, name := range o.By {
		by[i] = onnx.Value(name)
	}
	gradients, err := Of(b, onnx.Value(o.Of), cotangent, by...)
	if err != nil {
		return nil, err
	}
	for i, g := range gradients {
		infer.OutputLike(b, o.Name(o.By[i]), g, by[i])
	}
	g, err := b.Model()
	if err != nil {
		return nil, fmt.Errorf("adding gradients: %w", err)
	}
	return g, nil
}

// Name returns the name of the output that holds the gradient by a tensor.
func (o Options) Name(by string) string {
	if name := o.Names[by]; name != "" {
		return name
	}
	return "grad/" + by
}

func names(infos []onnx.ValueInfo) string {
	list := make([]string, len(infos))
	for i, info := range infos {
		list[i] = info.Name
	}
	return strings.Join(list, ", ")
}

// Defaults fills in Of and By; several outputs or inputs without a choice are an error.
func (o Options) Defaults(m *onnx.Model) (Options, error) {
	if o.Of == "" {
		outputs := m.Outputs()
		if len(outputs) != 1 {
			return o, fmt.Errorf("of: the model has %d outputs (%s): set the one to differentiate", len(outputs), names(outputs))
		}
		o.Of = outputs[0].Name
	}
	if len(o.By) == 0 {
		inputs := m.Inputs()
		if len(inputs) != 1 {
			return o, fmt.Errorf("by: the model has %d inputs (%s): set the tensors to differentiate by", len(inputs), names(inputs))
		}
		o.By = []string{inputs[0].Name}
	}
	for i, name := range o.By {
		if slices.Contains(o.By[:i], name) {
			return o, fmt.Errorf("the gradient by %q is requested twice", name)
		}
	}
	return o, nil
}

// Of adds and returns the gradients of y by each of by, 0 where y does not depend on it. The graph
// can be differentiated again.
//
// dy, of y's shape, weights it: the gradients are of sum(y * dy). Empty: of sum(y), for a loss of
// one element or independent losses.
func Of(b *onnx.Builder, y, dy onnx.Value, by ...onnx.Value) ([]onnx.Value, error) {
	return Pullback(b, []onnx.Value{y}, []onnx.Value{dy}, by...)
}

// Pullback is Of for several tensors at once: it adds the gradients of sum(y[0] * dy[0]) + sum(y[1]
// * dy[1]) + ... An empty dy[i] stands for ones.
func Pullback(b *onnx.Builder, y, dy []onnx.Value, by ...onnx.Value) ([]onnx.Value, error) {
	if len(y) != len(dy) {
		return nil, fmt.Errorf("differentiating: %d tensors have %d cotangents", len(y), len(dy))
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	// The tape may rename tensors.
	t, err := newTape(b, y, by)
	if err != nil {
		return nil, fmt.Errorf("differentiating: %w", err)
	}
	t.pullback = Pullback // for rules that replace a node by several and differentiate those
	for i := range y {
		if err := t.checkVector("cotangent", t.current(dy[i]), t.current(y[i])); err != nil {
			return nil, fmt.Errorf("differentiating: %w", err)
		}
		t.seed(t.current(y[i]), t.current(dy[i]))
	}
	t.walk(t.nodes)
	gradients := make([]onnx.Value, len(by))
	for i, v := range by {
		gradients[i] = t.gradientOrZero(t.current(v))
	}
	if t.err != nil {
		return nil, fmt.Errorf("differentiating: %w", t.err)
	}
	return gradients, b.Err()
}
