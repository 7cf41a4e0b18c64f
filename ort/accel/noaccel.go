//go:build noaccel || !amd64

package accel

import "unsafe"

// Included reports whether the native operators are part of this program.
const Included = false

// Width is how many float32 the operators process at once, 16 or 8; 0 where they are left out or slow on this processor.
func Width() int { return 0 }

// Load prepares the operators for a library, given its OrtApi of version 24 or later. It is called once.
func Load(unsafe.Pointer) error { return nil }

// Register makes the operators known to a session's options (OrtSessionOptions).
func Register(unsafe.Pointer) error { return nil }
