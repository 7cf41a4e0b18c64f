package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/noether-ml/noether/internal/huge"
)

// A Block is some observations of p variables, centred on their own mean and ready to be multiplied: in float32, or, for
// moments whose smallest eigenvalues matter, in float64.
type Block struct {
	p    int
	rows []float32 // n x p, each row an observation less the mean
	wide []float64 // the same in float64, in place of rows
	mean []float64 // p
}

// A Scratch is memory for products that calls one after the other share. The zero Scratch is ready; it grows to
// ScratchSize.
type Scratch struct {
	products, moved []float32
	wide            []float64
}

// tile is the side of the square tiles that products are computed in: large enough for full speed, and small enough
// to stay in the cache until they are added up in float64.
const tile = 1024

// ScratchSize returns the bytes of a Scratch for blocks of n observations of p variables in float32.
func ScratchSize(n, p int) int64 {
	side, half := int64(min(p, tile)), int64(min(p/2, tile))
	return 4 * (side*side + max(int64(n)*int64(p)/2, half*half))
}

// grow returns n values of a slice, reallocated where it is too small. Their contents are undefined.
func grow[T float32 | float64](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = huge.Make[T](n)
	}
	return (*s)[:n]
}

// Centre takes the mean out of observations, in place, and returns them as a block. rows is n x p, row-major. The mean
// holds NaN or infinity if and only if the observations do.
func Centre(rows []float32, p int) Block {
	return Block{p: p, rows: rows, mean: centre(rows, p)}
}

// CentreWide is Centre for observations that are to be multiplied in float64.
func CentreWide(rows []float64, p int) Block {
	return Block{p: p, wide: rows, mean: centre(rows, p)}
}

// CentreSummed is Centre for observations whose sum over rows is known, see SumRows.
func CentreSummed(rows []float32, sum []float64) Block {
	return Block{p: len(sum), rows: rows, mean: takeMean(rows, append([]float64(nil), sum...))}
}

func centre[T float32 | float64](rows []T, p int) []float64 {
	sum := make([]float64, p)
	sumRows(sum, rows)
	return takeMean(rows, sum)
}

// takeMean turns the sum of rows into their mean and subtracts that from each.
func takeMean[T float32 | float64](rows []T, sum []float64) (mean []float64) {
	p := len(sum)
	n := len(rows) / p
	rounded := make([]T, p)
	for j := range sum {
		sum[j] /= float64(n)
		rounded[j] = T(sum[j])
	}
	for i := range n {
		row := rows[i*p : (i+1)*p]
		for j := range row {
			row[j] -= rounded[j]
		}
	}
	return sum
}

// SumRows adds the rows of a matrix of len(sum) columns to a sum, which then holds NaN or infinity if it or the matrix
// does.
func SumRows(sum []float64, rows []float32) {
	sumRows(sum, rows)
}

// sumRows adds up the rows of a matrix of len(sum) columns, four at a time.
func sumRows[T float32 | float64](sum []float64, rows []T) {
	p := len(sum)
	for ; len(rows) >= 4*p; rows = rows[4*p:] {
		a, b, c, d := rows[:p], rows[p:2*p], rows[2*p:3*p], rows[3*p:4*p]
		for j := range sum {
			sum[j] += float64(a[j]) + float64(b[j]) + float64(c[j]) + float64(d[j])
		}
	}
	for ; len(rows) >= p; rows = rows[p:] {
		for j, v := range rows[:p] {
			sum[j] += float64(v)
		}
	}
}

// N is the number of observations.
func (b Block) N() int { return (len(b.rows) + len(b.wide)) / b.p }

// Mean is the mean that was taken out.
func (b Block) Mean() []float64 { return b.mean }

// Add adds a block to a scatter and, if part is not nil, to part as well, for one computation of the products.
func (s *Scatter[T]) Add(b Block, part *Scatter[float32], scratch *Scratch) {
	n := b.N()
	all := newStep(s.N, s.Mean, n, b.mean)
	var own step
	if part != nil {
		own = newStep(part.N, part.Mean, n, b.mean)
	}
	s.addTiles(b, part, scratch, all, own)
	s.N, s.Mean = all.n, all.mean
	if part != nil {
		part.N, part.Mean = own.n, own.mean
	}
}

// addTiles multiplies tile by tile.
func (s *Scatter[T]) addTiles(b Block, part *Scatter[float32], scratch *Scratch, all, own step) {
	for top := 0; top < s.P; top += tile {
		bottom := min(top+tile, s.P)
		for left := top; left < s.P; left += tile {
			right := min(left+tile, s.P)
			if b.wide != nil {
				addTile(s, part, b.multiplyWide(top, bottom, left, right, scratch), top, bottom, left, right, all, own)
			} else {
				addTile(s, part, b.multiply(top, bottom, left, right, scratch), top, bottom, left, right, all, own)
			}
		}
	}
}

// addTile adds the products of the variables top to bottom with the variables left to right.
func addTile[S, E float32 | float64](s *Scatter[S], part *Scatter[float32], products []E, top, bottom, left, right int, all, own step) {
	for i := top; i < bottom; i++ {
		from := max(i, left)
		row := products[(i-top)*(right-left)+from-left : (i-top+1)*(right-left)]
		addRow(s.row(i, from)[:right-from], row, all.factor*all.delta[i], all.delta[from:])
		if part != nil {
			addRow(part.row(i, from)[:right-from], row, own.factor*own.delta[i], own.delta[from:])
		}
	}
}

// multiply computes the products of the variables top to bottom with the variables left to right; on the diagonal the
// upper triangle of them.
func (b Block) multiply(top, bottom, left, right int, scratch *Scratch) []float32 {
	rows, cols := bottom-top, right-left
	products := grow(&scratch.products, rows*cols)
	x := blas32.General{Rows: b.N(), Cols: rows, Stride: b.p, Data: b.rows[top:]}
	if top == left {
		blas32.Syrk(blas.Trans, 1, x, 0, blas32.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
		return products
	}
	y := blas32.General{Rows: b.N(), Cols: cols, Stride: b.p, Data: b.rows[left:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// multiplyWide is multiply in float64.
func (b Block) multiplyWide(top, bottom, left, right int, scratch *Scratch) []float64 {
	rows, cols := bottom-top, right-left
	products := grow(&scratch.wide, rows*cols)
	x := blas64.General{Rows: b.N(), Cols: rows, Stride: b.p, Data: b.wide[top:]}
	if top == left {
		blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
		return products
	}
	y := blas64.General{Rows: b.N(), Cols: cols, Stride: b.p, Data: b.wide[left:]}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}
