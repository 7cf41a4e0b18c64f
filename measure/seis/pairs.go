package seis

import (
	"fmt"
	"math"
)

// shuffledPairs are the null's pairs of a part: x of observation i with y of order[i], a
// permutation.
type shuffledPairs struct {
	order []int
	match []int // if the pairs form cycles of four, see cyclesOfFour; else nil
}

// cyclesOfFour returns pairs in cycles of four, which need fewer products (see cycleProducts). A
// part is four quarters of len(match): x of i in a quarter is paired with y of match[i] in the
// next, cyclically. match is its own inverse.
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

// transformCycles replaces the observations of each cycle by their Fourier transform in real form.
// Let z_0 ... z_3 be the observations of a cycle, each paired with the next. They become
//
//	a = (z_0 + z_1 + z_2 + z_3) / 2,  c = (z_0 - z_2) / √2,
//	b = (z_0 - z_1 + z_2 - z_3) / 2,  e = (z_1 - z_3) / √2,
//
// which are stored in the quarters of the rows in the order a, c, b, e. There are 4 len(match) rows
// of p values. The transform is orthogonal, so the sum of the outer products of the observations
// does not change.
func transformCycles(rows []float32, p int, match []int) {
	q := len(match)
	row := func(quarter, i int) []float32 { return rows[(quarter*q+i)*p : (quarter*q+i+1)*p] }
	for i, j := range match {
		transformCycle(row(0, i), row(1, j), row(2, i), row(3, j))
	}
}

// transformCycle is transformCycles for one cycle.
func transformCycle(z0, z1, z2, z3 []float32) {
	const half = math.Sqrt2 / 2
	z1, z2, z3 = z1[:len(z0)], z2[:len(z0)], z3[:len(z0)]
	for k, v0 := range z0 {
		v1, v2, v3 := z1[k], z2[k], z3[k]
		even, odd := v0+v2, v1+v3
		z0[k], z1[k], z2[k], z3[k] = (even+odd)/2, (v0-v2)*half, (even-odd)/2, (v1-v3)*half
	}
}
