package invert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A ClassLoss is a loss of the class scores z of an image: the scores of the model's classes, or
// the logarithms of their probabilities if the model has these. y is the label and t a target.
type ClassLoss int

// The losses. A Gradient of the first two has a positive factor for each image.
const (
	// CrossEntropy is -log p_y, where p is the softmax of z. The factor is 1 / (1 - p_y), so that
	// the gradient does not vanish in float32 where p_y is close to 1.
	CrossEntropy ClassLoss = iota
	// TargetedDLR is (z_t - z_y) / D, where D = z_1 - (z_3 + z_4) / 2 and z_1 >= z_2 >= ... are the
	// sorted scores (Croce and Hein 2020). It needs four classes. The factor is D.
	TargetedDLR
	// Difference is z_t - z_y.
	Difference
)

// A Gradient computes the class scores of images and the gradients of a loss with respect to them,
// for attacks whose steps are not those of a Search. It must not be used by several goroutines at a
// time.
type Gradient struct {
	search Search
	shards []gradientShard
	images int
}

// A gradientShard holds the arrays of one of the concurrent runs.
type gradientShard struct {
	in, out         []*engine.Array
	x, scores, grad tensor.Tensor
	label, target   tensor.Tensor // one hot
}

// A GradientRow is an image with what is computed from it.
type GradientRow struct {
	Image         []float32 // c x h x w, with values in [0, 1]
	Label, Target int       // y and t
	Scores        []float32 // one for each class
	Gradient      []float32 // as Image
}

// NewGradient returns a Gradient for the classes of Misclassify and at most the given number of
// images at a time, of which it computes Batch together. Of the options it uses Batch and Graphs.
func NewGradient(m Misclassification, loss ClassLoss, images int, o Options) (*Gradient, error) {
	g := &Gradient{images: max(1, images)}
	s, err := newSearch(writeGradient, classObjective{m, loss}, o)
	if err == nil {
		g.search = *s
		err = g.open()
	}
	if err != nil {
		g.Close()
		return nil, fmt.Errorf("preparing gradients: %w", err)
	}
	return g, nil
}

// Batch returns the number of images that are computed together.
func (g *Gradient) Batch() int { return g.search.batch() }

