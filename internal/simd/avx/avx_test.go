//go:build amd64 && cgo

package avx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/simd"
)

// TestRowSums compares the kernels of each level with sums in float64. The lengths lie around
// multiples of a kernel's units: 16 lanes, the 256 values that are added in float32, and chunks of
// 2,048 values.
func TestRowSums(t *testing.T) {
	t.Parallel()
	if supported == 0 {
		t.Skip("needs a processor with AVX2, which the kernels are for")
	}
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	lengths := []int{240, 255, 256, 257, 272, 511, 4095, 4096, 4097, 4112, 8191, 8192, 8193, 12345}
	for n := range 70 {
		lengths = append(lengths, n)
	}
	for level := 1; level <= supported; level++ {
		for _, n := range lengths {
			const rows = 3
			previous, a, b := normal(n), normal(rows*n), normal(rows*n)
			own, next := make([]simd.RowSums, rows), make([]simd.RowSums, rows)
			kernels{level}.RowSums(own, next, previous, a, b, n)
			for i := range rows {
				x, y := a[i*n:(i+1)*n], b[i*n:(i+1)*n]
				name := fmt.Sprintf("level %d, row %d of %d values", level, i, n)
				compare(t, name, own[i], exact(x, y))
				compare(t, name+" and the row before", next[i], exact(previous, y))
				previous = x
			}
		}
	}
}

// exact returns the sums in float64.
func exact(a, b []float32) (s simd.RowSums) {
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		s.AA, s.BB, s.Abs, s.Sqr = s.AA+x*x, s.BB+y*y, s.Abs+math.Abs(x-y), s.Sqr+(x-y)*(x-y)
	}
	return s
}

func compare(t *testing.T, name string, got, want simd.RowSums) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 2e-7*math.Abs(b) }
	if !near(got.AA, want.AA) || !near(got.BB, want.BB) || !near(got.Abs, want.Abs) || !near(got.Sqr, want.Sqr) {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
}
