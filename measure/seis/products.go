package seis

import (
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/linalg"
)

// tile is the side of the square tiles that products are computed in, as in linalg.
const tile = 1024

// A scratch is memory for a segment's products, used by one accumulator after another.
type scratch struct {
	products linalg.Scratch
	shuffled []float32 // products of shuffled pairs: x of one sample with y of another
	rows     []float32 // permuted or transformed observations of a block
}

// scratchSize returns the bytes for blocks of n observations of (x, y), d variables each.
func scratchSize(n, d int) int64 {
	side := int64(min(d, tile))
	return linalg.ScratchSize(d) + single*(side*side+int64(n)*int64(d))
}

// A block is a segment's observations of (x, y), 2 d variables, centred, ready for scatters.
type block struct {
	linalg.Block
	rows  []float32  // the observations; adding shuffled pairs overwrites them
	d     int        // variables of x and of y
	clean *cleanView // cache of the products of x with x; nil: they are not kept
	hash  uint64     // of the rows of x before they were centred, if clean is not nil
}

// addViews adds x with x and y with y to the scatters of all and of a group (part, maybe zero).
func (b block) addViews(all linalg.Update[float64], part linalg.Update[float32], memory *scratch) {
	for top := 0; top < b.d; top += tile {
		bottom := min(top+tile, b.d)
		for left := top; left < b.d; left += tile {
			right := min(left+tile, b.d)
			if b.clean != nil {
				b.clean.withProducts(b, func(products []float32) {
					linalg.AddProducts(all, products, top, bottom, left, right)
					linalg.AddProducts(part, products, top, bottom, left, right)
				})
			} else {
				products := b.Products(top, bottom, left, right, &memory.products)
				linalg.AddProducts(all, products, top, bottom, left, right)
				linalg.AddProducts(part, products, top, bottom, left, right)
			}
			products := b.Products(b.d+top, b.d+bottom, b.d+left, b.d+right, &memory.products)
			linalg.AddProducts(all, products, b.d+top, b.d+bottom, b.d+left, b.d+right)
			linalg.AddProducts(part, products, b.d+top, b.d+bottom, b.d+left, b.d+right)
		}
	}
}

// addPairs adds x with y to scatters, and shuffled pairs to the null. pairs covers successive
// ranges, nil without a null. If all have a match (cycles of four), the block's observations are
// overwritten.
func (b block) addPairs(all linalg.Update[float64], part linalg.Update[float32], null *linalg.CrossScatter[float64], pairs []*shuffledPairs, memory *scratch) {
	products := b.unshuffledProducts
	var shuffled linalg.CrossUpdate[float64]
	if pairs != nil {
		// Since the pairs are a permutation, their mean is that of the block.
		shuffled = null.Begin(b.N(), b.Mean()[:b.d], b.Mean()[b.d:])
		if slices.ContainsFunc(pairs, func(p *shuffledPairs) bool { return p.match == nil }) {
			products = b.permutedProducts(pairs, memory)
		} else {
			products = b.cycleProducts(pairs, memory)
		}
	}
	for top := 0; top < b.d; top += tile {
		bottom := min(top+tile, b.d)
		for left := 0; left < b.d; left += tile {
			right := min(left+tile, b.d)
			unshuffled, shuffledProducts := products(top, bottom, left, right, memory)
			linalg.AddProducts(all, unshuffled, top, bottom, b.d+left, b.d+right)
			linalg.AddProducts(part, unshuffled, top, bottom, b.d+left, b.d+right)
			linalg.AddCrossProducts(shuffled, shuffledProducts, top, bottom, left, right)
		}
	}
	shuffled.End()
}

// A pairProducts returns products of variables of x and of y, own and shuffled, valid until the
// memory is reused.
type pairProducts func(top, bottom, left, right int, memory *scratch) (unshuffled, shuffled []float32)

func (b block) unshuffledProducts(top, bottom, left, right int, memory *scratch) (unshuffled, shuffled []float32) {
	return b.Products(top, bottom, b.d+left, b.d+right, &memory.products), nil
}

