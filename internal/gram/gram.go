// Package gram adds the products of centred observations to sums, on one kind of processor at the speed of its vector units:
//
//	sums[i, j] += sum_t (x_ti - shift_i)(y_tj - shift_j) + u_i v_j.
//
// A BLAS does the same in three walks through memory (centring, a product in float32, adding that up in float64). Here a
// mean is taken off where the observations are laid out for the product, and what the product gives is added while it is in
// the cache. Products are formed and summed up over a call in float32, as by a BLAS; the sums are in float64 or float32.
//
// Where a BLAS forms the products all the same, AddToTriangle and AddToProducts add them, Shift takes a mean off and AddRows sums
// rows, in half the time of loops in Go.
//
// The loops are those of Goto and van de Geijn (2008, Anatomy of High-Performance Matrix Multiplication): panels of one
// vector's width, a block of them in the second-level cache, twelve to twenty-four vectors of sums in registers.
//
// There is a kernel for processors with AVX2 and one for those with AVX-512, where cgo is enabled. Elsewhere Available is
// false, and the rest is not to be called.
package gram

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/noether-ml/noether/internal/huge"
)

// Rows are n observations of some variables: observation t is the values from Data[t Stride] on, or from Data[Order[t]
// Stride] on where Order is not nil. Shift, a value for each variable, is taken off.
type Rows struct {
	Data   []float32
	Stride int
	N      int
	Order  []int
	Shift  []float32
}

func (r Rows) cols() int { return len(r.Shift) }

// Sums are what products are added to, with U Vᵀ. There is nothing to add to where Data is nil.
type Sums[T float32 | float64] struct {
	Data []T
	U, V []float64 // a value for each row and for each column
}

// A Work is memory that calls one after the other share. The zero Work is ready.
type Work struct {
	x, y     []float32
	products [][]float32 // for each worker
}

// Blocks of rows by columns of products that are formed at once: they and the panels they come from fill the second-level
// cache. A block's columns are panels in threes.
const (
	blockRows    = 96
	blockColumns = 240
)

// AddTriangle adds the products of variables with each other to the upper triangle of sums, row after row: p (p + 1) / 2
// values for p variables. Workers share the work.
func (w *Work) AddTriangle(x Rows, wide Sums[float64], narrow Sums[float32], workers int) {
	p := x.cols()
	check(x)
	checkSums(p, p, p*(p+1)/2, wide)
	checkSums(p, p, p*(p+1)/2, narrow)
	a := w.pack(&w.x, x, workers)
	w.add(a, a, true, wide, narrow, workers)
}

// AddProducts adds the products of the variables of x with those of y, observation by observation, to sums, row after row.
func (w *Work) AddProducts(x, y Rows, wide Sums[float64], narrow Sums[float32], workers int) {
	check(x)
	check(y)
	if x.N != y.N {
		panic(fmt.Sprintf("gram: products of %d observations with %d", x.N, y.N))
	}
	checkSums(x.cols(), y.cols(), x.cols()*y.cols(), wide)
	checkSums(x.cols(), y.cols(), x.cols()*y.cols(), narrow)
	w.add(w.pack(&w.x, x, workers), w.pack(&w.y, y, workers), false, wide, narrow, workers)
}

// A Tile is products that a BLAS has formed: those of the variables Top to Bottom with the variables Left to Right, row after row.
type Tile struct {
	Products                 []float32
	Top, Bottom, Left, Right int
}

// AddToTriangle adds a tile to the upper triangle of sums of p variables; what is below the diagonal is left out.
func AddToTriangle(t Tile, p int, wide Sums[float64], narrow Sums[float32]) {
	t.check(p, p)
	checkSums(p, p, p*(p+1)/2, wide)
	checkSums(p, p, p*(p+1)/2, narrow)
	addTile(t, p, true, wide, narrow)
}

// AddToProducts adds a tile to sums of rows by cols products.
func AddToProducts(t Tile, rows, cols int, wide Sums[float64], narrow Sums[float32]) {
	t.check(rows, cols)
	checkSums(rows, cols, rows*cols, wide)
	checkSums(rows, cols, rows*cols, narrow)
	addTile(t, cols, false, wide, narrow)
}

// check panics where a tile lies outside the sums or is not all there.
func (t Tile) check(rows, cols int) {
	if t.Top < 0 || t.Left < 0 || t.Bottom > rows || t.Right > cols || t.Top >= t.Bottom || t.Left >= t.Right || len(t.Products) < (t.Bottom-t.Top)*(t.Right-t.Left) {
		panic(fmt.Sprintf("gram: a tile of rows %d to %d and columns %d to %d, of %d values, in %d x %d", t.Top, t.Bottom, t.Left, t.Right, len(t.Products), rows, cols))
	}
}

// checkRows panics where so many values are not whole rows.
func checkRows(values, cols int) {
	if cols == 0 || values%cols != 0 {
		panic(fmt.Sprintf("gram: %d values in rows of %d", values, cols))
	}
}

// check panics where rows would be read past their end.
func check(r Rows) {
	last := r.N - 1
	for _, t := range r.Order {
		if t < 0 {
			panic("gram: a negative observation")
		}
		last = max(last, t)
	}
	if r.N < 1 || r.cols() < 1 || r.Stride < r.cols() || len(r.Data) < last*r.Stride+r.cols() || r.Order != nil && len(r.Order) != r.N {
		panic(fmt.Sprintf("gram: %d observations of %d variables, %d apart, in %d values", r.N, r.cols(), r.Stride, len(r.Data)))
	}
}

func checkSums[T float32 | float64](rows, cols, size int, s Sums[T]) {
	if s.Data != nil && (len(s.Data) != size || len(s.U) != rows || len(s.V) != cols) {
		panic(fmt.Sprintf("gram: %d sums, factors of %d and %d values, for %d x %d products", len(s.Data), len(s.U), len(s.V), rows, cols))
	}
}

// A packed is observations in panels of as many variables as a vector has values.
type packed struct {
	data            []float32
	n, cols, panels int
}

// pack lays observations out.
func (w *Work) pack(memory *[]float32, x Rows, workers int) packed {
	out := packed{n: x.N, cols: x.cols(), panels: (x.cols() + lanes - 1) / lanes}
	if need := out.panels * lanes * x.N; cap(*memory) < need {
		*memory = huge.Make[float32](need)
	} else {
		*memory = (*memory)[:need]
	}
	out.data = *memory
	const step = blockColumns
	share(workers, (out.cols+step-1)/step, func(_, block int) {
		from := block * step
		packColumns(out, x, from, min(from+step, out.cols))
	})
	return out
}

// add multiplies block by block.
func (w *Work) add(a, b packed, triangle bool, wide Sums[float64], narrow Sums[float32], workers int) {
	for len(w.products) < workers {
		w.products = append(w.products, make([]float32, blockRows*blockColumns))
	}
	down, right := blockRows/lanes, blockColumns/lanes
	rows, cols := (a.panels+down-1)/down, (b.panels+right-1)/right
	share(workers, rows*cols, func(worker, block int) {
		i, j := block%rows*down, block/rows*right
		to := min(j+right, b.panels)
		if triangle && i >= to {
			return
		}
		addBlock(a, i, min(i+down, a.panels), b, j, to, triangle, w.products[worker], wide, narrow)
	})
}

// share runs f for each of n blocks, by so many workers.
func share(workers, n int, f func(worker, block int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for block := range n {
			f(0, block)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for block := int(next.Add(1)) - 1; block < n; block = int(next.Add(1)) - 1 {
				f(worker, block)
			}
		})
	}
	group.Wait()
}
