//go:build !amd64 || !cgo

package action

// native is false: there are no kernels in C for this processor, or no C compiler. The functions
// below are then never called.
const native = false

func (f *Field) actNative(dst, z []float32, channels, positions int, to []int32, floor *FloorSums) {}
func sumsNative(a, b []float32, rows int, runs []Run) (s Sums)                                     { return s }
func dotNative(a, b []float32, rows int, runs []Run) (dot float64)                                 { return 0 }
