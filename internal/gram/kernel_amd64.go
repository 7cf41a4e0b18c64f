//go:build cgo && amd64

package gram

// #cgo CFLAGS: -O3
// #include "gram.h"
import "C"

import "unsafe"

var lanes = int(C.gram_lanes())

// Available reports whether there is a kernel for this processor.
func Available() bool { return lanes > 0 }

// packColumns lays out the variables from to to of x; from is that of a panel.
func packColumns(dst packed, x Rows, from, to int) {
	var order *C.extent
	if x.Order != nil {
		order = (*C.extent)(unsafe.Pointer(&x.Order[0]))
	}
	C.gram_pack(C.int(lanes), float(&dst.data[0]), C.extent(dst.panels), C.extent(from/lanes), float(&x.Data[from]), C.extent(x.Stride), order,
		C.extent(x.N), C.extent(to-from), float(&x.Shift[from]))
}

// addBlock adds the products of the panels i0 to i1 of a with the panels j0 to j1 of b.
func addBlock(a packed, i0, i1 int, b packed, j0, j1 int, triangle bool, products []float32, wide Sums[float64], narrow Sums[float32]) {
	C.gram_add(C.int(lanes), float(&a.data[0]), C.extent(a.panels), C.extent(i0), C.extent(i1), float(&b.data[0]), C.extent(b.panels), C.extent(j0), C.extent(j1), C.extent(a.n),
		C.extent(a.cols), C.extent(b.cols), flag(triangle), float(&products[0]), doubles(wide.Data), doubles(wide.U), doubles(wide.V),
		floats(narrow.Data), doubles(narrow.U), doubles(narrow.V))
}

// addTile adds products that are there already.
func addTile(t Tile, cols int, triangle bool, wide Sums[float64], narrow Sums[float32]) {
	C.gram_add_tile(C.int(lanes), float(&t.Products[0]), C.extent(t.Right-t.Left), C.extent(t.Top), C.extent(t.Bottom), C.extent(t.Left), C.extent(t.Right),
		C.extent(cols), flag(triangle), doubles(wide.Data), doubles(wide.U), doubles(wide.V), floats(narrow.Data), doubles(narrow.U), doubles(narrow.V))
}

func flag(on bool) C.int {
	if on {
		return 1
	}
	return 0
}

// Shift takes a shift, a value for each column, off the rows of a matrix.
func Shift(rows, shift []float32) {
	checkRows(len(rows), len(shift))
	if len(rows) > 0 {
		C.gram_shift(C.int(lanes), floats(rows), C.extent(len(rows)/len(shift)), C.extent(len(shift)), floats(shift))
	}
}

// AddRows adds the rows of a matrix of len(sum) columns to sum.
func AddRows(sum []float64, rows []float32) {
	checkRows(len(rows), len(sum))
	if len(rows) > 0 {
		C.gram_sum(C.int(lanes), doubles(sum), floats(rows), C.extent(len(rows)/len(sum)), C.extent(len(sum)))
	}
}

func float(x *float32) *C.float { return (*C.float)(unsafe.Pointer(x)) }

func floats(x []float32) *C.float { return float(unsafe.SliceData(x)) }

func doubles(x []float64) *C.double { return (*C.double)(unsafe.Pointer(unsafe.SliceData(x))) }
