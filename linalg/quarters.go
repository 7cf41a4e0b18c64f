package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Partners says which observation's y each observation's x of a block is paired with, for a Cross. It is a permutation of the
// block's observations.
type Partners struct {
	Of    []int
	match []int // for Quarters
}

// Quarters are partners in cycles of four. A block is cut into four quarters, and match, which is its own inverse, says with which
// observation of the next quarter each one of a quarter is paired, around to the first. AddPaired needs half of the products for them.
func Quarters(match []int) Partners {
	q := len(match)
	of := make([]int, 4*q)
	for i, j := range match {
		if j < 0 || j >= q || match[j] != i {
			panic(fmt.Sprintf("linalg: a match of %d is that of %d, which is not its match", i, j))
		}
		for k := range 4 {
			of[k*q+i] = (k+1)%4*q + j
		}
	}
	return Partners{Of: of, match: match}
}

// InQuarters reports whether they are Quarters.
func (p Partners) InQuarters() bool { return p.match != nil }

// AddPaired adds a block to a scatter, and its pairs of partners to a cross. It may use the block up.
//
// For Quarters it takes the products of both together. Let z_0 ... z_3 be the observations of a cycle, each one's partner being the
// next, and
//
//	a = (z_0 + z_1 + z_2 + z_3) / 2,  b = (z_0 - z_1 + z_2 - z_3) / 2,  c = (z_0 - z_2) / √2,  e = (z_1 - z_3) / √2
//
// their discrete Fourier transform, which leaves the scatter as it is. It turns the step to the partner into a product, so, of the x
// and the y of these,
//
//	scatter of x with y   = a aᵀ + b bᵀ + c cᵀ + e eᵀ
//	... with partners' y  = a aᵀ - b bᵀ + c eᵀ - e cᵀ
//
// of which half is computed once for the two.
func AddPaired(s *Scatter[float64], c *Cross, b Block, p Partners, scratch *Scratch) {
	if !p.InQuarters() || b.wide != nil {
		s.Add(b, nil, scratch)
		c.Add(b, p.Of, scratch)
		return
	}
	n, d := b.N(), c.D
	if b.p != 2*d || s.P != 2*d || len(p.Of) != n {
		panic(fmt.Sprintf("linalg: a block of %d observations of %d variables for %d and 2 x %d variables and %d partners", n, b.p, s.P, d, len(p.Of)))
	}
	b.turn(p.match)
	all, pairs := newStep(s.N, s.Mean, n, b.mean), newStep(c.N, c.Mean, n, b.mean)
	for top := 0; top < d; top += tile {
		bottom := min(top+tile, d)
		for left := 0; left < d; left += tile {
			right := min(left+tile, d)
			if left >= top {
				for _, view := range []int{0, d} {
					products := b.multiply(view+top, view+bottom, view+left, view+right, scratch)
					addTile(s, nil, products, view+top, view+bottom, view+left, view+right, all, step{})
				}
			}
			own, partners := b.multiplyTurned(top, bottom, d+left, d+right, scratch)
			addTile(s, nil, own, top, bottom, d+left, d+right, all, step{})
			c.addTile(partners, top, bottom-top, left, right-left, pairs)
		}
	}
	s.N, s.Mean = all.n, all.mean
	c.N, c.Mean = pairs.n, pairs.mean
}

// turn replaces the observations of each cycle by their transform: a, b, c and e in a quarter each.
func (b Block) turn(match []int) {
	q := len(match)
	row := func(quarter, i int) []float32 { return b.rows[(quarter*q+i)*b.p : (quarter*q+i+1)*b.p] }
	for i, j := range match {
		if i > j {
			continue
		}
		turnCycle(row(0, i), row(1, j), row(2, i), row(3, j))
		if i < j {
			turnCycle(row(0, j), row(1, i), row(2, j), row(3, i))
			exchange(row(3, i), row(3, j)) // so that c and e of a cycle are at the same place
		}
	}
}

func turnCycle(z0, z1, z2, z3 []float32) {
	const half = math.Sqrt2 / 2
	z1, z2, z3 = z1[:len(z0)], z2[:len(z0)], z3[:len(z0)]
	for k, v0 := range z0 {
		v1, v2, v3 := z1[k], z2[k], z3[k]
		even, odd := v0+v2, v1+v3
		z0[k], z1[k], z2[k], z3[k] = (even+odd)/2, (even-odd)/2, (v0-v2)*half, (v1-v3)*half
	}
}

func exchange(a, b []float32) {
	b = b[:len(a)]
	for k, v := range a {
		a[k], b[k] = b[k], v
	}
}

// multiplyTurned computes the products of the x top to bottom of a turned block with the y left to right, and with those of partners.
func (b Block) multiplyTurned(top, bottom, left, right int, scratch *Scratch) (own, partners []float32) {
	rows, cols, q := bottom-top, right-left, b.N()/4
	own, partners = grow(&scratch.products, rows*cols), grow(&scratch.moved, rows*cols)
	multiply := func(alpha float32, x, y, quarters int, beta float32, to []float32) {
		blas32.Gemm(blas.Trans, blas.NoTrans, alpha,
			blas32.General{Rows: quarters * q, Cols: rows, Stride: b.p, Data: b.rows[x*q*b.p+top:]},
			blas32.General{Rows: quarters * q, Cols: cols, Stride: b.p, Data: b.rows[y*q*b.p+left:]},
			beta, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: to})
	}
	multiply(1, 0, 0, 1, 0, own)
	multiply(1, 1, 1, 1, 0, partners)
	for k, v := range own {
		w := partners[k]
		own[k], partners[k] = v+w, v-w
	}
	multiply(1, 2, 2, 2, 1, own)
	multiply(1, 2, 3, 1, 1, partners)
	multiply(-1, 3, 2, 1, 1, partners)
	return own, partners
}
