// Package linalg is the linear algebra of measures that compare the second moments of paired observations, and
// the fast BLAS behind gonum.
//
// A Scatter streams. It holds the number, the mean and the centred second moments of observations,
//
//	S = sum_t (x_t - m)(x_t - m)ᵀ,
//
// so the observations themselves need not be kept. A block of observations is multiplied in float32 around its own
// mean, where nothing cancels, and added in float64 by the rule of Chan, Golub and LeVeque (1983),
//
//	S = S_a + S_b + n_a n_b / (n_a + n_b) (m_b - m_a)(m_b - m_a)ᵀ.
//
// For paired observations, x and y are laid end to end: the scatter of (x, y) has that of x, that of y and the one
// between them as its blocks.
//
// A Joint is the scatter between two sets of variables, for comparisons of several sets with several others.
//
// Eigen, LeadingEigen, Decompose, SVD and their kin decompose what was gathered, in float64 or in float32.
//
// Everything is written against gonum. Accelerate puts OpenBLAS, MKL or Apple's Accelerate behind it where one is
// installed: a 1024 x 1024 symmetric eigenproblem then takes a seventh of a second in place of eleven.
package linalg
