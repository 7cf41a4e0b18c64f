package lie

import (
	"context"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A servedRun computes what a program does for a model that is no graph. The model computes layers
// and tangents (model.Pushforward), and three graphs what is before and after them.
type servedRun struct {
	model  *model.Model
	n      int
	names  []string // of the layers, and of the scores unless they are one
	layers int
	output int            // index of the scores in names; -1: there are none
	front  engine.Session // from images to the input of the network and its tangent
	back   engine.Session // from layers and their tangents to sums, and X z of each layer that moves
	moves  []bool         // by layer: whether X z is not 0
	whole  *model.Pushforward
	shapes [][]int // of names

	// For contributions; nil without them.
	norm engine.Session       // from scores and a tangent to the squared norm of the output's tangent
	rest *model.Pushforward   // with X z in place of the tangents of layers
	from []*model.Pushforward // from the tangent of a layer to that of the scores; nil for the scores
}

// newServedRun is newProgram for a model that is no graph. graphs compiles the graphs.
func newServedRun(ctx context.Context, m *model.Model, graphs interface {
	Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error)
}, layers []layer, g transform.Generator, slopes string, n int, parts bool,
) (_ *servedRun, err error) {
	r := &servedRun{model: m, n: n, layers: len(layers)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	r.names, r.output = tensorNames(m, layers)
	for _, name := range r.names {
		r.shapes = append(r.shapes, append([]int{n}, m.TensorShape(name)...))
	}
	compile := func(to *engine.Session, build func() (*onnx.Model, error)) {
		if err != nil {
			return
		}
		var graph *onnx.Model
		if graph, err = build(); err == nil {
			*to, err = graphs.Compile(graph, 0, false)
		}
	}
	compile(&r.front, func() (*onnx.Model, error) { return r.frontGraph(g, slopes) })
	compile(&r.back, func() (*onnx.Model, error) { return r.backGraph(layers, g, slopes) })
	if parts {
		compile(&r.norm, r.normGraph)
	}
	open := func(tensors []string, byInput bool, at ...string) (p *model.Pushforward) {
		if err == nil {
			p, err = m.OpenPushforward(ctx, tensors, byInput, at...)
		}
		return p
	}
	r.whole = open(r.names, true)
	if !parts {
		return r, err
	}
	r.rest = open(r.names, true, r.names[:r.layers]...)
	for i, name := range r.names[:r.layers] {
		var p *model.Pushforward
		if i != r.output {
			p = open([]string{r.names[r.output]}, false, name)
		}
		r.from = append(r.from, p)
	}
	return r, err
}

// The names of tensors of the graphs; those of the i-th layer or the scores have i at their end.
const (
	inputName   = "lie network input"
	tangentName = "lie tangent "
	valueName   = "lie value "
	movedName   = "lie moved "
)

func at(name string, i int) string { return fmt.Sprint(name, i) }

func (r *servedRun) frontGraph(g transform.Generator, slopes string) (*onnx.Model, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	shape := r.model.ImageShape()
	image := b.Input(imageName, onnx.Float, append([]int{r.n}, shape...)...)
	x := b.Identity(r.model.IncludeInput(b, image))
	dx, err := grad.JVP(b, []onnx.Value{x}, []onnx.Value{image}, []onnx.Value{generateImage(b, g, slopes, r.n, shape, image)})
	if err != nil {
		return nil, err
	}
	return outputsOf(b, map[string]onnx.Value{inputName: x, tangentName: dx[0]}, inputName, tangentName)
}

func (r *servedRun) backGraph(layers []layer, g transform.Generator, slopes string) (*onnx.Model, error) {
	p := &program{b: onnx.NewBuilder(onnx.DefaultOpset), n: r.n, layers: layers}
	var tangents []onnx.Value
	for i, shape := range r.shapes {
		p.z = append(p.z, p.b.Input(at(valueName, i), onnx.Float, shape...))
		tangents = append(tangents, p.b.Input(at(tangentName, i), onnx.Float, shape...))
	}
	if r.output >= 0 {
		y, dy, err := r.ofOutput(p.b, p.z[r.output], tangents[r.output])
		if err != nil {
			return nil, err
		}
		p.z, tangents = append(p.z[:r.layers:r.layers], y), append(tangents[:r.layers:r.layers], dy)
	}
	p.move(g, slopes)
	p.setLie(tangents)
	var moved []string
	for i := range layers {
		r.moves = append(r.moves, p.moved[i] != "")
		if r.moves[i] {
			moved = append(moved, at(movedName, i))
			p.b.Output(moved[len(moved)-1], p.moved[i])
		}
	}
	return p.model(moved...)
}

// ofOutput returns the output of the model and its tangent, given those of the network's scores.
func (r *servedRun) ofOutput(b *onnx.Builder, scores, tangent onnx.Value) (y, dy onnx.Value, err error) {
	y = probabilities(b, r.model, r.model.IncludeOutput(b, r.model.ScoresTensor(), b.Identity(scores)))
	tangents, err := grad.JVP(b, []onnx.Value{y}, []onnx.Value{scores}, []onnx.Value{tangent})
	if err != nil {
		return "", "", err
	}
	return y, tangents[0], nil
}

func (r *servedRun) normGraph() (*onnx.Model, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	shape := r.shapes[r.output]
	_, dy, err := r.ofOutput(b, b.Input(valueName, onnx.Float, shape...), b.Input(tangentName, onnx.Float, shape...))
	if err != nil {
		return nil, err
	}
	return outputsOf(b, map[string]onnx.Value{sumsName: sumOfSquares(b, dy)}, sumsName)
}

func outputsOf(b *onnx.Builder, values map[string]onnx.Value, names ...string) (*onnx.Model, error) {
	for _, name := range names {
		b.Output(name, values[name])
	}
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, names)
}