// Run computes scores and gradients of rows, of any number.
func (g *Gradient) Run(ctx context.Context, rows []GradientRow) error {
	for {
		err := g.run(ctx, rows)
		if errors.Is(err, engine.ErrDeviceMemory) && g.search.halveBatch() {
			if err = g.open(); err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		return fmt.Errorf("computing gradients: %w", err)
	}
}

// Close releases the engine's session.
func (g *Gradient) Close() error {
	for _, s := range g.shards {
		for _, a := range slices.Concat(s.in, s.out) {
			a.Close()
		}
	}
	g.shards = nil
	return g.search.Close()
}

func (g *Gradient) open() error {
	if err := g.Close(); err != nil {
		return err
	}
	if err := g.search.open(g.search.batchSize(g.images)); err != nil {
		return err
	}
	for range g.search.shards {
		if err := g.bind(); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gradient) bind() error {
	n, classes := g.search.n, g.search.objective.(classObjective).classes()
	image := append([]int{n}, g.search.model.ImageShape()...)
	s := gradientShard{x: tensor.New(image...), grad: tensor.New(image...), scores: tensor.New(n, classes),
		label: tensor.New(n, classes), target: tensor.New(n, classes)}
	byName := map[string]tensor.Tensor{"x": s.x, "label": s.label, "target": s.target}
	for _, p := range g.search.inputs {
		s.in = append(s.in, engine.ArrayOf(byName[p.name]))
	}
	s.out = []*engine.Array{engine.ArrayOf(s.scores), engine.ArrayOf(s.grad)}
	g.shards = append(g.shards, s)
	for _, a := range slices.Concat(s.in, s.out) {
		if err := g.search.session.Bind(a); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gradient) run(ctx context.Context, rows []GradientRow) error {
	parts := slices.Collect(slices.Chunk(rows, g.search.n))
	errs := make([]error, len(g.shards))
	var wait sync.WaitGroup
	for k := range g.shards {
		wait.Go(func() {
			for i := k; i < len(parts) && errs[k] == nil; i += len(g.shards) {
				errs[k] = g.shards[k].run(ctx, g.search.session, parts[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// run computes at most as many rows as the arrays have. If there are fewer, the last is repeated.
func (s *gradientShard) run(ctx context.Context, session engine.Session, rows []GradientRow) error {
	clear(s.label.Data)
	clear(s.target.Data)
	for i := range s.x.Shape[0] {
		r := rows[min(i, len(rows)-1)]
		copy(s.x.At(i).Data, r.Image)
		s.label.At(i).Data[r.Label] = 1
		s.target.At(i).Data[r.Target] = 1
	}
	if err := session.Run(ctx, engine.Batch{Inputs: s.in, Outputs: s.out}); err != nil {
		return err
	}
	for i, r := range rows {
		copy(r.Scores, s.scores.At(i).Data)
		copy(r.Gradient, s.grad.At(i).Data)
	}
	return nil
}

// classObjective is the Objective whose gradient a Gradient computes.
type classObjective struct {
	Misclassification
	loss ClassLoss
}

func (o classObjective) check() error {
	if err := o.Misclassification.check(); err != nil {
		return err
	}
	if c := o.classes(); o.loss == TargetedDLR && c < 4 {
		return fmt.Errorf("the targeted difference of logits ratio needs at least 4 classes, and there are %d", c)
	}
	return nil
}

// write returns the scores and what the gradient is computed from. By the scores, the gradient of
// the difference is e = onehot(t) - onehot(y), and that of the ratio q, times D,
//
//	e - q (onehot(1) - (onehot(3) + onehot(4)) / 2).
func (o classObjective) write(s *stepBuilder) (losses, error) {
	z, scores, err := o.writeScores(s)
	if err != nil {
		return losses{}, err
	}
	b, classes := s.b, o.classes()
	label := s.addConstant("label", classes)
	var cotangent onnx.Value
	if o.loss == CrossEntropy {
		others := b.Sub(scores, b.Mul(label, b.Scalar(excluded)))
		cotangent = b.Sub(b.Softmax(others, 1), label)
	} else {
		cotangent = b.Sub(s.addConstant("target", classes), label)
	}
	if o.loss == TargetedDLR {
		largest, at := top(b, scores, 4)
		weights := tensor.Tensor{Shape: []int{1, 4}, Data: []float32{1, 0, -0.5, -0.5}}
		denominator := b.Add(b.ReduceSum(b.Mul(largest, b.Const("", weights)), true, 1), b.Scalar(1e-12))
		ratio := b.Div(b.ReduceSum(b.Mul(scores, cotangent), true, 1), denominator)
		weights.Shape = []int{1, 4, 1}
		hot := b.Op("OneHot", onnx.Attrs{"axis": -1}, at, b.Int(classes), b.Const("", tensor.Tensor{Shape: []int{2}, Data: []float32{0, 1}}))
		cotangent = b.Sub(cotangent, b.Mul(ratio, b.ReduceSum(b.Mul(hot, b.Const("", weights)), false, 1)))
	}
	if o.Model.Scores() == "probabilities" { // the derivative of log p is 1 / p
		p := b.Exp(scores)
		cotangent = b.Where(b.Op("Greater", nil, p, b.Scalar(smallestPositive)), b.Div(cotangent, p), b.Mul(p, b.Scalar(0)))
	}
	return losses{scores: scores, tensors: []onnx.Value{z},
		cotangents: []onnx.Value{s.castLike(o.ofOutputs(s, cotangent), z)}}, nil
}

// top returns the k largest values of each row and their indices.
func top(b *onnx.Builder, v onnx.Value, k int) (values, indices onnx.Value) {
	var out []onnx.Value
	if b.Opset() < 10 {
		out = b.Ops("TopK", 2, onnx.Attrs{"axis": 1, "k": k}, v)
	} else {
		out = b.Ops("TopK", 2, onnx.Attrs{"axis": 1}, v, b.Ints(k))
	}
	return out[0], out[1]
}

// writeGradient is writeStep for a Gradient: its inputs are constants, and it has no state.
func writeGradient(objective Objective, _ Options, n int) (*onnx.Model, *stepBuilder, error) {
	s, err := newStepBuilder(objective, n)
	if err != nil {
		return nil, nil, err
	}
	s.x = s.addConstant("x", s.image...)
	l, err := objective.write(s)
	if err != nil {
		return nil, nil, err
	}
	s.replaceShortcuts()
	gradient, err := s.gradient(l)
	if err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", objective.models()[0].Path(), err)
	}
	s.output("scores", l.scores)
	s.output("gradient", gradient)
	return s.graph()
}
