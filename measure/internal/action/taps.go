package action

// readPlane writes the values of one channel at the positions of the taps.
func (t *taps) readPlane(dst, src []float32) {
	k := 0
	for _, r := range t.runs {
		row := dst[r.From:r.To]
		n := len(row)
		at := t.at[k : k+n]
		switch {
		case t.fx == nil:
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

// interpolate writes a row of which the first position has number k among the taps.
func (t *taps) interpolate(row, src []float32, k int) {
	n := len(row)
	at, fx, fy := t.at[k:][:n], t.fx[k:][:n], t.fy[k:][:n]
	right, down := t.right, t.down
	if right == 0 {
		for i := range row {
			p := int(at[i])
			row[i] = src[p] + fy[i]*(src[p+down]-src[p])
		}
		return
	}
	for i := range row {
		p := int(at[i])
		top, bottom := src[p:p+2:p+2], src[p+down:p+down+2:p+down+2]
		a := top[0] + fx[i]*(top[1]-top[0])
		b := bottom[0] + fx[i]*(bottom[1]-bottom[0])
		row[i] = a + fy[i]*(b-a)
	}
}

func (t *taps) interpolateAround(row, src []float32, k int) {
	for i := range row {
		c, fx := t.corners[k+i], t.fx[k+i]
		a, b := src[t.at[k+i]], src[c[1]]
		a += fx * (src[c[0]] - a)
		b += fx * (src[c[2]] - b)
		row[i] = a + t.fy[k+i]*(b-a)
	}
}

// differPlane adds the sums of the floor of one channel: moved is tau z, and plane is z.
func (t *taps) differPlane(moved, plane []float32, s *FloorSums) {
	var buffer [chunk]float32
	k := 0
	for _, r := range t.runs {
		for from := r.From; from < r.To; from += chunk {
			row := buffer[:min(chunk, r.To-from)]
			switch {
			case t.fx == nil:
				for i := range row {
					row[i] = moved[t.at[k+i]]
				}
			case t.corners != nil:
				t.interpolateAround(row, moved, k)
			case t.right == 1:
				s.addDifferences(t, moved, plane[from:from+len(row)], k)
				k += len(row)
				continue
			default:
				t.interpolate(row, moved, k)
			}
			s.add(row, plane[from:from+len(row)])
			k += len(row)
		}
	}
}

// readRows writes the channels of the positions of the taps.
func (t *taps) readRows(dst, src []float32, channels int, to []int32) {
	k := 0
	for _, r := range t.runs {
		for at := r.From; at < r.To; at++ {
			t.readRow(dst[at*channels:(at+1)*channels], src, k, to)
			k++
		}
	}
}

// readRow writes the channels of the position with number k among the taps. Channel c is written to
// channel to[c], or to itself if to is nil.
func (t *taps) readRow(row, src []float32, k int, to []int32) {
	n := len(row)
	at := func(p int) []float32 { return src[p*n:][:n] }
	p := int(t.at[k])
	if t.fx == nil {
		scatter(row, at(p), to)
		return
	}
	q := [3]int{p + t.right, p + t.down, p + t.right + t.down}
	if t.corners != nil {
		c := t.corners[k]
		q = [3]int{int(c[0]), int(c[1]), int(c[2])}
	}
	a, b, c, d := at(p), at(q[0]), at(q[1]), at(q[2])
	fx, fy := t.fx[k], t.fy[k]
	if to == nil {
		for i := range row {
			top, bottom := a[i]+fx*(b[i]-a[i]), c[i]+fx*(d[i]-c[i])
			row[i] = top + fy*(bottom-top)
		}
		return
	}
	for i := range row {
		top, bottom := a[i]+fx*(b[i]-a[i]), c[i]+fx*(d[i]-c[i])
		row[to[i]] = top + fy*(bottom-top)
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

// differRows adds the sums of the floor: moved is tau z, and z is of positions x channels.
func (t *taps) differRows(moved, z []float32, channels int, to []int32, s *FloorSums) {
	row, own := make([]float32, channels), make([]float32, channels)
	k := 0
	for _, r := range t.runs {
		for at := r.From; at < r.To; at++ {
			t.readRow(row, moved, k, nil)
			scatter(own, z[at*channels:(at+1)*channels], to)
			s.add(row, own)
			k++
		}
	}
}

// addDifferences interpolates values of moved for the positions of a row of z, of which the first
// has number k among the taps, and adds the sums of the floor.
func (s *FloorSums) addDifferences(t *taps, moved, z []float32, k int) {
	n := len(z)
	at, fx, fy := t.at[k:][:n], t.fx[k:][:n], t.fy[k:][:n]
	down := t.down
	var difference, norm float32
	for i, v := range z {
		p := int(at[i])
		top, bottom := moved[p:p+2:p+2], moved[p+down:p+down+2:p+down+2]
		a := top[0] + fx[i]*(top[1]-top[0])
		b := bottom[0] + fx[i]*(bottom[1]-bottom[0])
		d := a + fy[i]*(b-a) - v
		difference += d * d
		norm += v * v
	}
	if !precise(float64(norm)) {
		row := make([]float32, n)
		t.interpolate(row, moved, k)
		s.add(row, z)
		return
	}
	s.Difference += float64(difference)
	s.Norm += float64(norm)
}