func (b block) permutedProducts(pairs []*shuffledPairs, memory *scratch) pairProducts {
	y := grow(&memory.rows, b.N()*b.d)
	first := 0 // of the range
	for _, p := range pairs {
		for i, from := range p.order {
			copy(y[(first+i)*b.d:(first+i+1)*b.d], b.rows[(first+from)*2*b.d+b.d:])
		}
		first += len(p.order)
	}
	return func(top, bottom, left, right int, memory *scratch) (unshuffled, shuffled []float32) {
		unshuffled = b.Products(top, bottom, b.d+left, b.d+right, &memory.products)
		shuffled = grow(&memory.shuffled, (bottom-top)*(right-left))
		multiply(1, columns(b.rows, 2*b.d, top, bottom), columns(y, b.d, left, right), 0, shuffled)
		return unshuffled, shuffled
	}
}

// cycleProducts pairs the observations of cycles of four. After their Fourier transform (see
// transformCycles), the products of shuffled pairs follow from products within a cycle. Let a, b, c
// and e be the transformed observations, and u wᵀ the product of the x of u with the y of w. Then
//
//	x with y            = a aᵀ + b bᵀ + c cᵀ + e eᵀ
//	x with the next's y = a aᵀ - b bᵀ + c eᵀ - e cᵀ.
//
// The last two terms of each are the product of two complex numbers, for which Gauss's method needs
// three real products:
//
//	u = a aᵀ + c cᵀ,  v = b bᵀ + e eᵀ,
//	x with y = u + v,  x with the next's y = u - v - (c + e) (c - e)ᵀ.
func (b block) cycleProducts(pairs []*shuffledPairs, memory *scratch) pairProducts {
	p := 2 * b.d
	all := grow(&memory.rows, b.N()/4*p)
	var ranges [][]float32 // the transformed observations of each range
	var mixed [][]float32  // of each range, rows with the x of c + e and the y of c - e
	first := 0             // of the range
	for _, cycles := range pairs {
		q := len(cycles.match)
		rows := b.rows[first*p : (first+4*q)*p]
		transformCycles(rows, p, cycles.match)
		mix := all[first/4*p : (first/4+q)*p]
		for i := range q {
			c, e, to := rows[(q+i)*p:(q+i+1)*p], rows[(3*q+i)*p:(3*q+i+1)*p], mix[i*p:(i+1)*p]
			for k := range b.d {
				to[k] = c[k] + e[k]
			}
			for k := b.d; k < p; k++ {
				to[k] = c[k] - e[k]
			}
		}
		ranges, mixed = append(ranges, rows), append(mixed, mix)
		first += 4 * q
	}
	return func(top, bottom, left, right int, memory *scratch) (unshuffled, shuffled []float32) {
		size := (bottom - top) * (right - left)
		unshuffled, shuffled = memory.products.Values(size), grow(&memory.shuffled, size)
		between := func(alpha float32, rows []float32, beta float32, to []float32) {
			multiply(alpha, columns(rows, p, top, bottom), columns(rows, p, b.d+left, b.d+right), beta, to)
		}
		var beta float32 // 0: the products of the first range replace what the memory held
		for _, rows := range ranges {
			between(1, rows[:len(rows)/2], beta, unshuffled)
			between(1, rows[len(rows)/2:], beta, shuffled)
			beta = 1
		}
		for k, u := range unshuffled {
			v := shuffled[k]
			unshuffled[k], shuffled[k] = u+v, u-v
		}
		for _, rows := range mixed {
			between(-1, rows, 1, shuffled)
		}
		return unshuffled, shuffled
	}
}

func columns(rows []float32, p, lo, hi int) blas32.General {
	return blas32.General{Rows: len(rows) / p, Cols: hi - lo, Stride: p, Data: rows[lo:]}
}

// multiply replaces C by alpha Aᵀ B + beta C.
func multiply(alpha float32, a, b blas32.General, beta float32, c []float32) {
	blas32.Gemm(blas.Trans, blas.NoTrans, alpha, a, b, beta, blas32.General{Rows: a.Cols, Cols: b.Cols, Stride: b.Cols, Data: c})
}
