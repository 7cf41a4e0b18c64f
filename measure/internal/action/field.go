// Package action applies transformations of the input to feature maps.
//
// A Field is the action tau of a transformation on the positions of an h x w map: for each position
// of the result, it has the positions whose values are read. It also states which positions are
// counted, that is, enter the sums of a measure: those whose value does not depend on what lies
// outside the map. A map is one channel of a layer's activations.
//
//	points, ok := measure.PointMapOf(move, h, w)
//	f := new(action.Cache).Of(points, action.Grid{Height: h, Width: w})
//	// dst = tau z, both c x h x w; nil: channels stay, and no floor is computed (see Act)
//	f.Act(dst, z, action.Layout{Channels: c, Planes: true}, nil, nil)
package action

import (
	"math"
	"sync"

	"github.com/noether-ml/noether/measure"
)

// A Field is the action tau of a transformation on the positions of an h x w map, numbered row by
// row.
type Field struct {
	Still   bool  // tau is the identity
	Exact   bool  // at counted positions tau and tau^-1 copy single values, without interpolation
	Counted []Run // counted positions
	N       int   // number of counted positions
	forward taps  // of tau, for the counted positions and those that back reads
	back    taps  // of tau^-1, for the counted positions; empty if tau is exact
}

// A Run is a range of consecutive positions, To excluded.
type Run struct{ From, To int }

// interpolated reports whether tau and tau^-1 interpolate on a map that does not wrap around, as
// kernels of package simd do.
func (f *Field) interpolated() bool {
	fits := func(t *taps) bool { return t.fractions != nil && t.corners == nil }
	return !f.Still && !f.Exact && fits(&f.forward) && fits(&f.back)
}

// taps are the positions from which those of some runs are read. With fractions a value is
// interpolated between the position in at, those to its right and below, and the one diagonally
// below. If the map wraps around, corners lists the last three.
type taps struct {
	runs        []Run
	place       []int32      // the positions of the runs; nil without fractions
	at          []int32      // the position that is read, or the first of four
	fractions   [][2]float32 // how far the point lies right of and below the position in at, 0 to 1; nil: values are not interpolated
	right, down int          // steps from a position to those right of it and below: 1 and the width; 0 if there is one column or one row
	corners     [][3]int32   // nil unless the map wraps around
}

// A Grid is the size of a map. Positions in its margin, a fraction of each side, are not counted.
type Grid struct {
	Height, Width int
	Margin        float64
}

// newField returns the action on maps of the size g. p gives the positions that are read.
//
// A position is counted if it, the one that tau reads it from and the one that tau moves it to lie
// inside the map without its margin. If the map wraps around and tau permutes the axes, none lies
// outside. If tau has no inverse, none is counted. For the floor, where tau^-1 reads a position
// that tau reads from outside the map, tau reads the nearest value inside.
func newField(p measure.PointMap, g Grid) *Field {
	inverse, ok := p.Inverse()
	if !ok {
		return &Field{}
	}
	f := &Field{Still: p.Fixed(), Exact: true}
	around := p.Wrap && p.PermutesAxes() // no position is read from outside
	n := g.Height * g.Width
	tau, tauInverse := make([]point, n), make([]point, n) // the points that they read positions from
	for i := range g.Height {
		for j := range g.Width {
			at := i*g.Width + j
			tau[at], tauInverse[at] = newPoint(p, i, j, g, around), newPoint(inverse, i, j, g, around)
		}
	}
	counted, needed := make([]bool, n), make([]bool, n) // needed: counted, or read by tau^-1
	for i := range g.Height {
		for j := range g.Width {
			at := i*g.Width + j
			here := point{row: float64(i), column: float64(j)}
			if !around || g.Margin > 0 {
				counted[at] = here.within(g, g.Margin) && tau[at].within(g, g.Margin) && tauInverse[at].within(g, g.Margin)
			} else {
				counted[at] = true
			}
			if !counted[at] {
				continue
			}
			f.N++
			f.Exact = f.Exact && tau[at].whole() && tauInverse[at].whole()
			needed[at] = true
			for _, c := range tauInverse[at].corners(g) {
				needed[c] = true
			}
		}
	}
	f.Counted = runsOf(counted)
	if f.Exact {
		f.forward = newTaps(f.Counted, tau, g, around)
		return f
	}
	f.forward = newTaps(runsOf(needed), tau, g, around)
	f.back = newTaps(f.Counted, tauInverse, g, around)
	return f
}

// A point is a position that may lie between those of the map.
type point struct{ row, column float64 }

