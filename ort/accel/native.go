//go:build !noaccel && amd64

package accel

import (
	"unsafe"

	"github.com/noether-ml/noether/ort/accel/internal/kernels"
)

// Included reports whether the native operators are part of this program.
const Included = true

// Width is how many float32 the operators process at once, 16 or 8; 0 where they are left out or slow on this processor.
func Width() int { return kernels.Width() }

// Load prepares the operators for a library, given its OrtApi of version 24 or later. It is called once.
func Load(api unsafe.Pointer) error { return kernels.Load(api) }

// Register makes the operators known to a session's options (OrtSessionOptions).
func Register(options unsafe.Pointer) error { return kernels.Register(options) }
