package demo

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/tensor"
)

// shrinkage is the share of each feature's variance that is added to it, so that features which nearly follow from
// others do not get huge weights.
const shrinkage = 1e-3

// discriminant solves Fisher's linear discriminant: with class means m_c, shares p_c and the covariance S within
// classes, the logit of class c is x' S^-1 m_c - m_c' S^-1 m_c / 2 + log p_c, the logarithm of the class's
// probability if the features are normal. x is n x d; weights are d x classes, bias has one value for each class.
// Every class must have a sample, and there must be more samples than classes.
func discriminant(x tensor.Tensor, labels []int, classes int) (weights, bias tensor.Tensor, err error) {
	means, counts := classMeans(x, labels, classes)
	for c, n := range counts {
		if n == 0 {
			return weights, bias, fmt.Errorf("linear discriminant: class %d has no samples", c)
		}
	}
	if len(labels) <= classes {
		return weights, bias, fmt.Errorf("linear discriminant: %d samples are too few for %d classes", len(labels), classes)
	}
	var factor mat.Cholesky
	if !factor.Factorize(covariance(x, labels, means)) {
		return weights, bias, errors.New("linear discriminant: a feature is constant or not finite")
	}
	var solved mat.Dense // d x classes
	if err := factor.SolveTo(&solved, means.T()); err != nil {
		return weights, bias, fmt.Errorf("linear discriminant: %w", err)
	}
	d := x.Shape[1]
	weights, bias = tensor.New(d, classes), tensor.New(classes)
	for c := range classes {
		for j := range d {
			weights.Data[j*classes+c] = float32(solved.At(j, c))
		}
		prior := math.Log(float64(counts[c]) / float64(len(labels)))
		bias.Data[c] = float32(prior - mat.Dot(means.RowView(c), solved.ColView(c))/2)
	}
	return weights, bias, nil
}

// classMeans is classes x d, with the number of samples of each class.
func classMeans(x tensor.Tensor, labels []int, classes int) (*mat.Dense, []int) {
	means, counts := mat.NewDense(classes, x.Shape[1], nil), make([]int, classes)
	for i, c := range labels {
		counts[c]++
		row := means.RawRowView(c)
		for j, v := range x.At(i).Data {
			row[j] += float64(v)
		}
	}
	for c, n := range counts {
		row := means.RawRowView(c)
		for j := range row {
			row[j] /= float64(max(1, n))
		}
	}
	return means, counts
}

// covariance is that within classes, d x d, its diagonal raised by the shrinkage.
func covariance(x tensor.Tensor, labels []int, means *mat.Dense) *mat.SymDense {
	n, d := x.Shape[0], x.Shape[1]
	centred := mat.NewDense(n, d, nil)
	for i, c := range labels {
		row, mean := centred.RawRowView(i), means.RawRowView(c)
		for j, v := range x.At(i).Data {
			row[j] = float64(v) - mean[j]
		}
	}
	classes, _ := means.Dims()
	s := mat.NewSymDense(d, nil)
	s.SymOuterK(1/float64(n-classes), centred.T())
	for j := range d {
		s.SetSym(j, j, s.At(j, j)*(1+shrinkage))
	}
	return s
}
