//go:build noaccel || !amd64

package accel

// The functions below do nothing: the operators are left out with the build tag noaccel, and on
// processors other than amd64.

import "unsafe"

// Included is false: the native operators are left out.
const Included = false

// Width returns 0.
func Width() int { return 0 }

// Load does nothing.
func Load(unsafe.Pointer) error { return nil }

// Register does nothing.
func Register(unsafe.Pointer) error { return nil }
