// Package avx registers kernels in C, for AVX2 and AVX-512, with package simd when it is imported.
// It does nothing on other processors, and without cgo.
package avx