// newPoint returns the point that row i and column j are read from, without rounding errors near
// whole numbers. If around is set, it lies within the map.
func newPoint(p measure.PointMap, i, j int, g Grid, around bool) point {
	r, c := p.Source(i, j)
	at := point{snap(r, p.Nearest), snap(c, p.Nearest)}
	if around {
		at = point{Modulo(at.row, g.Height), Modulo(at.column, g.Width)}
	}
	return at
}

// snap rounds x if nearest is set or x is within 1e-7 of a whole number.
func snap(x float64, nearest bool) float64 {
	whole := math.RoundToEven(x)
	if nearest || math.Abs(x-whole) < 1e-7 {
		return whole
	}
	return x
}

func clamp(x float64, n int) float64 { return min(max(x, 0), float64(n-1)) }

// Modulo returns x modulo n, in [0, n).
func Modulo(x float64, n int) float64 {
	if x = math.Mod(x, float64(n)); x < 0 {
		x += float64(n)
	}
	return x
}

func (p point) whole() bool { return p.row == math.Floor(p.row) && p.column == math.Floor(p.column) }

func (p point) within(g Grid, margin float64) bool {
	between := func(x float64, side int) bool {
		low := margin * float64(side)
		return x >= low-1e-9 && x <= float64(side-1)-low+1e-9
	}
	return between(p.row, g.Height) && between(p.column, g.Width)
}

// corners returns the positions between which a value at the point is interpolated. Maps wrap
// around.
func (p point) corners(g Grid) [4]int {
	i, j := int(math.Floor(p.row)), int(math.Floor(p.column))
	next := func(k, side int, x float64) int {
		if x == float64(k) {
			return k
		}
		return (k + 1) % side
	}
	ni, nj := next(i, g.Height, p.row), next(j, g.Width, p.column)
	return [4]int{i*g.Width + j, i*g.Width + nj, ni*g.Width + j, ni*g.Width + nj}
}

func runsOf(set []bool) (runs []Run) {
	for at := 0; at < len(set); at++ {
		if !set[at] {
			continue
		}
		from := at
		for at < len(set) && set[at] {
			at++
		}
		runs = append(runs, Run{from, at})
	}
	return runs
}

// points has the point from which each position is read; around: the map wraps around.
func newTaps(runs []Run, points []point, g Grid, around bool) taps {
	t := taps{runs: runs}
	if g.Width > 1 {
		t.right = 1
	}
	if g.Height > 1 {
		t.down = g.Width
	}
	interpolated := false
	for _, r := range runs {
		for at := r.From; at < r.To; at++ {
			interpolated = interpolated || !points[at].whole()
		}
	}
	for _, r := range runs {
		for at := r.From; at < r.To; at++ {
			p := points[at]
			if !around {
				p = point{clamp(p.row, g.Height), clamp(p.column, g.Width)}
			}
			i, j := int(p.row), int(p.column)
			if !interpolated {
				t.at = append(t.at, int32(i*g.Width+j))
				continue
			}
			if around {
				c := p.corners(g)
				t.corners = append(t.corners, [3]int32{int32(c[1]), int32(c[2]), int32(c[3])})
			} else { // the four positions lie inside
				i, j = min(i, max(g.Height-2, 0)), min(j, max(g.Width-2, 0))
			}
			t.place = append(t.place, int32(at))
			t.at = append(t.at, int32(i*g.Width+j))
			t.fractions = append(t.fractions, [2]float32{float32(p.column - float64(j)), float32(p.row - float64(i))})
		}
	}
	return t
}

// A Cache holds the fields that were computed last, which several layers share.
type Cache struct {
	mutex     sync.Mutex
	fields    map[fieldKey]*Field
	order     []fieldKey // of the fields, the oldest first
	positions int        // of all fields
}

type fieldKey struct {
	points measure.PointMap
	grid   Grid
}

func (k fieldKey) positions() int { return k.grid.Height * k.grid.Width }

// maxCached is the number of positions of all fields above which a Cache drops its oldest fields.
// The latest one, of about 40 bytes for each position, is kept in any case.
const maxCached = 1 << 20

// Of returns the field of the action on maps of the size g.
func (c *Cache) Of(p measure.PointMap, g Grid) *Field {
	key := fieldKey{p, g}
	c.mutex.Lock()
	f := c.fields[key]
	c.mutex.Unlock()
	if f != nil {
		return f
	}
	f = newField(p, g)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.fields == nil {
		c.fields = map[fieldKey]*Field{}
	}
	if c.fields[key] == nil {
		c.fields[key] = f
		c.order = append(c.order, key)
		c.positions += key.positions()
	}
	for len(c.order) > 1 && c.positions > maxCached {
		delete(c.fields, c.order[0])
		c.positions -= c.order[0].positions()
		c.order = c.order[1:]
	}
	return f
}
