package firing

import (
	"math/rand/v2"
	"testing"
)

// A placeIndex finds every readable sample if samples are not sorted and some cannot be read.
func TestPlaceIndex(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	samples := make([]int32, 1000) // index of the sample at each place
	for place, i := range r.Perm(len(samples)) {
		samples[place] = int32(5 * i)
		if r.IntN(4) == 0 {
			samples[place] = unread
		}
	}
	p := newPlaceIndex(samples)
	for want, sample := range samples {
		if sample == unread {
			continue
		}
		if got := p.place(sample); got != want {
			t.Errorf("place(%d) = %d, want %d", sample, got, want)
		}
	}
}
