package main

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/train/autoencoder"
)

// TestFalling checks that a curve counts as falling if it rises from no epoch to the next, where
// epochs that were rolled back are left out. The second curve rises, by 0.5.
func TestFalling(t *testing.T) {
	epoch := func(v float64, rolledBack bool) autoencoder.Point {
		return autoencoder.Point{Validation: v, RolledBack: rolledBack}
	}
	list := []curve{
		{points: []autoencoder.Point{epoch(3, false), epoch(2, false), epoch(2.5, true), epoch(1, false)}},
		{points: []autoencoder.Point{epoch(3, false), epoch(2, false), epoch(2.5, false), epoch(1, false)}},
		{points: []autoencoder.Point{epoch(3, false), epoch(3, false)}},
	}
	fall, rise := falling(list, func(p autoencoder.Point) float64 { return p.Validation })
	if fall != 2 || math.Abs(rise-0.5) > 1e-12 {
		t.Errorf("%d curves fall, and the largest rise is %v; want 2 and 0.5", fall, rise)
	}
}
