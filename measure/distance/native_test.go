//go:build amd64 && cgo

package distance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestNativeSums checks that the kernels agree with the function in Go, for all lengths of rests,
// for values whose squares vanish or overflow in float32, and for those that are not finite.
func TestNativeSums(t *testing.T) {
	t.Parallel()
	if nativeLevel == 0 {
		t.Skip("needs a processor with AVX2, which the native sums are for")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for level := 1; level <= nativeLevel; level++ {
		for n := range 70 {
			for _, scale := range []float32{1, 1e-30, 1e30} {
				a, b := make([]float32, n), make([]float32, n)
				for i := range a {
					a[i], b[i] = scale*float32(r.NormFloat64()), scale*float32(r.NormFloat64())
				}
				compareSums(t, fmt.Sprintf("level %d, %d values of %v", level, n, scale), nativeSums(a, b, level), sumsInGo(a, b))
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					if n == 0 {
						continue
					}
					i := r.IntN(n)
					kept := a[i]
					a[i] = float32(bad)
					compareSums(t, fmt.Sprintf("level %d, %v at %d of %d", level, bad, i, n), nativeSums(a, b, level), sumsInGo(a, b))
					a[i] = kept
				}
			}
		}
	}
}

// compareSums compares the products, sums of squares and sums of differences of two vectors.
func compareSums(t *testing.T, name string, got, want pairSums) {
	t.Helper()
	size := math.Sqrt(want.aa * want.bb)
	near := func(a, b, scale float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-14*scale
	}
	if !near(got.dot, want.dot, size) || !near(got.aa, want.aa, want.aa) || !near(got.bb, want.bb, want.bb) || !near(got.abs, want.abs, want.abs) || !near(got.sqr, want.sqr, want.sqr) {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
}
