package firing

import (
	"math/rand/v2"
	"testing"
)

// TestPlaceIndex checks that a placeIndex finds the place of every readable sample if samples are
// not sorted and some cannot be read. A place is a position in the random order of the samples. The
// index of a sample is here a multiple of 5, so that it is not mistaken for a place.
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

// TestNullKeepsTracksTogether checks how the null (a unit's score by chance) replaces the unit's
// references (the inputs that activate it most) by random inputs. A track is a group of samples
// with images in common, such as the frames of a video; a run here is a sequence of successive
// inputs of one track. References of one track must be replaced by inputs of one run, in order, and
// different tracks independently of each other.
func TestNullKeepsTracksTogether(t *testing.T) {
	t.Parallel()
	n := nullInputs{first: []int{0}}
	// places has the places of the inputs, and first the index in it of the first input of each
	// run.
	for run := range 50 { // runs of five
		for i := range 5 {
			n.places = append(n.places, 10*run+i)
		}
		n.first = append(n.first, len(n.places))
	}
	apart := 0
	for unit := range 200 {
		got := n.replace(nil, unit, []int32{7, 3, 7, 7, 3, 9, 7, 7, 7}) // tracks of nine references
		for _, same := range [][]int{{0, 2, 3, 6, 7}, {1, 4}, {5}} {
			from := got[same[0]] / 5
			for i, slot := range same {
				if got[slot] != 5*from+i {
					t.Fatalf("unit %d: inputs %v, and those at %v are not the first of one run", unit, got, same)
				}
			}
		}
		if got[8] != got[0] {
			t.Errorf("unit %d: inputs %v, want the sixth of a track to be the first of its run again", unit, got)
		}
		if got[0]/5 != got[1]/5 {
			apart++
		}
	}
	if apart < 180 {
		t.Errorf("two tracks have different runs for %d of 200 units, want nearly all", apart)
	}
}
