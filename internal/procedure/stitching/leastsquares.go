package stitching

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// fit sets the weights of the stitch to those of least squares. With the activations a of the first
// layer and b of the second one on the training images, at all positions, W and c minimise
//
//	sum |W a + c - b|^2 + ridge |W|^2,
//
// so that W is unique. The ridge is 1e-6 times the sum of squared deviations of a channel of a from
// its mean, averaged over the channels.
func (r *run) fit(ctx context.Context, net *stitchedNetwork, to tensor.Layer) error {
	input, err := rewrite.WithOutputs(net.Model, []string{inputName}) // outputs a, the stitch's input
	if err != nil {
		return err
	}
	const withScores = false // the session need not compute the class scores of model B
	session, err := r.job.B.Model.NewSession([]tensor.Layer{to}, withScores)
	if err != nil {
		return err
	}
	defer session.Close()
	buf, err := session.NewBuffers(batch)
	if err != nil {
		return err
	}
	both := linalg.NewScatter[float64](net.p + net.q)
	scratch := new(linalg.Scratch)
	err = r.outputs(ctx, input, 0, r.trainImages, func(at int, a tensor.Tensor) error {
		n := a.Shape[0]
		if err := session.Run(ctx, r.imagesB[at:at+n], buf); err != nil {
			return err
		}
		b := buf.Layer(0)
		if a.FirstNonFinite() >= 0 || b.FirstNonFinite() >= 0 {
			return fmt.Errorf("NaN or infinity in the activations of the training images from sample %d on", r.indices[at])
		}
		both.Add(linalg.Centre64(net.rows(a, b), net.p+net.q), nil, scratch)
		return nil
	})
	if err != nil {
		return err
	}
	weights, err := net.solve(both)
	if err != nil {
		return err
	}
	net.Model, err = rewrite.WithWeights(net.Model, weights)
	return err
}

// rows returns a row for each image and position: p channels of the first layer, q of the second.
// They are float64, since the fit depends on directions of small variance.
func (net *stitchedNetwork) rows(a, b tensor.Tensor) []float64 {
	n, width := a.Shape[0], net.p+net.q
	out := make([]float64, n*net.positions*width)
	for i := range n {
		za, zb := a.At(i).Data, b.At(i).Data
		for position := range net.positions {
			row := out[(i*net.positions+position)*width:][:width]
			for c := range net.p {
				row[c] = float64(za[c*net.positions+position])
			}
			for c := range net.q {
				if net.last { // the channels of the second layer are its last axis
					row[net.p+c] = float64(zb[position*net.q+c])
				} else {
					row[net.p+c] = float64(zb[c*net.positions+position])
				}
			}
		}
	}
	return out
}

// solve takes the scatter of the activations of both layers.
func (net *stitchedNetwork) solve(both *linalg.Scatter[float64]) (map[string]tensor.Tensor, error) {
	p, q := net.p, net.q
	s := mat.NewSymDense(p+q, both.Square(0, p+q))
	own, cross := mat.NewSymDense(p, nil), mat.NewDense(p, q, nil)
	var trace float64
	for i := range p {
		trace += s.At(i, i)
	}
	for i := range p {
		for j := i; j < p; j++ {
			own.SetSym(i, j, s.At(i, j))
		}
		own.SetSym(i, i, s.At(i, i)+max(1e-6*trace/float64(p), 1e-30)) // above 0 for constant activations too
		for j := range q {
			cross.Set(i, j, s.At(i, p+j))
		}
	}
	var c mat.Cholesky
	if !c.Factorize(own) {
		return nil, errors.New("the activations of the first layer are too large for least squares: set start: random")
	}
	var w mat.Dense // p x q
	if err := c.SolveTo(&w, cross); err != nil {
		if _, ill := err.(mat.Condition); !ill {
			return nil, err
		}
	}
	weight, err := net.Tensor(weightName)
	if err != nil {
		return nil, err
	}
	bias := tensor.New(q)
	for j := range q {
		offset := both.Mean[p+j]
		for i := range p {
			weight.Data[j*p+i] = float32(w.At(i, j))
			offset -= w.At(i, j) * both.Mean[i]
		}
		bias.Data[j] = float32(offset)
	}
	return map[string]tensor.Tensor{weightName: weight, biasName: bias}, nil
}
