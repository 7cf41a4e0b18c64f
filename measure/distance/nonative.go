//go:build !amd64 || !cgo

package distance

// nativeLevel is the level of the kernels: functions in C with vector instructions, which are for
// amd64 only and need cgo. 0 says that there are none; 1 stands for AVX2, 2 for AVX-512.
const nativeLevel = 0

// nativeSums is not called at level 0.
func nativeSums(own, next []pairSums, previous, a, b []float32, n, level int) {}
