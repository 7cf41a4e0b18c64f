package probe

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/tensor"
)

// maxRidgeDim bounds the length d of vectors: ridge decomposes a d x d matrix.
const maxRidgeDim = 8192

// penalties are the values of lambda, relative to the mean eigenvalue of XᵀX. The validation
// samples choose.
var penalties = []float64{0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}

// ridge fits a probe that is a linear layer with weights w and bias c. It minimises |X w + c - y|^2
// + lambda |w|^2 for the vectors X of the training samples, one in each row, and what they are to
// predict, y. With X centred and the eigenvectors Q of XᵀX, with eigenvalues Λ,
//
//	w = Q (Λ + lambda)^-1 Qᵀ Xᵀ y.
//
// Classes are encoded as one-hot vectors.
func (p *probeSpec) ridge() (map[string]tensor.Tensor, error) {
	d, outputs := p.input.width(), p.outputs()
	if d > maxRidgeDim {
		return nil, fmt.Errorf("ridge accepts vectors of at most %d numbers, not %d: pool the layer", maxRidgeDim, d)
	}
	m, err := p.moments()
	if err != nil {
		return nil, err
	}
	values, q, err := linalg.Eigen(m.xx, d)
	if err != nil {
		return nil, err
	}
	var qxy mat.Dense // d x outputs
	qxy.Mul(q.T(), mat.NewDense(d, outputs, m.xy))
	var trace float64
	for _, v := range values {
		trace += max(v, 0)
	}
	best, smallest := map[string]tensor.Tensor(nil), math.Inf(1)
	for _, penalty := range penalties {
		weights := m.solution(q, &qxy, values, penalty*trace/float64(d))
		loss, err := p.validationError(weights)
		if err != nil {
			return nil, err
		}
		if loss < smallest || best == nil {
			best, smallest = weights, loss
		}
	}
	return best, nil
}

type secondMoments struct {
	x, y   []float64 // means
	xx, xy []float64 // XᵀX (d x d, upper triangle) and Xᵀy (d x outputs)
}

// The means first, then the centred products.
func (p *probeSpec) moments() (*secondMoments, error) {
	d, k := p.input.width(), p.outputs()
	m := &secondMoments{make([]float64, d), make([]float64, k), make([]float64, d*d), make([]float64, d*k)}
	src := &source{probeSpec: p, samples: p.train}
	n := float64(len(p.train))
	err := src.blocks(func(x, y []float64) {
		for i := range len(x) / d {
			for j, v := range x[i*d : (i+1)*d] {
				m.x[j] += v / n
			}
			for j, v := range y[i*k : (i+1)*k] {
				m.y[j] += v / n
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = src.blocks(func(x, y []float64) {
		rows := len(x) / d
		for i := range rows {
			for j := range d {
				x[i*d+j] -= m.x[j]
			}
			for j := range k {
				y[i*k+j] -= m.y[j]
			}
		}
		at := blas64.General{Rows: rows, Cols: d, Stride: d, Data: x}
		to := blas64.General{Rows: rows, Cols: k, Stride: k, Data: y}
		blas64.Syrk(blas.Trans, 1, at, 1, blas64.Symmetric{N: d, Stride: d, Data: m.xx, Uplo: blas.Upper})
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, at, to, 1, blas64.General{Rows: d, Cols: k, Stride: k, Data: m.xy})
	})
	return m, err
}

// blocks calls use with x, b x d, and y, b x outputs, which it may overwrite.
func (s *source) blocks(use func(x, y []float64)) error {
	const block = 256
	k := s.outputs()
	for at := 0; at < len(s.samples); at += block {
		var places []int
		for i := at; i < min(at+block, len(s.samples)); i++ {
			places = append(places, i) // indices into s.samples
		}
		b, err := s.Batch(context.Background(), places)
		if err != nil {
			return err
		}
		x := tensor.Float64s(b.Inputs[0].Data)
		y := make([]float64, len(places)*k)
		for i, v := range b.Target.Data {
			y[i] = float64(v)
		}
		for i, c := range b.Classes {
			y[i*k+c] = 1
		}
		use(x, y)
	}
	return nil
}

// solution returns weights by the names of train.MLP. Directions without variance get weight 0.
func (m *secondMoments) solution(q, qxy *mat.Dense, values []float64, lambda float64) map[string]tensor.Tensor {
	d, k := qxy.Dims()
	scaled := mat.NewDense(d, k, nil)
	for i, v := range values {
		if v+lambda <= 1e-12*values[0] || v <= 0 {
			continue
		}
		for j := range k {
			scaled.Set(i, j, qxy.At(i, j)/(v+lambda))
		}
	}
	var w mat.Dense
	w.Mul(q, scaled)
	weight, bias := tensor.New(d, k), tensor.New(k)
	for j := range k {
		c := m.y[j]
		for i := range d {
			weight.Data[i*k+j] = float32(w.At(i, j))
			c -= m.x[i] * w.At(i, j)
		}
		bias.Data[j] = float32(c)
	}
	return map[string]tensor.Tensor{"layer1.weight": weight, "layer1.bias": bias}
}

// validationError is summed over outputs and averaged over samples.
func (p *probeSpec) validationError(weights map[string]tensor.Tensor) (float64, error) {
	w, c := weights["layer1.weight"], weights["layer1.bias"]
	d, k := w.Shape[0], w.Shape[1]
	wide := tensor.Float64s(w.Data)
	var sum float64
	src := &source{probeSpec: p, samples: p.validation}
	err := src.blocks(func(x, y []float64) {
		for i := range len(x) / d {
			for j := range k {
				y[i*k+j] -= float64(c.Data[j])
			}
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, -1, blas64.General{Rows: len(x) / d, Cols: d, Stride: d, Data: x},
			blas64.General{Rows: d, Cols: k, Stride: k, Data: wide}, 1, blas64.General{Rows: len(x) / d, Cols: k, Stride: k, Data: y})
		for _, v := range y {
			sum += v * v
		}
	})
	return sum / float64(len(p.validation)), err
}
