//go:build !amd64 || !cgo

package action

// There are no kernels for this processor, or no C compiler.
const native = false

func (f *Field) actNative(dst, z []float32, channels, positions int, to []int32, floor *FloorSums) {}
func sumsNative(a, b []float32, rows int, runs []Run) (s Sums)                                     { return s }
func dotNative(a, b []float32, rows int, runs []Run) (dot float64)                                 { return 0 }
