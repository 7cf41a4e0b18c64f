package lie

import (
	"fmt"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/transform"
)

// The field of a layer says how its values lie on the image.
type layer struct {
	name  string
	field field
}

// A program computes the Lie derivatives of layers for n images x under one generator X. z is the
// activation of a layer l, J its Jacobian with respect to x, and L z = J X x - X z its Lie
// derivative. L_l is that of the part of the network that computes l from the image and the
// measured layers before l. J_l is the Jacobian of the output with respect to l.
type program struct {
	b      *onnx.Builder // of the graph
	n      int
	image  onnx.Value // x: n images
	dx     onnx.Value // X x
	layers []layer
	z      []onnx.Value // of each layer, and last the output if it has class scores
	moved  []onnx.Value // X z of each z, empty for zero
	lie    []onnx.Value // L z of each z
	parts  []onnx.Value // J_l L_l of each layer l, and last L of the part after all layers
}

// Names with spaces are unlikely to be those of tensors of the model.
const (
	imageName = "lie images"
	sumsName  = "lie sums"
)

// The columns of a layer, each a sum over the values of a sample.
const (
	lieSquares  = iota // |L z|^2
	nullSquares        // |J X x - X z'|^2 with z' of another sample, for the value by chance (null)
	squares            // |z|^2
	partSquares        // |J_l L_l|^2; for the output, that of the part after all layers
	columns
)

// tensors counts the layers, and the output if it has class scores.
func tensors(m *model.Model, layers int) int {
	if m.Classes() > 0 {
		return layers + 1
	}
	return layers
}

// newProgram writes the nodes for batches of n images. If parts is set, it writes those for the
// parts of the network too; the model must then have class scores.
func newProgram(m *model.Model, layers []layer, g transform.Generator, slopes string, n int, parts bool) (*program, error) {
	p := &program{b: onnx.NewBuilder(m.Opset()), n: n, layers: layers}
	shape := m.ImageShape()
	p.image = p.b.Input(imageName, onnx.Float, append([]int{n}, shape...)...)
	names, output := tensorNames(m, layers)
	values, err := m.Include(p.b, p.image, n, names...)
	if err != nil {
		return nil, err
	}
	p.z = values[:len(layers):len(layers)]
	if m.Classes() > 0 {
		p.z = append(p.z, probabilities(p.b, m, values[output]))
	}
	p.dx = generateImage(p.b, g, slopes, n, shape, p.image)
	p.move(g, slopes)
	if err := p.differentiate(); err != nil {
		return nil, err
	}
	if parts {
		if err := p.differentiateParts(); err != nil {
			return nil, err
		}
	}
	return p, p.b.Err()
}

// tensorNames returns the names of the layers and the class scores, each once, and the index of the
// scores; -1 if there are none.
func tensorNames(m *model.Model, layers []layer) (names []string, output int) {
	output = -1
	for i, l := range layers {
		names = append(names, l.name)
		if m.Classes() > 0 && l.name == m.ScoresTensor() {
			output = i
		}
	}
	if output < 0 && m.Classes() > 0 {
		output = len(names)
		names = append(names, m.ScoresTensor())
	}
	return names, output
}

// probabilities returns what the output of a model stands for, given its class scores.
func probabilities(b *onnx.Builder, m *model.Model, scores onnx.Value) onnx.Value {
	if m.Scores() == "logits" {
		return b.Softmax(scores, 1)
	}
	return scores
}

// move writes the nodes of X z.
func (p *program) move(g transform.Generator, slopes string) {
	for i, l := range p.layers {
		p.moved = append(p.moved, l.field.generate(p.b, g, slopes, p.n, p.z[i]))
	}
	p.moved = append(p.moved, "") // of the output
}

// differentiate writes the nodes of L z = J X x - X z.
func (p *program) differentiate() error {
	tangents, err := grad.JVP(p.b, p.z, []onnx.Value{p.image}, []onnx.Value{p.dx})
	if err != nil {
		return err
	}
	p.setLie(tangents)
	return nil
}

