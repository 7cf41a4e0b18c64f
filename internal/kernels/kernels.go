// Package kernels gives ONNX Runtime operators of our own, for what its own ones take many passes over memory: the updates of
// optimisers. They are of the domain "noether", in float32, and for the processor alone.
//
// Adam(p, g, m, v, s, e, k) gives p', m', v' (what m and v leave out is in s and e: see train.Adam):
//
//	g <- g + decay p;  m' = beta1 m + g;  v' = beta2 v + g^2;  p' = k p - s m' / (sqrt v' + e)
//
// Momentum(p, g, v, a) gives p', v':
//
//	g <- g + decay p;  v' = momentum v + g;  p' = p - a v'            (or p - a (g + momentum v') where nesterov is 1)
//
// s, e, k and a are tensors of one number; decay, beta1, beta2, momentum and nesterov attributes, 0 where they are absent. p, g, m and v have one
// shape. Each number is computed the same way whatever the number of threads.
package kernels

// #cgo CFLAGS: -O3
// #cgo !windows LDFLAGS: -lm
// #include <stdlib.h>
// #include "operators.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// The operators, and their domain.
const (
	Domain   = "noether"
	Adam     = "Adam"
	Momentum = "Momentum"
)

// Load prepares the operators for a library, given its OrtApi (version 24 or later). It is called once.
func Load(api unsafe.Pointer) error {
	return failure(C.kernels_load(api))
}

// Add gives a session's options (OrtSessionOptions) the operators.
func Add(options unsafe.Pointer) error {
	return failure(C.kernels_add(options))
}

func failure(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return fmt.Errorf("operators of Noether: %w", errors.New(C.GoString(text)))
}
