package resample

import "math/rand/v2"

// Cycle returns a permutation of n places that is one cycle, uniformly drawn (Sattolo 1986). For n
// of 2 or more it leaves nothing in its place, so that pairing i with Cycle(g, n)[i] pairs nothing
// with itself.
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
