package resample

import (
	"math/rand/v2"
	"testing"
)

// TestCycleIsOneCycle checks that the permutation of Cycle, followed from 0, returns to 0 after n
// steps, not before.
func TestCycleIsOneCycle(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 2))
	for n := range 20 {
		p := Cycle(g, n)
		steps := 0
		for at := 0; n > 0; {
			at = p[at]
			if steps++; at == 0 {
				break
			}
		}
		if steps != n {
			t.Errorf("the cycle of 0 in Cycle(g, %d) = %v has length %d, want %[1]d", n, p, steps)
		}
	}
}
