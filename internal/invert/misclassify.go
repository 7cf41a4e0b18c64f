package invert

import (
	"context"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Misclassification is the objective of an attack on a classifier. Its loss is the log
// probability of the correct class y, log p_y with p = softmax(m(x')), where m(x') are the logits
// for the adversarial image x'. The best image is the one with the smallest margin, log p_y - max
// over k != y of log p_k.
type Misclassification struct {
	Model *model.Model
	// Outputs selects the model's outputs that are classes. Labels are indices into Outputs. Nil: all
	// outputs.
	Outputs []int
}

// Misclassify returns the objective of an attack on a classifier. outputs selects the classes; see
// Misclassification. The field Labels of a Problem holds the correct classes.
func Misclassify(m *model.Model, outputs []int) Misclassification {
	return Misclassification{m, outputs}
}

func (o Misclassification) models() []*model.Model { return []*model.Model{o.Model} }

func (o Misclassification) classes() int {
	if o.Outputs != nil {
		return len(o.Outputs)
	}
	return o.Model.Classes()
}

func (o Misclassification) check() error {
	path := o.Model.Path()
	switch {
	case o.Model.Classes() == 0:
		return fmt.Errorf("model %s has no output of class scores", path)
	case o.classes() < 2:
		return errors.New("an attack needs at least two classes")
	case o.Model.NoGradient() != "":
		return fmt.Errorf("model %s %s", path, o.Model.NoGradient())
	}
	for _, c := range o.Outputs {
		if c < 0 || c >= o.Model.Classes() {
			return fmt.Errorf("class %d is not in the range of the %d classes of model %s", c, o.Model.Classes(), path)
		}
	}
	return nil
}

func (o Misclassification) constants(_ context.Context, p Problem) ([]tensor.Tensor, error) {
	n := p.Images.Shape[0]
	if len(p.Labels) != n {
		return nil, fmt.Errorf("%d labels for %d images", len(p.Labels), n)
	}
	oneHot := tensor.New(n, o.classes())
	for i, label := range p.Labels {
		if label < 0 || label >= o.classes() {
			return nil, fmt.Errorf("%s has label %d, but there are %d classes", p.name(i), label, o.classes())
		}
		oneHot.At(i).Data[label] = 1
	}
	return []tensor.Tensor{oneHot}, nil
}

// An attack without a gradient fails, which is a result and not an error.
func (Misclassification) checkGradient([]float32, []tensor.Tensor) error { return nil }

// The gradient of log p_y with respect to the logits is (1 - p_y) (oneHot - r), where r is the
// softmax over the other classes. As the gradient is normalised later, oneHot - r serves, which
// does not vanish in float32 if p_y is close to 1.
func (o Misclassification) write(s *stepBuilder) (losses, error) {
	z, scores, err := o.writeScores(s)
	if err != nil {
		return losses{}, err
	}
	b := s.b
	oneHot := s.addConstant("label", o.classes())
	logs := scores
	if o.Model.Scores() != "probabilities" {
		logs = b.LogSoftmax(scores, 1)
	}
	correct := b.ReduceSum(b.Mul(logs, oneHot), true, 1)
	others := b.Sub(logs, b.Mul(oneHot, b.Scalar(excluded)))
	// The cotangent is the gradient by the scores, up to a positive factor: for probabilities it is
	// 1 / p_y at class y.
	cotangent := oneHot
	if o.Model.Scores() != "probabilities" {
		cotangent = b.Sub(oneHot, b.Softmax(others, 1))
	}
	return losses{
		loss:      correct,
		criterion: b.Sub(correct, b.ReduceMax(others, true, 1)),
		tensors:   []onnx.Value{z}, cotangents: []onnx.Value{s.castLike(o.ofOutputs(s, cotangent), z)},
	}, nil
}

// writeScores adds the model and returns the tensor of its scores, and the scores of the classes, n
// x classes: logarithms for a model with probabilities.
func (o Misclassification) writeScores(s *stepBuilder) (z, scores onnx.Value, err error) {
	z, err = s.include(o.Model, o.Model.ScoresTensor())
	if err != nil {
		return "", "", err
	}
	b := s.b
	scores = b.Reshape(b.Cast(z, onnx.Float), s.n, o.Model.Classes())
	if o.Outputs != nil {
		scores = b.Gather(scores, b.Ints(o.Outputs...), 1)
	}
	if o.Model.Scores() == "probabilities" {
		scores = b.Log(b.Op("Max", nil, scores, b.Scalar(smallestPositive)))
	}
	return z, scores, nil
}

// ofOutputs returns the gradient by the model's outputs, given that by the scores of the classes.
func (o Misclassification) ofOutputs(s *stepBuilder, cotangent onnx.Value) onnx.Value {
	if o.Outputs == nil {
		return cotangent
	}
	return s.b.MatMul(cotangent, s.b.Const("", o.selection()))
}

const excluded = 1e30

// selection returns the matrix, classes x outputs, from a gradient by classes to one by outputs.
func (o Misclassification) selection() tensor.Tensor {
	t := tensor.New(len(o.Outputs), o.Model.Classes())
	for i, c := range o.Outputs {
		t.At(i).Data[c] = 1
	}
	return t
}
