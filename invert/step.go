package invert

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A step builds the graph of one step of a search, for n samples.
//
// The graph reads and writes the state of the search: tensor t is the input "search t" and the
// output "search next t". The state is x, the current images; best, the best images so far; key,
// the value that they are chosen by; and the state of the optimiser. Further inputs are rates,
// which change from step to step, and targets, which do not. Further outputs are loss and slope,
// the norm of the gradient at x. No exporter writes names with spaces, so these names are free.
type step struct {
	b      *onnx.Builder
	n      int
	image  []int // c x h x w
	x      onnx.Value
	models []*model.Model // models that have been included

	state   []port // also outputs
	rates   []port
	targets []port
}

// A port is an input of the graph.
type port struct {
	name  string
	shape []int
}

// prefix separates the tensors of a search from the model's.
const prefix = "search "

// centre is the target that holds the centre of the ball. It precedes those of the objective.
const centre = "centre"

// buildStep returns the graph of a step.
func buildStep(objective Objective, o Options, n int) (*onnx.Model, *step, error) {
	m := objective.models()[0]
	opset := m.Opset()
	for _, m := range objective.models() {
		if m.Opset() < minOpset {
			return nil, nil, fmt.Errorf("model %s uses opset %d, and a search needs %d or later: convert it with onnx.version_converter", m.Graph().Path(), m.Opset(), minOpset)
		}
		opset = max(opset, m.Opset())
	}
	s := &step{b: onnx.NewBuilder(opset), n: n, image: m.ImageShape()}
	s.x = s.addState("x", s.image...)
	best, key := s.addState("best", s.image...), s.addState("key", 1)
	if o.Ball != (Ball{}) {
		s.addTarget(centre, s.image...)
	}
	l, err := objective.write(s)
	if err != nil {
		return nil, nil, err
	}
	s.writeShortcuts()
	gradients, err := grad.Pullback(s.b, l.tensors, l.cotangents, s.x)
	if err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", m.Graph().Path(), err)
	}
	direction, slope := s.normalise(gradients[0])
	finite := s.b.Op("And", nil, s.finite(l.loss), s.finite(slope))
	better := s.b.Op("And", nil, s.finite(l.key), s.b.Op("Less", nil, l.key, key))
	s.setNext("best", s.b.Where(s.perImage(better), s.x, best))
	s.setNext("key", s.b.Where(better, l.key, key))
	s.setNext("x", s.b.Where(s.perImage(finite), s.project(s.update(direction, o), o.Ball), s.x))
	s.b.Output(prefix+"loss", l.loss)
	s.b.Output(prefix+"slope", slope)
	graph, err := s.b.Model()
	if err != nil {
		return nil, nil, err
	}
	var outputs []string
	for _, p := range s.state {
		outputs = append(outputs, prefix+"next "+p.name)
	}
	graph, err = rewrite.WithOutputs(graph, append(outputs, prefix+"loss", prefix+"slope"))
	return graph, s, err
}

// minOpset is the first operator set with Where.
const minOpset = 9

// addState declares a tensor of the state, n x shape.
func (s *step) addState(name string, shape ...int) onnx.Value {
	shape = append([]int{s.n}, shape...)
	s.state = append(s.state, port{name, shape})
	return s.b.Input(prefix+name, onnx.Float, shape...)
}

// setNext sets the next value of a tensor of the state.
func (s *step) setNext(name string, v onnx.Value) { s.b.Output(prefix+"next "+name, v) }

// addTarget declares an input that is constant over steps, n x shape.
func (s *step) addTarget(name string, shape ...int) onnx.Value {
	shape = append([]int{s.n}, shape...)
	s.targets = append(s.targets, port{name, shape})
	return s.b.Input(prefix+name, onnx.Float, shape...)
}

// addRate declares a scalar that changes from step to step.
func (s *step) addRate(name string) onnx.Value {
	s.rates = append(s.rates, port{name, []int{1}})
	return s.b.Input(prefix+name, onnx.Float, 1)
}

