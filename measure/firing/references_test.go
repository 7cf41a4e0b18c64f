package firing

import (
	"math/rand/v2"
	"testing"
)

// A placeIndex finds samples in any order, some of which cannot be read.
func TestPlaceIndex(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	index := make([]int32, 1000)
	for place, i := range r.Perm(len(index)) {
		index[place] = int32(5 * i)
		if r.IntN(4) == 0 {
			index[place] = unread
		}
	}
	p := newPlaceIndex(index)
	for place, i := range index {
		if i != unread && p.place(i) != place {
			t.Errorf("sample %d is at %d, not at %d", i, place, p.place(i))
		}
	}
}
