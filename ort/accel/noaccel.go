//go:build noaccel || !amd64

package accel

import "unsafe"

// Included reports whether the native operators are part of this program.
const Included = false

// Width returns how many float32 a vector of the operators holds: 16, 8, or 0 where they are left
// out or the processor lacks AVX2.
func Width() int { return 0 }

// Load prepares the operators for an ONNX Runtime library, given its OrtApi of version 24 or later.
// It is called once.
func Load(unsafe.Pointer) error { return nil }

// Register adds the operators to the options of a session (OrtSessionOptions).
func Register(unsafe.Pointer) error { return nil }
