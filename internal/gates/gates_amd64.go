//go:build cgo && amd64

package gates

// #cgo CFLAGS: -O3
// #include "gates.h"
import "C"

import "unsafe"

var available = C.gates_available() != 0

func pass(hits []Hit, r Rows, gate []float32) int {
	if !available {
		return passPlainly(hits, r, gate)
	}
	return int(C.gates_pass(indices(hits), floats(r.Data), C.extent(r.N), C.extent(len(gate)), C.extent(r.Stride), C.float(r.Sign), floats(gate)))
}

func count(sum []int32, r Rows, gate []float32) {
	if !available {
		countPlainly(sum, r, gate)
		return
	}
	C.gates_count((*C.int32_t)(unsafe.SliceData(sum)), floats(r.Data), C.extent(r.N), C.extent(len(gate)), C.extent(r.Stride), C.float(r.Sign), floats(gate))
}

func finite(values []float32) bool {
	if !available {
		return finitePlainly(values)
	}
	return C.gates_finite(floats(values), C.extent(len(values))) != 0
}

func enter(hits []Hit, from int, r Rows, w *Waiting, strong []Hit, found int) (at, strongs int) {
	n := C.extent(found)
	h := C.gates_enter(indices(hits), C.extent(from), C.extent(len(hits)), floats(r.Data), C.extent(r.Stride), C.float(r.Sign),
		floats(w.Gate), floats(w.Items), C.extent(w.Size), counts(w.Fill), counts(w.Turns), C.extent(w.Levels), C.extent(w.Room), C.extent(w.Next), C.int(w.Step), C.uint64_t(w.Draw),
		floats(w.Last), C.extent(w.Apart), (*C.uint8_t)(unsafe.SliceData(w.Ranked)), indices(strong), &n)
	return int(h), int(n)
}

func floats(s []float32) *C.float { return (*C.float)(unsafe.SliceData(s)) }

func indices(s []Hit) *C.uint32_t { return (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(s))) }

func counts(s []uint16) *C.uint16_t { return (*C.uint16_t)(unsafe.SliceData(s)) }
