package oracle

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// Winograd's algorithm F(4 x 4, 3 x 3) takes 36 products of channels for a tile of 4 x 4 places
// where a convolution of 3 x 3 taps takes 144, and reads 36 numbers where the taps read 144 (Lavin
// and Gray 2016): with d the 6 x 6 numbers that a tile reads, and g a kernel, the tile is
//
//	A^T ((G g G^T) * (B^T d B)) A
var (
	winogradInput = [][]float64{ // B^T
		{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1},
	}
	winogradKernel = [][]float64{ // G
		{1. / 4, 0, 0}, {-1. / 6, -1. / 6, -1. / 6}, {-1. / 6, 1. / 6, -1. / 6}, {1. / 24, 1. / 12, 1. / 6}, {1. / 24, -1. / 12, 1. / 6}, {0, 0, 1},
	}
	winogradOutput = [][]float64{ // A^T
		{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1},
	}
)

const tile, reads = 4, 6 // places along an axis, and how many they read

// twice is the matrix that applies m to both axes of a square, whose rows lie behind one another.
func (w *writer) twice(m [][]float64) onnx.Value {
	var values []float64
	for _, a := range m {
		for _, b := range m {
			for _, p := range a {
				for _, q := range b {
					values = append(values, p*q)
				}
			}
		}
	}
	rows, columns := len(m)*len(m), len(m[0])*len(m[0])
	return w.doubles([]int64{int64(rows), int64(columns)}, values...)
}

// suits reports whether a convolution, of kernels of shape k and with an output of shape y, is
// computed faster in tiles: whether with what goes before and after they take half of the products.
// One number for each channel is a small part of that.
func (win window) suits(k, y []int, groups int) bool {
	if !slices.Equal(k[2:], []int{3, 3}) || win.value != "" || !fixed(y) || slices.Max(win.strides) > 1 || slices.Max(win.dilations) > 1 {
		return false
	}
	tiles := ((y[2] + tile - 1) / tile) * ((y[3] + tile - 1) / tile)
	if k[1] == 1 && k[0] == groups {
		return tiles*tile*tile <= 2*y[2]*y[3]
	}
	in, out := k[1], k[0]
	const square = reads * reads
	return groups == 1 && 2*tiles*square*(square*in+in*out+tile*tile*out) <= 9*in*out*y[2]*y[3]
}

// inTiles is a convolution of x, batch first, with kernels of shape k, whose output has shape y.
func (w *writer) inTiles(x, kernels onnx.Value, win window, k, y []int) onnx.Value {
	const channels = -1
	rows, columns := (y[2]+tile-1)/tile, (y[3]+tile-1)/tile
	longer := padding{known: slices.Clone(win.known)}
	longer.known[2] += rows*tile - y[2]
	longer.known[3] += columns*tile - y[3]
	x = w.Transpose(w.padded(x, longer, 0), 0, 2, 3, 1) // channels last: what slices take lies together
	var parts []onnx.Value
	for i := range reads {
		for j := range reads {
			part := w.Op("Slice", nil, x, w.Ints(i, j), w.Ints(i+(rows-1)*tile+1, j+(columns-1)*tile+1), w.Ints(1, 2), w.Ints(tile, tile))
			parts = append(parts, w.Reshape(part, 1, -1))
		}
	}
	read := w.MatMul(w.twice(winogradInput), w.Concat(0, parts...)) // 36 x (batch tiles in)
	weights := w.MatMul(w.twice(winogradKernel), w.Reshape(w.Transpose(kernels, 2, 3, 1, 0), 9, channels))
	var made onnx.Value // 36 x (batch tiles) x out
	if weights = w.Reshape(weights, reads*reads, k[1], k[0]); k[1] == 1 {
		made = w.Mul(w.Reshape(read, reads*reads, -1, k[0]), weights)
	} else {
		made = w.MatMul(w.Reshape(read, reads*reads, -1, k[1]), weights)
	}
	out := w.MatMul(w.twice(winogradOutput), w.Reshape(made, reads*reads, -1))
	out = w.Transpose(w.Reshape(out, tile, tile, -1, rows, columns, k[0]), 2, 3, 0, 4, 1, 5)
	out = w.Reshape(out, -1, rows*tile, columns*tile, k[0])
	if rows*tile != y[2] || columns*tile != y[3] {
		out = w.Op("Slice", nil, out, w.Ints(0, 0), w.Ints(y[2], y[3]), w.Ints(1, 2))
	}
	return w.Transpose(out, 0, 3, 1, 2)
}
