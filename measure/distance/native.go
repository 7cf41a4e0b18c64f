//go:build amd64 && cgo

package distance

// #cgo CFLAGS: -O3
// #include "sums.h"
import "C"

import "unsafe"

// nativeLevel is the level of the kernels in sums.c that the processor runs; 0: none.
var nativeLevel = int(C.sums_level())

// nativeSums is sumsInGo with the kernel of a level from 1 on.
func nativeSums(a, b []float32, level int) pairSums {
	s := C.sums_of((*C.float)(unsafe.SliceData(a)), (*C.float)(unsafe.SliceData(b)), C.int64_t(len(a)), C.int(level))
	return pairSums{dot: float64(s.dot), aa: float64(s.aa), bb: float64(s.bb), abs: float64(s.abs), sqr: float64(s.sqr)}
}
