// Package kernels gives ONNX Runtime operators of our own, for what its own ones take many passes over memory, or one core: the updates of
// optimisers, and parts of gradients. They are of the domain "noether", in float32, and for the processor alone.
//
// Adam(p, g, m, v, s, e, k) gives p', m', v' (what m and v leave out is in s and e: see train.Adam):
//
//	g <- g + decay p;  m' = beta1 m + g;  v' = beta2 v + g^2;  p' = k p - s m' / (sqrt v' + e)
//
// Momentum(p, g, v, a) gives p', v':
//
//	g <- g + decay p;  v' = momentum v + g;  p' = p - a v'            (or p - a (g + momentum v') where nesterov is 1)
//
// Mirror(w) gives weights, out x in x kernel, as in x out x taps: the taps of the kernel in one axis, in the opposite order.
//
// BatchNormalizationGradient(x, dy, scale, mean, variance) gives dx, dscale, dbias, where y is x, samples x channels x space, normalised by mean and
// variance of the batch. With n numbers in a channel, r = 1 / sqrt(variance + epsilon), and sums over a channel,
//
//	dbias = sum dy;  dscale = r sum dy (x - mean);  dx = scale r (dy - dbias / n - (x - mean) r dscale / n)
//
// s, e, k and a are tensors of one number; decay, beta1, beta2, momentum, nesterov and epsilon attributes, 0 where they are absent. p, g, m and v have one
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
	Mirror   = "Mirror"

	BatchNormalizationGradient = "BatchNormalizationGradient"
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
