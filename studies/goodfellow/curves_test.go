package main

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/train/autoencoder"
)

// TestFalling checks that a curve falls if no epoch that is kept is above the previous one that is
// kept.
func TestFalling(t *testing.T) {
	at := func(v float64, undone bool) autoencoder.Point {
		return autoencoder.Point{Validation: v, RolledBack: undone}
	}
	list := []curve{
		{points: []autoencoder.Point{at(3, false), at(2, false), at(2.5, true), at(1, false)}},
		{points: []autoencoder.Point{at(3, false), at(2, false), at(2.5, false), at(1, false)}},
		{points: []autoencoder.Point{at(3, false), at(3, false)}},
	}
	fall, rise := falling(list, func(p autoencoder.Point) float64 { return p.Validation })
	if fall != 2 || math.Abs(rise-0.5) > 1e-12 {
		t.Errorf("%d curves fall, and the largest rise is %v; want 2 and 0.5", fall, rise)
	}
}
