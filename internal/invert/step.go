package invert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/ball"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A stepBuilder builds the graph of one step of a search, for n samples.
//
// The graph reads and writes the state of the search: state tensor t is the input "search t" and
// the output "search next t". The state is x, the current images; best, the best so far; criterion,
// their losses.criterion; and the state of the optimiser. Further inputs are the schedule, scalars
// that change from step to step, and constants. Further outputs are the loss at x and the norm of
// its gradient, up to a positive factor for each sample. Exporters do not usually write names with
// spaces, so these do not collide with the models'.
type stepBuilder struct {
	b      *onnx.Builder
	n      int            // number of samples
	image  []int          // c x h x w
	x      onnx.Value     // the current images
	models []*model.Model // models that have been included
	served []servedModel  // those of them that are no graphs

	state     []tensorInfo
	schedule  []tensorInfo
	constants []tensorInfo
	results   []string // names of the outputs besides the next state
}

type tensorInfo struct {
	name  string
	shape []int
}

const prefix = "search "

// centre is the name of the constant input, declared first, that holds the centre of the Ball.
const centre = "centre"

// A stepWriter writes the graph of a step for n samples, and returns its builder.
type stepWriter func(objective Objective, o Options, n int) (*onnx.Model, *stepBuilder, error)

// buildStep returns the graph of a step for n samples, and its builder. A model with an opset below
// minOpset is an error, and so is a step that is not written within the time limit of the first.
func buildStep(write stepWriter, objective Objective, o Options, n int) (*onnx.Model, *stepBuilder, error) {
	type step struct {
		graph   *onnx.Model
		builder *stepBuilder
	}
	s, err := engine.Within(objective.models()[0].TimeLimit(), func() (step, error) {
		graph, builder, err := write(objective, o, n)
		return step{graph, builder}, err
	})
	return s.graph, s.builder, err
}

// newStepBuilder returns a builder with the operator set of the models and no nodes.
func newStepBuilder(objective Objective, n int) (*stepBuilder, error) {
	opset := 0
	for _, m := range objective.models() {
		if m.Graph() != nil && m.Opset() < minOpset {
			return nil, fmt.Errorf("model %s uses opset %d, but a search needs %d or later: convert it with onnx.version_converter", m.Path(), m.Opset(), minOpset)
		}
		opset = max(opset, m.Opset())
	}
	if opset == 0 { // none of the models is a graph
		opset = onnx.DefaultOpset
	}
	return &stepBuilder{b: onnx.NewBuilder(opset), n: n, image: objective.models()[0].ImageShape()}, nil
}

func writeStep(objective Objective, o Options, n int) (*onnx.Model, *stepBuilder, error) {
	s, err := newStepBuilder(objective, n)
	if err != nil {
		return nil, nil, err
	}
	s.x = s.addState("x", s.image...)
	best, criterion := s.addState("best", s.image...), s.addState("criterion", 1)
	if o.Ball != (Ball{}) {
		s.addConstant(centre, s.image...)
	}
	l, err := objective.write(s)
	if err != nil {
		return nil, nil, err
	}
	s.replaceShortcuts() // by convolutions, which are faster
	gradient, err := s.gradient(l)
	if err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", objective.models()[0].Path(), err)
	}
	direction, gradientNorm := ball.Normalise(s.b, gradient, s.image)
	finite := s.b.Op("And", nil, s.finite(l.loss), s.finite(gradientNorm))
	better := s.b.Op("And", nil, s.finite(l.criterion), s.b.Op("Less", nil, l.criterion, criterion))
	s.setNext("best", s.b.Where(ball.PerImage(s.b, better, s.image), s.x, best))
	s.setNext("criterion", s.b.Where(better, l.criterion, criterion))
	s.setNext("x", s.b.Where(ball.PerImage(s.b, finite, s.image), o.Ball.Project(s.b, s.update(direction, o), prefix+centre, s.image), s.x))
	s.output("loss", l.loss)
	s.output("gradient norm", gradientNorm)
	return s.graph()
}

