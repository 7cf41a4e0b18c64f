// Package linalg accumulates scatter matrices of streamed observations, and decomposes matrices.
//
// A Scatter holds the number, the mean m and the scatter matrix of observations x_t,
//
//	S = sum_t (x_t - m)(x_t - m)ᵀ,
//
// so the observations themselves need not be stored. The scatter of a block of observations is
// computed in float32 about the block's own mean, which avoids cancellation. It is added in float64
// by the rule of Chan, Golub and LeVeque (1983) for blocks a and b,
//
//	S = S_a + S_b + n_a n_b / (n_a + n_b) (m_b - m_a)(m_b - m_a)ᵀ.
//
// For paired observations x and y, the Scatter of the concatenated vectors (x, y) contains that of
// x, that of y, and the products between x and y. A CrossScatter holds only the products between x
// and y, for comparisons of several x with several y.
//
// Eigen, LeadingEigen, Decompose, SVD and related functions decompose matrices in float64 or
// float32. For example, the eigenvalues and eigenvectors of a scatter matrix:
//
//	s := linalg.NewScatter[float64](p)
//	// rows: n x p; nil: the block is added to s alone; Scratch: memory to reuse
//	s.Add(linalg.Centre(rows, p), nil, new(linalg.Scratch))
//	values, vectors, err := linalg.Eigen(s.Square(0, p), p)
//
// All functions use gonum, whose BLAS and LAPACK package blas replaces by faster ones.
package linalg
