// Package simd is where inner loops of measures find forms that use vector instructions. A package
// that has them registers them by Use, such as simd/avx. Without, the loops in Go are used, and
// scores are the same to rounding.
package simd

// Kernels are the loops.
type Kernels interface {
	// RowSums sets own[i] to the sums of row i of a and row i of b; each has len(own) rows of n
	// values. If next is not nil, it sets next[i] to those of row i-1 of a and row i of b. previous
	// takes the place of row -1 of a; if it is nil, next[0] is not set. Sums are in float32 over 16
	// successive values of a lane.
	RowSums(own, next []RowSums, previous, a, b []float32, n int)
	// Interpolate writes the feature maps z, channels x positions, moved by the taps forward, to dst.
	// Channel c goes to channel to[c]. If floor is not nil, |m - z|^2 is added to floor[0] and |z|^2
	// to floor[1], where m is the result moved by the taps back, over the places of back.
	Interpolate(dst, z []float32, channels, positions int, to []int32, forward, back Taps, floor *[2]float64)
	// DifferenceSums returns the sums of (a - b)^2, a^2 and b^2 over some ranges of each row: range k
	// is ends[2k] to ends[2k+1], excluded.
	DifferenceSums(a, b []float32, rows int, ends []int32) (difference, aa, bb float64)
	// Dot returns the sum of a b over some ranges of each row.
	Dot(a, b []float32, rows int, ends []int32) float64
}

// RowSums are sums over the values of two rows a and b.
type RowSums struct {
	AA, BB float64 // sum a^2, sum b^2
	Abs    float64 // sum |a - b|
	Sqr    float64 // sum (a - b)^2
}

// Taps say how values of a map are interpolated. Value k is written to position Place[k]. It lies
// between four positions: At[k], Right after it, Down after it, and both.
type Taps struct {
	Place, At   []int32
	Fractions   [][2]float32 // weights of the right column and of the lower row, 0 to 1
	Right, Down int
}

var registered Kernels

// Use registers kernels. Call it before any measure runs, for instance in an init function.
func Use(k Kernels) { registered = k }

// Registered returns the kernels in use, or nil.
func Registered() Kernels { return registered }