// graph returns the graph that has been written. Of models that are no graphs it has the parts
// around them, of which openServed cuts each.
func (s *stepBuilder) graph() (*onnx.Model, *stepBuilder, error) {
	graph, err := s.b.Model()
	if err == nil && len(s.served) == 0 {
		graph, err = rewrite.WithOutputs(graph, s.outputs())
	}
	if err != nil {
		return nil, nil, err
	}
	return graph, s, nil
}

// outputs returns the names of the next state, and of what is measured.
func (s *stepBuilder) outputs() []string {
	var names []string
	for _, p := range s.state {
		names = append(names, prefix+"next "+p.name)
	}
	return append(names, s.results...)
}

// output adds an output besides the next state.
func (s *stepBuilder) output(name string, v onnx.Value) {
	s.b.Output(prefix+name, v)
	s.results = append(s.results, prefix+name)
}

// minOpset is the first operator set with Where.
const minOpset = 9

func (s *stepBuilder) addState(name string, shape ...int) onnx.Value {
	shape = append([]int{s.n}, shape...)
	s.state = append(s.state, tensorInfo{name, shape})
	return s.b.Input(prefix+name, onnx.Float, shape...)
}

func (s *stepBuilder) setNext(name string, v onnx.Value) { s.b.Output(prefix+"next "+name, v) }

func (s *stepBuilder) addConstant(name string, shape ...int) onnx.Value {
	shape = append([]int{s.n}, shape...)
	s.constants = append(s.constants, tensorInfo{name, shape})
	return s.b.Input(prefix+name, onnx.Float, shape...)
}

func (s *stepBuilder) addSchedule(name string) onnx.Value {
	s.schedule = append(s.schedule, tensorInfo{name, []int{1}})
	return s.b.Input(prefix+name, onnx.Float, 1)
}

// include adds a model up to one of its tensors, which it returns. The first model's tensors keep
// their names, so that error messages have them. x is resized for the other models.
func (s *stepBuilder) include(m *model.Model, tensor string) (onnx.Value, error) {
	b := s.b
	if len(s.models) > 0 {
		b = b.Scope(fmt.Sprintf("model %d", len(s.models)+1))
	}
	s.models = append(s.models, m)
	x, err := s.modelInput(m)
	if err != nil {
		return "", fmt.Errorf("images for model %s: %w", m.Path(), err)
	}
	if m.Graph() == nil {
		return s.includeServed(m, tensor, x)
	}
	values, err := m.Include(b, x, s.n, tensor)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

func (s *stepBuilder) castLike(v, z onnx.Value) onnx.Value {
	if t := infer.Analyze(s.b.Snapshot()).Type(string(z)); t != onnx.Float && t != onnx.Undefined {
		v = s.b.Cast(v, t)
	}
	if shape := infer.Analyze(s.b.Snapshot()).Shape(string(z)); len(shape) > 0 && slices.Min(shape) > 0 {
		return s.b.Reshape(v, shape...)
	}
	return s.b.ReshapeTo(v, s.b.Shape(z))
}

// finite tells which values have a magnitude below 3.4e38, about the largest float32; NaN has not.
func (s *stepBuilder) finite(v onnx.Value) onnx.Value {
	return s.b.Op("Less", nil, s.b.Abs(v), s.b.Scalar(3.4e38))
}

// inputs returns the inputs of the step among those of its graph, which may have others for models
// that are no graphs.
func (s *stepBuilder) inputs(declared []onnx.ValueInfo) ([]tensorInfo, error) {
	var list []tensorInfo
	known := slices.Concat(s.state, s.schedule, s.constants)
	for _, d := range declared {
		if strings.HasPrefix(d.Name, servedPrefix) {
			continue
		}
		i := slices.IndexFunc(known, func(p tensorInfo) bool { return prefix+p.name == d.Name })
		if i < 0 {
			return nil, fmt.Errorf("the graph of a step has an unknown input %q", d.Name)
		}
		list = append(list, known[i])
	}
	return list, nil
}
