package invert

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// An Objective is a loss that a search minimises by gradient descent on an image x', one for each
// given image x. m(x) is the representation of x by a model m. Match, Contrast, NormalisedContrast
// and Misclassify return one.
type Objective interface {
	// The size of the images is that of the first model's input.
	models() []*model.Model
	check() error
	// constants returns what the loss of each sample depends on besides x', one array for each
	// input that write declares.
	constants(ctx context.Context, p Problem) ([]tensor.Tensor, error)
	// checkGradient is called if the gradients of all samples of the first batch are 0; it returns
	// an error if they should not be.
	checkGradient(loss []float32, constants []tensor.Tensor) error
	write(s *stepBuilder) (losses, error)
}

type losses struct {
	loss       onnx.Value   // n x 1: the loss whose gradient is computed
	criterion  onnx.Value   // n x 1: the best image is the one with the smallest criterion
	scores     onnx.Value   // n x classes: the scores of a classObjective, which has no loss and criterion
	tensors    []onnx.Value // tensors of the models that the loss depends on
	cotangents []onnx.Value // d loss / d tensors, up to a positive factor for each sample
}

// A Term is a weighted distance between the representations of x' and x, |m(x') - m(x)|_2.
type Term struct {
	Model  *model.Model
	Layer  tensor.Layer // one of Model.Layers()
	Weight float64      // positive: minimised; negative: maximised
	// Relative divides the distance by |m(x)|_2.
	Relative bool
}

// Distances is an objective whose loss is the sum of the terms. Images have the size of the first
// term's model and are resized for the others.
type Distances []Term

// Match returns the loss |m(x') - m(x)|_2 at a layer.
func Match(m *model.Model, layer tensor.Layer) Distances {
	return Distances{{Model: m, Layer: layer, Weight: 1}}
}

// Contrast returns the loss |a(x') - a(x)|_2 - |b(x') - b(x)|_2. It is small for images whose
// representation by a is that of x, and whose representation by b is not.
func Contrast(a *model.Model, layerA tensor.Layer, b *model.Model, layerB tensor.Layer) Distances {
	return Distances{{Model: a, Layer: layerA, Weight: 1}, {Model: b, Layer: layerB, Weight: -1}}
}

// NormalisedContrast returns the loss in the code of Nanda et al. (2022, on STIR): Contrast with
// each distance divided by the norm of the representation of x, and the second weighted by beta
// (0.1 in that code).
func NormalisedContrast(a *model.Model, layerA tensor.Layer, b *model.Model, layerB tensor.Layer, beta float64) Distances {
	return Distances{
		{Model: a, Layer: layerA, Weight: 1, Relative: true},
		{Model: b, Layer: layerB, Weight: -beta, Relative: true},
	}
}

func (d Distances) models() []*model.Model {
	list := make([]*model.Model, len(d))
	for i, t := range d {
		list[i] = t.Model
	}
	return list
}

func (d Distances) check() error {
	if len(d) == 0 {
		return errors.New("the loss has no terms: add at least one")
	}
	for _, t := range d {
		if t.Weight == 0 || math.IsNaN(t.Weight) || math.IsInf(t.Weight, 0) {
			return fmt.Errorf("weight of layer %q in the loss is %v: it must be finite and not 0", t.Layer.Name, t.Weight)
		}
		if why := t.Model.NoGradient(); why != "" {
			return fmt.Errorf("model %s %s", t.Model.Path(), why)
		}
	}
	return nil
}

// constants returns the representations, n x d, and for a relative term its weight divided by their
// norm, n x 1.
func (d Distances) constants(ctx context.Context, p Problem) ([]tensor.Tensor, error) {
	var list []tensor.Tensor
	for _, t := range d {
		z, err := Represent(ctx, t.Model, t.Layer, p.Images)
		if err != nil {
			return nil, err
		}
		list = append(list, z)
		if !t.Relative {
			continue
		}
		scale := tensor.New(z.Shape[0], 1)
		for i := range scale.Data {
			// Infinite for a representation of zeros: the sample is then dropped.
			scale.Data[i] = float32(t.Weight / tensor.Norm(z.At(i).Data))
		}
		list = append(list, scale)
	}
	return list, nil
}

// checkGradient returns an error for a single absolute term without gradient, although x' and x
// differ in it by more than a thousandth of the norm.
func (d Distances) checkGradient(loss []float32, constants []tensor.Tensor) error {
	if len(d) > 1 || d[0].Relative {
		return nil
	}
	for i, v := range loss {
		if float64(v) > 1e-3*tensor.Norm(constants[0].At(i).Data) {
			return fmt.Errorf("layer %q of model %s has no gradient with respect to the image: operators before it round or compare, or all its units are inactive", d[0].Layer.Name, d[0].Model.Path())
		}
	}
	return nil
}

func (d Distances) write(s *stepBuilder) (losses, error) {
	var out losses
	for i, t := range d {
		z, err := s.include(t.Model, t.Layer.Name)
		if err != nil {
			return out, err
		}
		width := tensor.Size(t.Layer.Shape)
		target := s.addConstant(fmt.Sprintf("target %d", i), width)
		scale := s.b.Scalar(float32(t.Weight))
		if t.Relative {
			scale = s.addConstant(fmt.Sprintf("scale %d", i), 1)
		}
		delta := s.b.Sub(s.b.Reshape(s.b.Cast(z, onnx.Float), s.n, width), target)
		length := s.b.Sqrt(s.b.ReduceSum(s.b.Mul(delta, delta), true, 1))
		term := s.b.Mul(length, scale)
		if out.loss == "" {
			out.loss = term
		} else {
			out.loss = s.b.Add(out.loss, term)
		}
		// The gradient of |delta| is delta / |delta|, and 0 where delta is 0.
		cotangent := s.b.Mul(delta, s.b.Div(scale, s.b.Op("Max", nil, length, s.b.Scalar(smallestPositive))))
		out.tensors = append(out.tensors, z)
		out.cotangents = append(out.cotangents, s.castLike(cotangent, z))
	}
	out.criterion = out.loss
	return out, nil
}

// smallestPositive replaces smaller divisors and probabilities, so that no result is infinite or
// NaN.
const smallestPositive = 1e-30
