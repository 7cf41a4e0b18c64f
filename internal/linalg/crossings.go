package linalg

import "fmt"

// A Crossing is a CrossScatter between successive variables of one block and successive variables
// of another one: P variables from X on, and Q variables from Y on. A Block holds observations in
// rows and variables in columns, centred on their mean.
type Crossing struct {
	X, Y int                    // index of the first variable in either block
	All  *CrossScatter[float64] // of all observations; its P and Q are the numbers of variables
	Part *CrossScatter[float32] // of some observations, such as those of one fold; nil: none
}

// SideBySide returns a block of the variables of all blocks, which hold the same observations. Its
// values are copies, in the memory of into if that is large enough. All blocks must be in float32,
// or all in float64.
func SideBySide(into Block, blocks []Block) Block {
	var out Block
	for _, b := range blocks {
		out.n, out.p, out.mean = b.n, out.p+b.p, append(out.mean, b.mean...)
	}
	out.stride = out.p
	if len(blocks) > 0 && blocks[0].rows64 != nil {
		out.rows64 = grow(&into.rows64, out.n*out.p)
		copySideBySide(out.rows64, out.p, blocks, func(b Block) []float64 { return b.rows64 })
	} else {
		out.rows = grow(&into.rows, out.n*out.p)
		copySideBySide(out.rows, out.p, blocks, func(b Block) []float32 { return b.rows })
	}
	return out
}

// copySideBySide copies the blocks side by side into dst, whose rows have p values. rowsOf returns
// the values of a block.
func copySideBySide[T any](dst []T, p int, blocks []Block, rowsOf func(Block) []T) {
	at := 0
	for _, b := range blocks {
		rows := rowsOf(b)
		for i := range b.n {
			copy(dst[i*p+at:i*p+at+b.p], rows[i*b.stride:])
		}
		at += b.p
	}
}

// AddCrossings adds blocks of the same observations to many scatters at once, as CrossScatter.Add
// does to each. It computes one product of many variables in place of many products of few, which
// takes a fraction of the time. The product is computed in square tiles, which stay in the
// processor's cache until they are added (by a CrossUpdate) to the scatters. A Scratch is reusable
// memory. AddCrossings panics if a crossing lies outside of the blocks.
func AddCrossings(x, y Block, crossings []Crossing, scratch *Scratch) {
	updates := make([]CrossUpdate[float64], len(crossings))
	parts := make([]CrossUpdate[float32], len(crossings))
	for i, c := range crossings {
		p, q := c.All.P, c.All.Q
		if x.n != y.n || (x.rows64 == nil) != (y.rows64 == nil) || c.X < 0 || c.X+p > x.p || c.Y < 0 || c.Y+q > y.p {
			panic(fmt.Sprintf("linalg: a crossing of %d and %d variables from %d and %d on, in blocks of %d x %d and %d x %d", p, q, c.X, c.Y, x.n, x.p, y.n, y.p))
		}
		meanX, meanY := x.mean[c.X:c.X+p], y.mean[c.Y:c.Y+q]
		updates[i] = c.All.Begin(x.n, meanX, meanY)
		if c.Part != nil {
			parts[i] = c.Part.Begin(x.n, meanX, meanY)
		}
	}
	for top := 0; top < x.p; top += tile {
		bottom := min(top+tile, x.p)
		for left := 0; left < y.p; left += tile {
			right := min(left+tile, y.p)
			inTile, area := crossingsIn(crossings, top, bottom, left, right)
			if 2*area >= (bottom-top)*(right-left) {
				t := newProductTile(x, y, top, bottom, left, right, scratch)
				for _, i := range inTile {
					t.addTo(crossings[i], updates[i], parts[i])
				}
				continue
			}
			for _, i := range inTile { // few crossings: only the products of each
				c := crossings[i]
				r0, r1, c0, c1 := c.overlap(top, bottom, left, right)
				newProductTile(x, y, r0, r1, c0, c1, scratch).addTo(c, updates[i], parts[i])
			}
		}
	}
	for i := range crossings {
		updates[i].End()
		parts[i].End()
	}
}

// crossingsIn returns the indices of the crossings that overlap a tile (the rows top to bottom and
// the columns left to right, exclusive), and the size of the overlaps.
func crossingsIn(crossings []Crossing, top, bottom, left, right int) (indices []int, area int) {
	for i, c := range crossings {
		if r0, r1, c0, c1 := c.overlap(top, bottom, left, right); r0 < r1 && c0 < c1 {
			indices, area = append(indices, i), area+(r1-r0)*(c1-c0)
		}
	}
	return indices, area
}

// overlap returns the rows and the columns of a tile that belong to the crossing.
func (c Crossing) overlap(top, bottom, left, right int) (r0, r1, c0, c1 int) {
	return max(top, c.X), min(bottom, c.X+c.All.P), max(left, c.Y), min(right, c.Y+c.All.Q)
}

// A productTile holds products of the variables top to bottom (exclusive) of x with the variables
// left to right of y, summed over observations. One of values and values64 is nil.
type productTile struct {
	top, bottom, left, right int
	values                   []float32
	values64                 []float64
}

func newProductTile(x, y Block, top, bottom, left, right int, scratch *Scratch) productTile {
	t := productTile{top: top, bottom: bottom, left: left, right: right}
	if x.rows64 != nil {
		t.values64 = multiply64(x, y, top, bottom-top, left, right-left, scratch)
	} else {
		t.values = multiply(x, y, top, bottom-top, left, right-left, scratch)
	}
	return t
}

// addTo adds the products that belong to a crossing to its scatters.
func (t productTile) addTo(c Crossing, all CrossUpdate[float64], part CrossUpdate[float32]) {
	r0, r1, c0, c1 := c.overlap(t.top, t.bottom, t.left, t.right)
	for i := r0; i < r1; i++ {
		from, to := (i-t.top)*(t.right-t.left)+c0-t.left, (i-t.top)*(t.right-t.left)+c1-t.left
		if t.values64 != nil {
			addCrossRow(all, t.values64[from:to], i-c.X, c0-c.Y)
			addCrossRow(part, t.values64[from:to], i-c.X, c0-c.Y)
		} else {
			addCrossRow(all, t.values[from:to], i-c.X, c0-c.Y)
			addCrossRow(part, t.values[from:to], i-c.X, c0-c.Y)
		}
	}
}
