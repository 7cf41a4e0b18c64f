//go:build amd64 && cgo

package avx

// #cgo CFLAGS: -O3
// #include "planes.h"
// #include "sums.h"
import "C"

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/noether-ml/noether/internal/simd"
)

// supported is the level of the kernels in sums.c that the processor runs: 2 for AVX-512, 1 for
// AVX2, 0 for none. Those in planes.c need AVX2.
var supported = level()

// level asks Go for the processor, since Zig's compiler of C has __builtin_cpu_supports always
// false.
func level() int {
	switch {
	case cpu.X86.HasAVX512F:
		return 2
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return 1
	}
	return 0
}

func init() {
	if supported > 0 {
		simd.Use(kernels{supported})
	}
}

type kernels struct{ level int }

// RowSums implements simd.Kernels.
func (k kernels) RowSums(own, next []simd.RowSums, previous, a, b []float32, n int) {
	sums := make([]C.Sums, len(own)+1)
	C.sums_of_rows(&sums[0], floats(previous), floats(a), floats(b), C.int64_t(len(own)), C.int64_t(n), C.int(k.level))
	for i := range own {
		s := sums[i]
		own[i] = simd.RowSums{AA: float64(s.aa), BB: float64(s.bb), Abs: float64(s.abs), Sqr: float64(s.sqr)}
		if next != nil && i > 0 {
			next[i] = simd.RowSums{AA: own[i-1].AA, BB: own[i].BB, Abs: float64(s.next_abs), Sqr: float64(s.next_sqr)}
		}
	}
	if s := sums[len(own)]; next != nil && previous != nil {
		next[0] = simd.RowSums{AA: float64(s.aa), BB: float64(s.bb), Abs: float64(s.abs), Sqr: float64(s.sqr)}
	}
}

// lanes is the number of channels that planes_act interpolates at once.
const lanes = 8

var scratch sync.Pool // of *[]float32: memory for blocks of interleaved channels

// Interpolate implements simd.Kernels. Eight channels at a time are interleaved, so that each
// position is eight values that are interpolated together.
func (kernels) Interpolate(dst, z []float32, channels, positions int, to []int32, forward, back simd.Taps, floor *[2]float64) {
	n := 2 * lanes * positions // a block of z, and one of the result
	memory, _ := scratch.Get().(*[]float32)
	if memory == nil || cap(*memory) < n {
		memory = new([]float32)
		*memory = make([]float32, n)
	}
	defer scratch.Put(memory)
	var sums [2]C.double
	var result *C.double
	if floor != nil {
		result = &sums[0]
	}
	C.planes_act(floats(dst), floats(z), C.int(channels), C.int(positions), integers(to), taps(forward), taps(back),
		C.int(forward.Right), C.int(forward.Down), floats((*memory)[:n]), result)
	if floor != nil {
		floor[0] += float64(sums[0])
		floor[1] += float64(sums[1])
	}
}

// DifferenceSums implements simd.Kernels.
func (kernels) DifferenceSums(a, b []float32, rows int, ends []int32) (difference, aa, bb float64) {
	s := C.planes_sums(floats(a), floats(b), C.int(rows), C.int(len(a)/rows), runs(ends))
	return float64(s.difference), float64(s.aa), float64(s.bb)
}

// Dot implements simd.Kernels.
func (kernels) Dot(a, b []float32, rows int, ends []int32) float64 {
	return float64(C.planes_dot(floats(a), floats(b), C.int(rows), C.int(len(a)/rows), runs(ends)))
}

func taps(t simd.Taps) C.Taps {
	return C.Taps{place: integers(t.Place), at: integers(t.At), fractions: floats(unsafe.Slice(&t.Fractions[0][0], 2*len(t.Fractions))), n: C.int(len(t.At))}
}

func runs(ends []int32) C.Runs      { return C.Runs{ends: integers(ends), n: C.int(len(ends) / 2)} }
func floats(v []float32) *C.float   { return (*C.float)(unsafe.SliceData(v)) }
func integers(v []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(v)) }
