//go:build !(cgo && amd64)

package gram

const (
	lanes = 1
	none  = "gram: no kernel for this processor"
)

// Available reports whether there is a kernel for this processor.
func Available() bool { return false }

func packColumns(packed, Rows, int, int) { panic(none) }

func addBlock(packed, int, int, packed, int, int, bool, []float32, Sums[float64], Sums[float32]) {
	panic(none)
}

func addTile(Tile, int, bool, Sums[float64], Sums[float32]) { panic(none) }

// Shift takes a shift, a value for each column, off the rows of a matrix.
func Shift([]float32, []float32) { panic(none) }

// AddRows adds the rows of a matrix of len(sum) columns to sum.
func AddRows([]float64, []float32) { panic(none) }
