package seis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/linalg"
)

// shuffledPairs says which observation's y each observation's x of a block is paired with, for the null. It is a
// permutation of the block's observations.
type shuffledPairs struct {
	order []int
	match []int // of cycles of four, else nil; see cyclesOfFour
}

// cyclesOfFour returns pairs in cycles of four. A block is cut into four quarters. match, which is its own inverse, says
// with which observation of the next quarter each one of a quarter is paired, around to the first. addWithNull needs
// fewer products for them.
func cyclesOfFour(match []int) shuffledPairs {
	q := len(match)
	order := make([]int, 4*q)
	for i, j := range match {
		if j < 0 || j >= q || match[j] != i {
			panic(fmt.Sprintf("seis: observation %d is matched with %d, which is not matched with it", i, j))
		}
		for k := range 4 {
			order[k*q+i] = (k+1)%4*q + j
		}
	}
	return shuffledPairs{order: order, match: match}
}

// addToNull adds the pairs of a block of (x, y) to the scatter of shuffled pairs. Since the pairs are a permutation, the
// block's mean is theirs too.
func addToNull(null *linalg.Joint[float64], b linalg.Block, p shuffledPairs, scratch *linalg.Scratch) {
	null.Add(b.Columns(0, null.P), b.Columns(null.P, 2*null.P).Permuted(p.order), nil, scratch)
}

// A scratch is memory for products that accumulators share one after another.
type scratch struct {
	linalg   linalg.Scratch
	shuffled []float32
}

// scratchSize returns the bytes of a scratch for blocks of n observations of d positions in both views.
func scratchSize(n, d int) int64 {
	side := int64(min(d, tile))
	return linalg.ScratchSize(2*d) + 4*max(int64(n)*int64(d), side*side)
}

// addWithNull adds a block of n observations (x, y) of 2 d variables to a scatter, and its shuffled pairs to that of the
// null. rows are the observations of the block, centred; they are overwritten.
//
// For cycles of four it forms the products of both together. Let z_0 ... z_3 be the observations of a cycle, each paired
// with the next, and
//
//	a = (z_0 + z_1 + z_2 + z_3) / 2,  b = (z_0 - z_1 + z_2 - z_3) / 2,  c = (z_0 - z_2) / √2,  e = (z_1 - z_3) / √2
//
// their discrete Fourier transform, which leaves the scatter as it is. The step to the next observation becomes a
// product, so that for the x and the y of these
//
//	scatter of x with y            = a aᵀ + b bᵀ + c cᵀ + e eᵀ
//	scatter of x with the next's y = a aᵀ - b bᵀ + c eᵀ - e cᵀ
//
// and the first two products serve both.
func addWithNull(s *linalg.Scatter[float64], null *linalg.Joint[float64], b linalg.Block, rows []float32, p shuffledPairs, memory *scratch) {
	if p.match == nil {
		s.Add(b, nil, &memory.linalg)
		addToNull(null, b, p, &memory.linalg)
		return
	}
	n, d := b.N(), null.P
	transformCycles(rows, 2*d, p.match)
	all, pairs := s.Begin(n, b.Mean()), null.Begin(n, b.Mean()[:d], b.Mean()[d:])
	for top := 0; top < d; top += tile {
		bottom := min(top+tile, d)
		for left := 0; left < d; left += tile {
			right := min(left+tile, d)
			if left >= top {
				for _, view := range []int{0, d} {
					products := b.Products(view+top, view+bottom, view+left, view+right, &memory.linalg)
					linalg.AddProducts(all, products, view+top, view+bottom, view+left, view+right)
				}
			}
			own, shuffled := memory.products(rows, n/4, 2*d, top, bottom, d+left, d+right)
			linalg.AddProducts(all, own, top, bottom, d+left, d+right)
			linalg.AddJointProducts(pairs, shuffled, top, bottom, left, right)
		}
	}
	all.End()
	pairs.End()
}

// tile is the side of the square tiles that products are computed in, as in linalg.
const tile = 1024

// transformCycles replaces the observations of each cycle by their Fourier transform: a, b, c and e, each in a quarter of
// the n x p rows.
func transformCycles(rows []float32, p int, match []int) {
	q := len(match)
	row := func(quarter, i int) []float32 { return rows[(quarter*q+i)*p : (quarter*q+i+1)*p] }
	for i, j := range match {
		if i > j {
			continue
		}
		transformCycle(row(0, i), row(1, j), row(2, i), row(3, j))
		if i < j {
			transformCycle(row(0, j), row(1, i), row(2, j), row(3, i))
			swapRows(row(3, i), row(3, j)) // so that c and e of a cycle are at the same place
		}
	}
}

func transformCycle(z0, z1, z2, z3 []float32) {
	const half = math.Sqrt2 / 2
	z1, z2, z3 = z1[:len(z0)], z2[:len(z0)], z3[:len(z0)]
	for k, v0 := range z0 {
		v1, v2, v3 := z1[k], z2[k], z3[k]
		even, odd := v0+v2, v1+v3
		z0[k], z1[k], z2[k], z3[k] = (even+odd)/2, (even-odd)/2, (v0-v2)*half, (v1-v3)*half
	}
}

func swapRows(a, b []float32) {
	b = b[:len(a)]
	for k, v := range a {
		a[k], b[k] = b[k], v
	}
}

// products returns the products of the columns top to bottom with the columns left to right of transformed rows of p
// values, q in each quarter: with their own observations', and with those of the pairs.
func (m *scratch) products(rows []float32, q, p, top, bottom, left, right int) (own, shuffled []float32) {
	height, width := bottom-top, right-left
	own, shuffled = m.linalg.Values(height*width), grow(&m.shuffled, height*width)
	multiply := func(alpha float32, x, y, quarters int, beta float32, to []float32) {
		blas32.Gemm(blas.Trans, blas.NoTrans, alpha,
			blas32.General{Rows: quarters * q, Cols: height, Stride: p, Data: rows[x*q*p+top:]},
			blas32.General{Rows: quarters * q, Cols: width, Stride: p, Data: rows[y*q*p+left:]},
			beta, blas32.General{Rows: height, Cols: width, Stride: width, Data: to})
	}
	multiply(1, 0, 0, 1, 0, own)
	multiply(1, 1, 1, 1, 0, shuffled)
	for k, v := range own {
		w := shuffled[k]
		own[k], shuffled[k] = v+w, v-w
	}
	multiply(1, 2, 2, 2, 1, own)
	multiply(1, 2, 3, 1, 1, shuffled)
	multiply(-1, 3, 2, 1, 1, shuffled)
	return own, shuffled
}
