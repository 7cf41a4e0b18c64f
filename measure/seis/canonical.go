package seis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// moments are the scatters of coordinates x (clean) and y (transformed) in two bases.
type moments interface {
	// correlations returns the canonical correlations, descending, and each pair's absolute cosine
	// in the space of activations.
	correlations() (rho, cos []float64, err error)
}

// principalMoments are moments in principal axes: each of x and y is uncorrelated.
type principalMoments struct {
	xx, yy  []float64  // diagonals of the scatters of x (p) and of y (q)
	xy      *mat.Dense // p x q
	overlap *mat.Dense // p x q: inner products of the axes of x with those of y
}

// correlations implements moments. Whitening scales the axes:
//
//	diag(xx)^-½ xy diag(yy)^-½ = P diag(rho) Qᵀ,  W = diag(xx)^-½ P,  V = diag(yy)^-½ Q.
func (m principalMoments) correlations() (rho, cos []float64, err error) {
	sx, sy := inverseRoots(m.xx), inverseRoots(m.yy)
	k := mat.DenseCopyOf(m.xy)
	scaleRows(k, sx)
	for i := range sx {
		for j, row := 0, k.RawRowView(i); j < len(row); j++ {
			row[j] *= sy[j]
		}
	}
	w, rho, v, err := linalg.Decompose(k)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", len(sx), len(sy), err)
	}
	scaleRows(w, sx)
	scaleRows(v, sy)
	for i := range rho { // rounding may have carried one a little beyond 1
		rho[i] = min(max(rho[i], 0), 1)
	}
	return rho, cosines(w, v, m.overlap), nil
}

func inverseRoots(variances []float64) []float64 {
	out := make([]float64, len(variances))
	for i, v := range variances {
		out[i] = 1 / math.Sqrt(v)
	}
	return out
}

func scaleRows(m *mat.Dense, by []float64) {
	for i, s := range by {
		row := m.RawRowView(i)
		for j := range row {
			row[j] *= s
		}
	}
}

// cosines returns the absolute cosines of canonical vectors in the space of the axes: for
// orthonormal axes A and B with overlap Aᵀ B (p x q), |<A w_i, B v_i>| / (|w_i| |v_i|). w is p x r
// and v is q x r, a vector in each column. Where a vector is zero, so is its cosine.
func cosines(w, v, overlap *mat.Dense) []float64 {
	var inX mat.Dense
	inX.Mul(overlap, v) // p x r
	ww, vv, wv := columnDots(w, w), columnDots(v, v), columnDots(w, &inX)
	cos := make([]float64, len(ww))
	for i := range cos {
		if norm := math.Sqrt(ww[i]) * math.Sqrt(vv[i]); norm > 0 {
			cos[i] = min(math.Abs(wv[i])/norm, 1)
		}
	}
	return cos
}

func columnDots(a, b *mat.Dense) []float64 {
	rows, cols := a.Dims()
	out := make([]float64, cols)
	for i := range rows {
		x, y := a.RawRowView(i), b.RawRowView(i)
		for j := range out {
			out[j] += x[j] * y[j]
		}
	}
	return out
}
