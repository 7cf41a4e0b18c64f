//go:build !amd64 || !cgo

package distance

// The kernels, functions in C with vector instructions, are for amd64 only and need cgo. Level 0
// says that there are none.
const nativeLevel = 0

func nativeSums(own, next []pairSums, previous, a, b []float32, n, level int) {}
