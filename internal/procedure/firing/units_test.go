package firing

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// positionValues returns a feature map whose values encode their positions: 100 c + 10 row +
// column. If last is set, channels are the last axis.
func positionValues(channels, rows, columns int, last bool) tensor.Tensor {
	shape := []int{1, channels, rows, columns}
	if last {
		shape = []int{1, rows, columns, channels}
	}
	z := tensor.New(shape...)
	for c := range channels {
		for r := range rows {
			for k := range columns {
				at := (c*rows+r)*columns + k
				if last {
					at = (r*columns+k)*channels + c
				}
				z.Data[at] = float32(100*c + 10*r + k)
			}
		}
	}
	return z
}

// TestUnitPositions checks which values are units, those that the measure scores, with each setting
// of positions: all values, those of every channel at a number of random positions, or the maximum
// of each channel.
func TestUnitPositions(t *testing.T) {
	t.Parallel()
	for _, axes := range []tensor.Axes{"NCHW", "NHWC"} {
		z := positionValues(3, 4, 5, axes == "NHWC")
		l := tensor.Layer{Name: "l", Shape: z.Shape[1:], Axes: axes}
		for positions, want := range map[string]int{ // number of units
			"all": 60, "7": 21, "20": 60, "channels": 3,
		} {
			s := Defaults()
			s.Positions = positions
			u := newUnitSet(l, s, 1) // 1 seeds the choice of positions
			values := u.read(nil, z)
			if u.count() != want || len(values) != want {
				t.Fatalf("%s, positions %s: %d units and %d values, want %d", axes, positions, u.count(), len(values), want)
			}
			for i, v := range values {
				c, row, column := u.coordinates(i)
				if positions == "channels" {
					const largest = 34 // of row 3 and column 4
					if row != -1 || column != -1 || v != float32(100*c+largest) {
						t.Errorf("%s: the maximum of channel %d is %v at %d, %d; want %d at -1, -1", axes, c, v, row, column, 100*c+largest)
					}
					continue
				}
				if v != float32(100*c+10*row+column) {
					t.Errorf("%s, positions %s: unit %d at %d, %d, %d has the value %v, want %d", axes, positions, i, c, row, column, v, 100*c+10*row+column)
				}
			}
		}
	}
}

// TestUnitsWithoutSpace checks units of layers without two spatial axes, or with a single position.
// A position in time (T) is a row; a row or column of -1 means that there is none.
func TestUnitsWithoutSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axes              tensor.Axes
		shape             []int
		unit              int
		channel, row, col int
	}{
		{"NC", []int{9}, 4, 4, -1, -1},
		{"NTC", []int{5, 4}, 13, 1, 3, -1},
		{"NCT", []int{4, 5}, 13, 2, 3, -1},
		{"N??", []int{4, 5}, 13, 13, -1, -1}, // axes of unknown meaning
		{"", []int{4, 5}, 13, 13, -1, -1},
		{"NCHW", []int{6, 1, 1}, 3, 3, -1, -1},
	} {
		u := newUnitSet(tensor.Layer{Shape: c.shape, Axes: c.axes}, Defaults(), 1)
		got := [3]int{}
		got[0], got[1], got[2] = u.coordinates(c.unit)
		if want := [3]int{c.channel, c.row, c.col}; got != want || u.count() != tensor.Size(c.shape) {
			t.Errorf("%s %v: unit %d of %d is at %v, want %v", c.axes, c.shape, c.unit, u.count(), got, want)
		}
	}
}

// TestRandomPositions checks that the seed, here 1, 1 and 2, determines the positions.
func TestRandomPositions(t *testing.T) {
	t.Parallel()
	l := tensor.Layer{Name: "l", Shape: []int{2, 8, 8}, Axes: "NCHW"}
	s := Defaults()
	s.Positions = "9"
	a, b, c := newUnitSet(l, s, 1), newUnitSet(l, s, 1), newUnitSet(l, s, 2)
	if !slices.Equal(a.picked, b.picked) || slices.Equal(a.picked, c.picked) || !slices.IsSorted(a.picked) {
		t.Errorf("positions %v, %v and %v: want the first two equal, the third different, and all sorted", a.picked, b.picked, c.picked)
	}
}
