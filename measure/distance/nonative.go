//go:build !amd64 || !cgo

package distance

// There are no kernels for this processor, or no C compiler.
const nativeLevel = 0

func nativeSums(own, next []pairSums, previous, a, b []float32, n, level int) {}