// run writes the sums of a program for n images to sums.
func (r *servedRun) run(ctx context.Context, images, sums tensor.Tensor) error {
	shape := r.model.InputShape(r.n)
	x, dx := tensor.New(shape...), tensor.New(shape...)
	if err := runGraph(ctx, r.front, map[string]tensor.Tensor{imageName: images}, x, dx); err != nil {
		return err
	}
	found, err := r.whole.Run(ctx, x, dx)
	if err != nil {
		return err
	}
	inputs := map[string]tensor.Tensor{}
	var outputs, moved []tensor.Tensor
	for i, shape := range r.shapes {
		inputs[at(valueName, i)], inputs[at(tangentName, i)] = found[i], found[len(r.shapes)+i]
		if i < r.layers {
			moved = append(moved, tensor.New(shape...)) // 0 for layers that do not move
			if r.moves[i] {
				outputs = append(outputs, moved[i])
			}
		}
	}
	if err := runGraph(ctx, r.back, inputs, append(outputs, sums)...); err != nil {
		return err
	}
	if r.norm == nil {
		return nil
	}
	return r.addParts(ctx, x, dx, found[r.output], moved, sums)
}

// addParts writes the squared norms of J_l L_l: see program.differentiateParts.
func (r *servedRun) addParts(ctx context.Context, x, dx, scores tensor.Tensor, moved []tensor.Tensor, sums tensor.Tensor) error {
	found, err := r.rest.Run(ctx, x, append([]tensor.Tensor{dx}, moved...)...)
	if err != nil {
		return err
	}
	arriving := found[len(r.names):]
	norms := tensor.New(r.n, 1)
	add := func(l int, tangent tensor.Tensor) error {
		err := runGraph(ctx, r.norm, map[string]tensor.Tensor{valueName: scores, tangentName: tangent}, norms)
		for i, v := range norms.Data {
			sums.At(i).Data[l*columns+partSquares] = v
		}
		return err
	}
	for l, p := range r.from {
		own := arriving[l]
		for i, v := range moved[l].Data {
			own.Data[i] -= v
		}
		if p != nil {
			carried, err := p.Run(ctx, x, own)
			if err != nil {
				return err
			}
			own = carried[1]
		}
		if err := add(l, own); err != nil {
			return err
		}
	}
	if r.output < r.layers { // no part follows the scores
		return add(r.layers, tensor.New(r.shapes[r.output]...))
	}
	return add(r.layers, arriving[r.output])
}

// runGraph runs a session with inputs by name.
func runGraph(ctx context.Context, s engine.Session, inputs map[string]tensor.Tensor, outputs ...tensor.Tensor) error {
	var b engine.Batch
	for _, name := range s.Inputs() {
		b.Inputs = append(b.Inputs, engine.ArrayOf(inputs[name]))
	}
	for _, t := range outputs {
		b.Outputs = append(b.Outputs, engine.ArrayOf(t))
	}
	for _, a := range append(b.Inputs[:len(b.Inputs):len(b.Inputs)], b.Outputs...) {
		if err := s.Bind(a); err != nil {
			return err
		}
		defer a.Close()
	}
	return s.Run(ctx, b)
}

// Close closes the sessions.
func (r *servedRun) Close() error {
	var err error
	for _, s := range []engine.Session{r.front, r.back, r.norm} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	for _, p := range append(r.from, r.whole, r.rest) {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}