func (p *program) setLie(tangents []onnx.Value) {
	for i, t := range tangents {
		p.lie = append(p.lie, p.subtract(t, p.moved[i]))
	}
}

// subtract returns a - b, or a if b is "", which stands for zero.
func (p *program) subtract(a, b onnx.Value) onnx.Value {
	if b == "" {
		return a
	}
	return p.b.Sub(a, b)
}

// differentiateParts writes the nodes of J_l L_l. grad.Pushforward replaces the tangent that
// arrives at each layer by X z, as if the part before it were equivariant; the arriving tangent
// minus X z is L_l. grad.Pushforwards then multiplies each L_l by J_l.
func (p *program) differentiateParts() error {
	last := len(p.layers)
	own := make([]onnx.Value, last)
	at := map[onnx.Value]grad.Tangent{p.image: func(*onnx.Builder, onnx.Value) onnx.Value { return p.dx }}
	origins := make([]onnx.Value, last) // what the network goes on with, where a layer is a copy of it
	graph := p.b.Snapshot()
	for i := range own {
		origins[i] = onnx.Value(graph.Origin(string(p.z[i])))
		if at[origins[i]] != nil {
			continue // another layer is the same tensor, with the same tangent
		}
		at[origins[i]] = func(b *onnx.Builder, arriving onnx.Value) onnx.Value {
			switch moved := p.moved[i]; {
			case arriving == "" && moved != "":
				own[i] = b.Neg(moved)
			case arriving != "" && moved != "":
				own[i] = b.Sub(arriving, moved)
			default:
				own[i] = arriving
			}
			return p.moved[i]
		}
	}
	rest, err := grad.Pushforward(p.b, p.z, at)
	if err != nil {
		return err
	}
	directions := make([]map[onnx.Value]grad.Tangent, last)
	for i, d := range own {
		directions[i] = map[onnx.Value]grad.Tangent{origins[i]: func(*onnx.Builder, onnx.Value) onnx.Value { return d }}
	}
	carried, err := grad.Pushforwards(p.b, p.z[last:], directions)
	if err != nil {
		return err
	}
	for _, c := range carried {
		p.parts = append(p.parts, c[0])
	}
	p.parts = append(p.parts, rest[last]) // of the part after all layers
	return nil
}

// The output of model has a row for each image: the sums lieSquares to partSquares of each layer,
// then of the output. It may have further outputs.
func (p *program) model(outputs ...string) (*onnx.Model, error) {
	b := p.b
	sum := func(v onnx.Value) onnx.Value {
		if v == "" {
			return b.Full(0, p.n, 1)
		}
		return sumOfSquares(b, v)
	}
	next := make([]int, p.n)
	for i := range next {
		next[i] = (i + 1) % p.n
	}
	var all []onnx.Value
	for i := range p.z {
		cells := [columns]onnx.Value{lieSquares: sum(p.lie[i]), nullSquares: sum(""), squares: sum(p.z[i]), partSquares: sum("")}
		if moved := p.moved[i]; moved != "" { // L z + X z - X z' = J X x - X z'
			other := b.Gather(moved, b.Ints(next...), 0)
			cells[nullSquares] = sum(b.Sub(b.Add(p.lie[i], moved), other))
		}
		if p.parts != nil {
			cells[partSquares] = sum(p.parts[i])
		}
		all = append(all, cells[:]...)
	}
	b.Output(sumsName, b.Concat(1, all...))
	m, err := b.Model()
	if err != nil {
		return nil, fmt.Errorf("writing Lie derivatives: %w", err)
	}
	return rewrite.WithOutputs(m, append(outputs, sumsName))
}

// sumOfSquares returns the squared norm of each of n samples, n x 1.
func sumOfSquares(b *onnx.Builder, v onnx.Value) onnx.Value {
	rows := b.Flatten(v, 1)
	return b.ReduceSum(b.Mul(rows, rows), true, 1)
}
