package linalg

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAddCrossings checks that AddCrossings, which updates many crossings at once, gives the values
// of CrossScatter.Add. A CrossScatter holds the sums of products of deviations from the mean,
// between a group of variables of x and one of y. The field All of a Crossing is that of all
// observations; the field Part, unless it is nil, that of some of them. Groups are crossed in all
// pairs, or each with itself; observations are in float32 or in float64.
func TestAddCrossings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		widths := rapid.SliceOfN(rapid.SampledFrom([]int{1, 3, 40, 700}), 1, 4).Draw(t, "widths")
		double, every := rapid.Bool().Draw(t, "double"), rapid.Bool().Draw(t, "every pair")
		var crossings, want []Crossing
		offsets, p := []int{}, 0
		for _, w := range widths {
			offsets, p = append(offsets, p), p+w
		}
		for i, a := range widths {
			for j, b := range widths {
				if every || i == j {
					c := Crossing{offsets[i], offsets[j], NewCrossScatter[float64](a, b), NewCrossScatter[float32](a, b)}
					if i == 0 {
						c.Part = nil
					}
					crossings = append(crossings, c)
					w := Crossing{c.X, c.Y, c.All.Clone(), nil}
					if c.Part != nil {
						w.Part = c.Part.Clone()
					}
					want = append(want, w)
				}
			}
		}
		// A Block holds observations, centred on their mean; a Scratch is memory for products.
		// gaussian returns n x w values with a mean of 3.
		var x Block
		for range 2 {
			n := rapid.IntRange(2, 9).Draw(t, "n")
			block := func(w int) Block {
				if values := gaussian(g, n, w, 3); double {
					wide := make([]float64, len(values))
					for i, v := range values {
						wide[i] = float64(v)
					}
					return Centre64(wide, w)
				} else {
					return Centre(values, w)
				}
			}
			var blocks []Block
			for _, w := range widths {
				blocks = append(blocks, block(w))
			}
			x = SideBySide(x, blocks)
			y := x.Permuted(g.Perm(n))
			AddCrossings(x, y, crossings, new(Scratch))
			for _, w := range want {
				w.All.Add(x.Columns(w.X, w.X+w.All.P), y.Columns(w.Y, w.Y+w.All.Q), w.Part, new(Scratch))
			}
		}
		for i, c := range crossings {
			w := want[i]
			if c.All.N != w.All.N || !slices.Equal(c.All.MeanY, w.All.MeanY) {
				t.Fatalf("crossing %d: %d observations and means %v, want %d and %v", i, c.All.N, c.All.MeanY, w.All.N, w.All.MeanY)
			}
			checkEqual(t, "scatter", c.All.Data, w.All.Data, 1e-4)
			if c.Part == nil {
				continue
			}
			for k, v := range c.Part.Data {
				checkEqual(t, "part", []float64{float64(v)}, []float64{float64(w.Part.Data[k])}, 1e-4)
			}
		}
	})
}

func TestAddCrossingsOutsideOfBlocks(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a crossing outside of the blocks is accepted")
		}
	}()
	b := Centre([]float32{1, 2, 3, 4}, 2)
	AddCrossings(b, b, []Crossing{{X: 1, All: NewCrossScatter[float64](2, 1)}}, new(Scratch))
}