// include adds a model up to one of its tensors. The first model keeps its tensor names, for error
// messages. Images are resized for the others.
func (s *step) include(m *model.Model, tensor string) (onnx.Value, error) {
	b := s.b
	if len(s.models) > 0 {
		b = b.Scope(fmt.Sprintf("model %d", len(s.models)+1))
	}
	s.models = append(s.models, m)
	x, err := s.modelInput(m)
	if err != nil {
		return "", fmt.Errorf("images for model %s: %w", m.Graph().Path(), err)
	}
	values, err := m.Include(b, x, s.n, tensor)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// castLike returns v with the type and shape of z.
func (s *step) castLike(v, z onnx.Value) onnx.Value {
	if t := infer.Analyze(s.b.Snapshot()).Type(string(z)); t != onnx.Float && t != onnx.Undefined {
		v = s.b.Cast(v, t)
	}
	if shape := infer.Analyze(s.b.Snapshot()).Shape(string(z)); len(shape) > 0 && slices.Min(shape) > 0 {
		return s.b.Reshape(v, shape...)
	}
	return s.b.ReshapeTo(v, s.b.Shape(z))
}

// perImage reshapes n x 1 for broadcasting over n x c x h x w.
func (s *step) perImage(v onnx.Value) onnx.Value { return s.b.Reshape(v, s.n, 1, 1, 1) }

// normalise divides the gradient of each sample by its norm; a zero gradient stays. It first
// divides by the largest magnitude, so that squares of small gradients do not underflow.
func (s *step) normalise(g onnx.Value) (direction, norm onnx.Value) {
	b := s.b
	flat := b.Reshape(g, s.n, -1)
	largest := b.ReduceMax(b.Abs(flat), true, 1)
	scaled := b.Div(flat, b.Op("Max", nil, largest, b.Scalar(minNormal)))
	length := b.Sqrt(b.ReduceSum(b.Mul(scaled, scaled), true, 1)) // 0, or at least 1
	unit := b.Div(scaled, b.Op("Max", nil, length, b.Scalar(1)))
	return b.Reshape(unit, append([]int{s.n}, s.image...)...), b.Mul(length, largest)
}

// minNormal is about the smallest normal float32.
const minNormal = 2e-38

// finite reports which values are neither NaN nor infinite.
func (s *step) finite(v onnx.Value) onnx.Value {
	return s.b.Op("Less", nil, s.b.Abs(v), s.b.Scalar(3.4e38))
}

// project projects images onto the ball around the centre and clips them to [0, 1]. Since the
// centre is an image, clipping does not leave the ball.
func (s *step) project(x onnx.Value, ball Ball) onnx.Value {
	b := s.b
	around, radius := onnx.Value(prefix+centre), b.Scalar(float32(ball.Radius))
	switch ball.Norm {
	case L2:
		away := b.Sub(x, around)
		flat := b.Reshape(away, s.n, -1)
		length := b.Sqrt(b.ReduceSum(b.Mul(flat, flat), true, 1))
		shrink := b.Div(radius, b.Op("Max", nil, length, radius))
		x = b.Add(around, b.Mul(away, s.perImage(shrink)))
	case Linf:
		x = b.Op("Max", nil, b.Op("Min", nil, x, b.Add(around, radius)), b.Sub(around, radius))
	}
	return b.Op("Max", nil, b.Op("Min", nil, x, b.Scalar(1)), b.Scalar(0))
}

// inputs returns the ports in the order in which the graph declares them.
func (s *step) inputs(declared []onnx.Port) ([]port, error) {
	var list []port
	all := slices.Concat(s.state, s.rates, s.targets)
	for _, d := range declared {
		i := slices.IndexFunc(all, func(p port) bool { return prefix+p.name == d.Name })
		if i < 0 {
			return nil, fmt.Errorf("the graph of a step has an unknown input %q", d.Name)
		}
		list = append(list, all[i])
	}
	return list, nil
}
