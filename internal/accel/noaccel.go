//go:build noaccel || !amd64

package accel

// The functions below do nothing. They stand for those of the same names where the operators are
// left out: with the build tag noaccel, or on processors other than amd64.

import "unsafe"

// Included reports whether the native operators are part of this program.
const Included = false

// Width returns the number of float32 in a vector of the operators: 16, 8, or 0 if the operators
// are not part of this program or the processor lacks AVX2.
func Width() int { return 0 }

// Load prepares the operators for an ONNX Runtime library, given its OrtApi of version 24 or later.
// It is called once.
func Load(unsafe.Pointer) error { return nil }

// Register adds the operators to the options of a session (OrtSessionOptions).
func Register(unsafe.Pointer) error { return nil }
