//go:build !linux

package huge

func advise[T float32 | float64]([]T) {}
