//go:build !noaccel && amd64

package accel

import (
	"unsafe"

	"github.com/noether-ml/noether/internal/accel/internal/kernels"
)

// Included reports whether the native operators are part of this program.
const Included = true

// Width returns the number of float32 values in a SIMD vector as these operators use it: 16, 8, or
// 0 if the operators are not part of this program or the processor lacks AVX2.
func Width() int { return kernels.Width() }

// Load prepares the operators for an ONNX Runtime library, given its OrtApi of version 24 or later.
// It is called once.
func Load(api unsafe.Pointer) error { return kernels.Load(api) }

// Register adds the operators to the options of a session (OrtSessionOptions).
func Register(options unsafe.Pointer) error { return kernels.Register(options) }
