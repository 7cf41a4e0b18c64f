package autoencoder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Settings are the settings of training a layer of m units. Of the FitOptions, Epochs has the
// default 40 and Batch 100, and J is the objective. The weights of the best epoch (KeepLast: false)
// are early ones with a large Decay, which increases the reconstruction error.
type Settings struct {
	Units     int             // m
	Decay     float64         // coefficient of the weight decay, which leaves out the biases
	Target    float64         // target mean activation of units, within (-1, 1)
	Weight    float64         // coefficient of the sparsity penalty; 0: none
	Rate      float64         // learning rate of Adam if Optimiser is nil; 0: 0.002
	Optimiser train.Optimiser // nil: Adam with Rate
	Schedule  train.Schedule  // of the learning rate; nil: half a cosine, from factor 1 to 0
	Clip      float64         // bound of the norm of all gradients together; 0: none
	Engine    ort.Options
	train.FitOptions
}

func (s Settings) complete() Settings {
	s.Epochs, s.Batch, s.Rate = cmp.Or(s.Epochs, 40), cmp.Or(s.Batch, 100), cmp.Or(s.Rate, 0.002)
	if s.Optimiser == nil {
		s.Optimiser = train.Adam{Rate: s.Rate}
	}
	if s.Schedule == nil {
		s.Schedule = train.Cosine(0)
	}
	return s
}

func (s Settings) check(x, validation tensor.Tensor) error {
	switch {
	case x.Rank() != 2 || validation.Rank() != 2 || x.Shape[1] != validation.Shape[1]:
		return fmt.Errorf("patterns have the shape %v, and validation patterns %v: both must be n x values", x.Shape, validation.Shape)
	case x.Shape[0] == 0 || validation.Shape[0] == 0:
		return errors.New("no patterns are given")
	case s.Units < 1:
		return fmt.Errorf("units is %d: at least 1 is needed", s.Units)
	case !(s.Decay >= 0) || !(s.Weight >= 0) || math.IsInf(s.Decay+s.Weight, 0):
		return fmt.Errorf("decay is %g and sparsity weight %g: both must be at least 0", s.Decay, s.Weight)
	case s.Weight > 0 && !(s.Target > -1 && s.Target < 1):
		return fmt.Errorf("target activation is %g: it must lie between -1 and 1", s.Target)
	}
	for _, t := range []tensor.Tensor{x, validation} {
		for i, v := range t.Data {
			if !(v >= -1 && v <= 1) {
				return fmt.Errorf("pattern %d has the value %g: values must lie in [-1, 1]", i/t.Shape[1], v)
			}
		}
	}
	return nil
}

// A Layer is a trained autoencoder of m units on n values.
type Layer struct {
	W1, B1 tensor.Tensor // m x n, m
	W2, B2 tensor.Tensor // n x m, n
	Curve  []Point       // results of the epochs
}

// A Point holds the results of an epoch.
type Point struct {
	Training   float64 // mean over the epoch's batches of J, each before its step
	Validation float64 // the mean of |x - y|^2 over the validation patterns after the epoch
	Objective  float64 // J over the validation patterns
	RolledBack bool    // the epoch was undone
}

const (
	w1, b1, w2, b2 = "w1", "b1", "w2", "b2"
	hidden         = "h"
)

// Train trains a layer on patterns, p x n, and validates it on others, q x n. It returns an error
// if a value lies outside [-1, 1] or the settings are invalid.
func Train(ctx context.Context, rt *ort.Runtime, patterns, validation tensor.Tensor, s Settings) (*Layer, error) {
	s = s.complete()
	if err := s.check(patterns, validation); err != nil {
		return nil, fmt.Errorf("training an autoencoder: %w", err)
	}
	network, err := network(patterns.Shape[1], s)
	if err != nil {
		return nil, err
	}
	return fit(ctx, rt, network, patterns, validation, s)
}

func fit(ctx context.Context, rt *ort.Runtime, network *onnx.Model, patterns, validation tensor.Tensor, s Settings) (*Layer, error) {
	s = s.complete()
	n := patterns.Shape[1]
	t, err := train.New(rt, train.Spec{Model: network, Output: "y", Loss: train.SquaredError, Optimiser: s.Optimiser,
		Schedule: s.Schedule, Clip: s.Clip, Penalty: s.penalty(n), Engine: s.Engine})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	source := func(x tensor.Tensor) train.Source {
		return &train.Arrays{Inputs: []tensor.Tensor{x}, Targets: train.Targets{Target: x}}
	}
	epochs, err := t.Fit(ctx, source(patterns), source(validation), s.FitOptions)
	if err != nil {
		return nil, err
	}
	return layer(t.Weights(), epochs, n), nil
}

// layer returns the trained layer. It multiplies losses by n, since the trainer's loss is the mean
// over the n values, and transposes the weights, which the trainer stores as inputs x outputs.
func layer(w map[string]tensor.Tensor, epochs []train.Epoch, n int) *Layer {
	l := &Layer{W1: transposed(w[w1]), B1: w[b1], W2: transposed(w[w2]), B2: w[b2]}
	for _, e := range epochs {
		l.Curve = append(l.Curve, Point{Training: float64(n) * e.Train, Validation: float64(n) * e.Validation,
			Objective: float64(n) * e.Objective, RolledBack: e.RolledBack})
	}
	return l
}

// network returns an untrained autoencoder. Weights are drawn uniformly as in Glorot and Bengio
// (2010) for tanh. Sparse units start at their target activation.
func network(n int, s Settings) (*onnx.Model, error) {
	m, bias := s.Units, tensor.New(s.Units)
	if s.Weight > 0 {
		for i := range bias.Data {
			bias.Data[i] = float32(math.Atanh(s.Target))
		}
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, n)
	weights := func(name string, in, out int) onnx.Value {
		r, bound, w := seed.Rand(s.Seed, "autoencoder", name), math.Sqrt(6/float64(in+out)), tensor.New(in, out)
		for i := range w.Data {
			w.Data[i] = float32(bound * (2*r.Float64() - 1))
		}
		return b.Const(name, w)
	}
	h := b.Tanh(b.Gemm(x, weights(w1, n, m), b.Const(b1, bias), nil))
	b.Output(hidden, h)
	b.Output("y", b.Tanh(b.Gemm(hidden, weights(w2, m, n), b.Const(b2, tensor.New(n)), nil)))
	return b.Model()
}

// penalty returns the terms of J besides the reconstruction error, divided by n as the loss is.
func (s Settings) penalty(n int) func(*onnx.Builder) onnx.Value {
	if s.Decay == 0 && s.Weight == 0 {
		return nil
	}
	return func(b *onnx.Builder) onnx.Value {
		sum := b.Scalar(0)
		add := func(v onnx.Value, factor float64) {
			sum = b.Add(sum, b.Mul(b.ReduceSum(b.Mul(v, v), false), b.Scalar(float32(factor/float64(n)))))
		}
		if s.Decay > 0 {
			add(w1, s.Decay)
			add(w2, s.Decay)
		}
		if s.Weight > 0 {
			add(b.Sub(b.ReduceMean(hidden, false, 0), b.Scalar(float32(s.Target))), s.Weight)
		}
		return sum
	}
}

func transposed(w tensor.Tensor) tensor.Tensor {
	out := tensor.New(w.Shape[1], w.Shape[0])
	for i := range w.Shape[0] {
		for j := range w.Shape[1] {
			out.Data[j*w.Shape[0]+i] = w.Data[i*w.Shape[1]+j]
		}
	}
	return out
}
