//go:build amd64 && cgo

package distance

// #cgo CFLAGS: -O3
// #include "sums.h"
import "C"

import "unsafe"

// nativeLevel is the level of the kernels (C functions) in sums.c that the processor runs: 2 for
// AVX-512, 1 for AVX2, 0 for none.
var nativeLevel = int(C.sums_level())

// nativeSums is sumRows for rows of n components with the kernel of the given level, 1 or 2: it
// sets own[i] to the sums of row i of a and row i of b (aa and bb: of squares; abs and sqr: of
// absolute and squared differences), and next[i], unless next is nil, to those of row i-1 of a and
// row i of b. previous is row -1 of a; nil: there is none. The sums lack the dot product. They may
// be too imprecise: sumRows replaces those that are not pairSums.precise.
func nativeSums(own, next []pairSums, previous, a, b []float32, n, level int) {
	sums := make([]C.Sums, len(own)+1)
	C.sums_of_rows(&sums[0], (*C.float)(unsafe.SliceData(previous)), (*C.float)(unsafe.SliceData(a)), (*C.float)(unsafe.SliceData(b)), C.int64_t(len(own)), C.int64_t(n), C.int(level))
	for i := range own {
		s := sums[i]
		own[i] = pairSums{aa: float64(s.aa), bb: float64(s.bb), abs: float64(s.abs), sqr: float64(s.sqr)}
		if next != nil && i > 0 {
			next[i] = pairSums{aa: own[i-1].aa, bb: own[i].bb, abs: float64(s.next_abs), sqr: float64(s.next_sqr)}
		}
	}
	if s := sums[len(own)]; next != nil && previous != nil {
		next[0] = pairSums{aa: float64(s.aa), bb: float64(s.bb), abs: float64(s.abs), sqr: float64(s.sqr)}
	}
}
