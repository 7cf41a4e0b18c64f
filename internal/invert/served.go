package invert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A Compiler opens sessions for graphs: see model.GraphNetwork.
type Compiler interface {
	Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error)
}

// A servedModel is a model that is no graph, in the graph of a step. The step is then computed in
// turns by three parts of the graph and by the model. The first part ends with the input of the
// model, which computes z; the second part computes the cotangent of z from z; and the third takes
// the gradient that the model computes from the cotangent.
type servedModel struct {
	model      *model.Model
	tensor     string // that is computed: see model.OpenPullback
	input, z   onnx.Value
	x, y       []int      // shapes of input and z
	cotangent  onnx.Value // of z
	gradientBy onnx.Value // by input
}

const servedPrefix = prefix + "served "

func (m *servedModel) name(i int, what string) string {
	return fmt.Sprintf("%s%d %s", servedPrefix, i, what)
}

// includeServed is include for a model that is no graph. images have the model's size.
func (s *stepBuilder) includeServed(m *model.Model, tensor string, images onnx.Value) (onnx.Value, error) {
	if m.Batch() > 0 && s.n != m.Batch() {
		return "", fmt.Errorf("model %s takes %d images at a time, not %d", m.Path(), m.Batch(), s.n)
	}
	v := servedModel{model: m, tensor: tensor, x: m.InputShape(s.n), y: append([]int{s.n}, m.TensorShape(tensor)...)}
	i := len(s.served)
	v.input = s.b.Op("Identity", nil, m.IncludeInput(s.b, images))
	s.b.Output(v.name(i, "input"), v.input)
	v.z = s.b.Input(v.name(i, "z"), onnx.Float, v.y...)
	v.gradientBy = s.b.Input(v.name(i, "gradient"), onnx.Float, v.x...)
	s.served = append(s.served, v)
	return m.IncludeOutput(s.b, tensor, s.b.Op("Identity", nil, v.z)), s.b.Err()
}

// gradient returns the gradient of the loss by the images.
func (s *stepBuilder) gradient(l losses) (onnx.Value, error) {
	tensors, cotangents := l.tensors, l.cotangents
	if len(s.served) > 0 {
		var by []onnx.Value
		for _, v := range s.served {
			by = append(by, v.z)
		}
		found, err := grad.Pullback(s.b, tensors, cotangents, by...)
		if err != nil {
			return "", err
		}
		for i, v := range s.served {
			s.served[i].cotangent = found[i]
			s.b.Output(v.name(i, "cotangent"), found[i])
			tensors, cotangents = append(slices.Clip(tensors), v.input), append(slices.Clip(cotangents), v.gradientBy)
		}
	}
	gradients, err := grad.Pullback(s.b, tensors, cotangents, s.x)
	if err != nil {
		return "", err
	}
	return gradients[0], nil
}

// A servedStep is the session of the graph of a step with models that are no graphs.
type servedStep struct {
	engine.Session // the third part
	parts          []part
	served         []servedModel
	pullbacks      []*model.Pullback
	inputs         []string // of the step
}

// A part of the graph of a step.
type part struct {
	session engine.Session
	outputs []*engine.Array
}

// openServed returns a session of a graph with inputs and s.outputs.
func (s *stepBuilder) openServed(c Compiler, graph *onnx.Model, inputs []tensorInfo) (_ *servedStep, err error) {
	if c == nil {
		return nil, errors.New("a model is no ONNX graph, and nothing is set that runs the other parts of a search")
	}
	r := &servedStep{served: s.served}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, p := range inputs {
		r.inputs = append(r.inputs, prefix+p.name)
	}
	names := [3][]string{2: s.outputs()}
	var shapes [2][][]int
	for i, v := range s.served {
		names[0], names[1] = append(names[0], v.name(i, "input")), append(names[1], v.name(i, "cotangent"))
		shapes[0], shapes[1] = append(shapes[0], v.x), append(shapes[1], v.y)
	}
	for k := range names {
		cut, err := rewrite.WithOutputs(graph, names[k])
		if err != nil {
			return nil, err
		}
		p := part{}
		if p.session, err = c.Compile(cut, 0, false); err != nil {
			return nil, err
		}
		r.parts = append(r.parts, p)
		if k == 2 {
			r.Session = p.session
			continue
		}
		for _, shape := range shapes[k] {
			a := engine.NewArray(engine.Float, shape...)
			r.parts[k].outputs = append(r.parts[k].outputs, a)
			if err := p.session.Bind(a); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range s.served {
		p, err := v.model.OpenPullback(context.Background(), v.tensor)
		if err != nil {
			return nil, err
		}
		r.pullbacks = append(r.pullbacks, p)
	}
	return r, nil
}

// Inputs implements engine.Session.
func (r *servedStep) Inputs() []string { return r.inputs }

// Run implements engine.Session.
func (r *servedStep) Run(ctx context.Context, b engine.Batch) error {
	values := map[string]*engine.Array{}
	for i, name := range r.inputs {
		values[name] = b.Inputs[i]
	}
	run := func(k int, outputs []*engine.Array) error {
		var inputs []*engine.Array
		for _, name := range r.parts[k].session.Inputs() {
			inputs = append(inputs, values[name])
		}
		return r.parts[k].session.Run(ctx, engine.Batch{Inputs: inputs, Outputs: outputs})
	}
	for k := range 2 {
		if err := run(k, r.parts[k].outputs); err != nil {
			return err
		}
		for i, v := range r.served {
			a := engine.NewArray(engine.Float, [2][]int{v.y, v.x}[k]...)
			x, p := r.parts[0].outputs[i].Tensor(), r.pullbacks[i]
			var err error
			if k == 0 {
				err = p.Forward(ctx, x, a.Tensor())
			} else {
				err = p.Backward(ctx, x, r.parts[1].outputs[i].Tensor(), a.Tensor())
			}
			if err == nil {
				err = r.Bind(a)
			}
			if err != nil {
				return err
			}
			defer a.Close()
			values[v.name(i, [2]string{"z", "gradient"}[k])] = a
		}
	}
	return run(2, b.Outputs)
}

// Close implements engine.Session.
func (r *servedStep) Close() error {
	var err error
	for _, p := range r.pullbacks {
		err = errors.Join(err, p.Close())
	}
	for _, p := range r.parts {
		for _, a := range p.outputs {
			err = errors.Join(err, a.Close())
		}
		err = errors.Join(err, p.session.Close())
	}
	return err
}
