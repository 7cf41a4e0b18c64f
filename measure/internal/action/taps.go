package action

// This file computes tau z and, for the floor, moves it back by tau^-1, in runs of positions.

func (t *taps) readPlane(dst, src []float32) {
	k := 0
	for _, r := range t.runs {
		row := dst[r.From:r.To]
		n := len(row)
		at := t.at[k : k+n]
		switch {
		case t.fractions == nil:
			for i := range row {
				row[i] = src[at[i]]
			}
		case t.corners != nil:
			t.interpolateAround(row, src, k)
		default:
			t.interpolate(row, src, k)
		}
		k += n
	}
}

func (t *taps) interpolate(row, src []float32, k int) {
	n := len(row)
	at, fractions := t.at[k:][:n], t.fractions[k:][:n]
	right, down := t.right, t.down
	for i := range row {
		p := int(at[i])
		q := p + down
		row[i] = between(src[p], src[p+right], src[q], src[q+right], fractions[i])
	}
}

// b lies to the right of a, and c and d below a and b; fraction is the offset from a to the right
// and down.
func between(a, b, c, d float32, fraction [2]float32) float32 {
	a += fraction[0] * (b - a)
	c += fraction[0] * (d - c)
	return a + fraction[1]*(c-a)
}

// interpolateAround is interpolate for a map that wraps around.
func (t *taps) interpolateAround(row, src []float32, k int) {
	for i := range row {
		c := t.corners[k+i]
		row[i] = between(src[t.at[k+i]], src[c[0]], src[c[1]], src[c[2]], t.fractions[k+i])
	}
}

// differPlane adds |tau^-1 tau z - z|^2 and |z|^2 of one channel to s. t are the taps of tau^-1,
// moved is tau z, and plane is z.
func (t *taps) differPlane(moved, plane []float32, s *FloorSums) {
	var buffer [chunk]float32
	k := 0
	for _, r := range t.runs {
		for from := r.From; from < r.To; from += chunk {
			row := buffer[:min(chunk, r.To-from)]
			switch {
			case t.fractions == nil:
				for i := range row {
					row[i] = moved[t.at[k+i]]
				}
			case t.corners != nil:
				t.interpolateAround(row, moved, k)
			default:
				t.interpolate(row, moved, k)
			}
			s.add(row, plane[from:from+len(row)])
			k += len(row)
		}
	}
}

// readRows is readPlane for all channels, positions x channels.
func (t *taps) readRows(dst, src []float32, channels int, to []int32) {
	k := 0
	for _, r := range t.runs {
		for at := r.From; at < r.To; at++ {
			t.readRow(dst[at*channels:(at+1)*channels], src, k, to)
			k++
		}
	}
}

// readRow computes all channels of index k in t.at; c is written to channel to[c] (nil: to c).
func (t *taps) readRow(row, src []float32, k int, to []int32) {
	n := len(row)
	at := func(p int) []float32 { return src[p*n:][:n] }
	p := int(t.at[k])
	if t.fractions == nil {
		scatter(row, at(p), to)
		return
	}
	q := [3]int{p + t.right, p + t.down, p + t.right + t.down}
	if t.corners != nil {
		c := t.corners[k]
		q = [3]int{int(c[0]), int(c[1]), int(c[2])}
	}
	a, b, c, d := at(p), at(q[0]), at(q[1]), at(q[2])
	fraction := t.fractions[k]
	if to == nil {
		for i := range row {
			row[i] = between(a[i], b[i], c[i], d[i], fraction)
		}
		return
	}
	for i := range row {
		row[to[i]] = between(a[i], b[i], c[i], d[i], fraction)
	}
}

func scatter(dst, src []float32, to []int32) {
	if to == nil {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[to[i]] = v
	}
}

// differRows is differPlane for all channels, positions x channels; c of z is to[c] of moved.
func (t *taps) differRows(moved, z []float32, channels int, to []int32, s *FloorSums) {
	restored, original := make([]float32, channels), make([]float32, channels)
	k := 0
	for _, r := range t.runs {
		for at := r.From; at < r.To; at++ {
			t.readRow(restored, moved, k, nil) // nil: keeps the order of channels in moved
			scatter(original, z[at*channels:(at+1)*channels], to)
			s.add(restored, original)
			k++
		}
	}
}
