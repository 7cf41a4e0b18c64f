//go:build amd64 && cgo

package action

// #cgo CFLAGS: -O3
// #include "planes.h"
import "C"

import (
	"sync"
	"unsafe"
)

// native reports whether the processor runs the kernels in planes.c, which move the channels of
// feature maps (planes) as a transformation moves the input.
var native = C.planes_supported() != 0

// lanes is the number of channels that the kernels interpolate at once.
const lanes = 8

var scratch sync.Pool // of *[]float32: memory for blocks of interleaved channels

// actNative is actOnPlanes where values are interpolated, for maps that do not wrap around: it
// writes tau z to dst, where tau is the action of the transformation on the maps z (channels x
// positions). Channel c goes to channel to[c]; a nil to is the identity. If floor is not nil,
// |tau^-1 tau z - z|^2, the error of interpolation alone, and |z|^2 are added to it. Eight channels
// at a time are interleaved, so that each position is eight values that are interpolated together.
func (f *Field) actNative(dst, z []float32, channels, positions int, to []int32, floor *FloorSums) {
	n := 2 * lanes * positions // a block of z, and one of tau z
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
	if to == nil {
		to = make([]int32, channels)
		for i := range to {
			to[i] = int32(i)
		}
	}
	C.planes_act(floats(dst), floats(z), C.int(channels), C.int(positions), integers(to), f.forward.native(), f.back.native(),
		C.int(f.forward.right), C.int(f.forward.down), floats((*memory)[:n]), result)
	if floor != nil {
		floor.Difference += float64(sums[0])
		floor.Norm += float64(sums[1])
	}
}

// native returns taps, the positions and fractions between which values are interpolated, for C.
func (t *taps) native() C.Taps {
	return C.Taps{place: integers(t.place), at: integers(t.at), fractions: floats(unsafe.Slice(&t.fractions[0][0], 2*len(t.fractions))), n: C.int(len(t.at))}
}

// sumsNative returns the sums of (a - b)^2, a^2 and b^2 over runs (ranges of positions) of each
// row.
func sumsNative(a, b []float32, rows int, runs []Run) Sums {
	s := C.planes_sums(floats(a), floats(b), C.int(rows), C.int(len(a)/rows), nativeRuns(runs))
	return Sums{Difference: float64(s.difference), AA: float64(s.aa), BB: float64(s.bb)}
}

// dotNative returns the sum of a b over the runs of each row.
func dotNative(a, b []float32, rows int, runs []Run) float64 {
	return float64(C.planes_dot(floats(a), floats(b), C.int(rows), C.int(len(a)/rows), nativeRuns(runs)))
}

func nativeRuns(runs []Run) C.Runs {
	ends := make([]int32, 0, 2*len(runs))
	for _, r := range runs {
		ends = append(ends, int32(r.From), int32(r.To))
	}
	return C.Runs{ends: integers(ends), n: C.int(len(runs))}
}

func floats(v []float32) *C.float   { return (*C.float)(unsafe.SliceData(v)) }
func integers(v []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(v)) }
