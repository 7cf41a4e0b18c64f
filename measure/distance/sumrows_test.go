package distance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	_ "github.com/noether-ml/noether/internal/simd/avx"
)

// TestSumRows checks that the sums of a pair of rows do not depend, to the bit, on the other rows
// of a call, and are near the sums in float64. The values include those whose squares underflow or
// overflow in float32, pairs with very different norms, NaN and infinity. own holds the sums of
// rows a[i] and b[i], next those of a[i-1] and b[i].
func TestSumRows(t *testing.T) {
	t.Parallel()
	// The kernels are used for rows of at least kernelValues components.
	const rows, n = 5, 3*kernelValues + 7
	r := rand.New(rand.NewPCG(1, 3))
	cases := map[string]func(a, b []float32){
		"nearly equal":      func(a, b []float32) { copy(b, a); b[n] *= 1.0001; b[2*n+1] += 1e-5 },
		"tiny":              func(a, b []float32) { scale(a, 1e-30); scale(b, 1e-30) },
		"huge":              func(a, b []float32) { scale(a, 1e30); scale(b, 1e30) },
		"one tiny":          func(a, b []float32) { scale(b, 1e-30) },
		"one small":         func(a, b []float32) { scale(b, 1e-3) },
		"tiny differences":  func(a, b []float32) { scale(a[:rows*n/2], 1e-30); copy(b, a); scale(b[:rows*n/2], 1.5) },
		"zeros":             func(a, b []float32) { clear(a); clear(b[n:]) },
		"the same":          func(a, b []float32) { copy(b, a) },
		"NaN":               func(a, b []float32) { a[n+3] = float32(math.NaN()) },
		"infinity":          func(a, b []float32) { b[2*n+3000] = float32(math.Inf(1)) },
		"negative infinity": func(a, b []float32) { b[5*n-1] = float32(math.Inf(-1)) },
		"one huge value":    func(a, b []float32) { a[7] = 3e38 },
		"normal":            func(a, b []float32) {},
	}
	for name, change := range cases {
		a, b := normal(r, rows*n, 1), normal(r, rows*n, 1)
		change(a, b)
		own, next := make([]pairSums, rows), make([]pairSums, rows)
		sumRows(own, next, nil, a, b)
		for i := range rows {
			x, y := a[i*n:(i+1)*n], b[i*n:(i+1)*n]
			compareDistances(t, fmt.Sprintf("%s, row %d", name, i), own[i], sumsInGo(x, y))
			if alone := newPairSums(x, y); !equalSums(alone, own[i]) {
				t.Errorf("%s, row %d: %+v alone, %+v among others", name, i, alone, own[i])
			}
			if i == 0 {
				continue
			}
			before := a[(i-1)*n : i*n]
			compareDistances(t, fmt.Sprintf("%s, row %d and the row before", name, i), next[i], sumsInGo(before, y))
			one, shuffled := make([]pairSums, 1), make([]pairSums, 1)
			if sumRows(one, shuffled, before, x, y); !equalSums(shuffled[0], next[i]) || !equalSums(newPairSums(before, y), next[i]) {
				t.Errorf("%s, row %d and the row before: %+v at the start of a call, %+v within one", name, i, shuffled[0], next[i])
			}
		}
	}
}

// normal returns n normal values times a factor.
func normal(r *rand.Rand, n int, factor float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = factor * float32(r.NormFloat64())
	}
	return out
}

func scale(a []float32, factor float32) {
	for i := range a {
		a[i] *= factor
	}
}

// near reports whether two numbers have a small relative difference, or are both NaN.
func near(a, b, tolerance float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tolerance*math.Abs(b)
}

// compareSums compares sums of squares and sums of differences of two vectors.
func compareSums(t *testing.T, name string, got, want pairSums, tolerance float64) {
	t.Helper()
	if !near(got.aa, want.aa, tolerance) || !near(got.bb, want.bb, tolerance) || !near(got.abs, want.abs, tolerance) || !near(got.sqr, want.sqr, tolerance) {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
}

// compareDistances compares the sums and the distances of two vectors.
func compareDistances(t *testing.T, name string, got, want pairSums) {
	t.Helper()
	const tolerance = 6e-8 // 2^-24: half the spacing of float32 values at 1
	compareSums(t, name, got, want, tolerance)
	if d, w := got.distances(), want.distances(); math.Abs(d.Cosine-w.Cosine) > 10*tolerance*w.Cosine+1e-16 || !near(d.RelativeL2, w.RelativeL2, tolerance) {
		t.Errorf("%s: %+v, want %+v", name, d, w)
	}
}

// equalSums compares all sums but the dot product, which kernels leave out. NaN equals NaN.
func equalSums(a, b pairSums) bool {
	return near(a.aa, b.aa, 0) && near(a.bb, b.bb, 0) && near(a.abs, b.abs, 0) && near(a.sqr, b.sqr, 0)
}
