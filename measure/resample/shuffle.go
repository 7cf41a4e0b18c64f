package resample

import "math/rand/v2"

// Cycle returns a random permutation of 0 to n - 1 that consists of one cycle, drawn uniformly
// (Sattolo 1986). For n >= 2 it has no fixed point.
func Cycle(g *rand.Rand, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := g.IntN(i)
		p[i], p[j] = p[j], p[i]
	}
	return p
}
