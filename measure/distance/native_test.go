//go:build amd64 && cgo

package distance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestNativeSums checks that the kernels agree with the function in Go, for all lengths of rests, for
// values whose squares vanish or overflow in float32, and for those that are not finite.
func TestNativeSums(t *testing.T) {
	t.Parallel()
	if nativeLevel == 0 {
		t.Skip("the processor has no AVX2")
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

// TestFastSums checks the distances of long vectors against sums in Go: to 1e-6 for vectors that are far
// apart, and to rounding for those that are near each other, tiny, huge or not finite, whose sums
// float32 does not hold.
func TestFastSums(t *testing.T) {
	t.Parallel()
	if nativeLevel == 0 {
		t.Skip("the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for level := 1; level <= nativeLevel; level++ {
		for _, n := range []int{1024, 1500, 20_011} {
			for _, c := range []struct {
				scale, change float64
				far           bool
			}{
				{1, 1, true}, {1e6, 1, true}, {1e-6, 0.2, true}, {1, 0.01, false}, {1, 1e-6, false}, {1, 0, false},
				{1e-25, 1, false}, {1e25, 1, false}, {math.NaN(), 1, false}, {math.Inf(1), 1, false},
			} {
				a, b := make([]float32, n), make([]float32, n)
				for i := range a {
					v := r.NormFloat64()
					a[i], b[i] = float32(c.scale*max(0, v)), float32(c.scale*max(0, v+c.change*r.NormFloat64()))
				}
				name := fmt.Sprintf("level %d, %d values of %v, changed by %v", level, n, c.scale, c.change)
				fast, want := fastSums(a, b, level), sumsInGo(a, b)
				if fast.farApart(n) != c.far {
					t.Errorf("%s: far apart: %v, want %v", name, !c.far, c.far)
				}
				if !c.far {
					compareSums(t, name, newPairSums(a, b), want)
					continue
				}
				got, exact := fast.distances(), want.distances()
				for k, v := range []float64{got.Cosine / exact.Cosine, got.L1 / exact.L1, got.L2 / exact.L2, got.RelativeL2 / exact.RelativeL2} {
					if !(math.Abs(v-1) < 1e-6) {
						t.Errorf("%s: statistic %d is %v of that in Go", name, k, v)
					}
				}
			}
		}
	}
}
