package firing

import "slices"

// A following says which units follow the trajectories of which references: for each chunk of a group and each reference, the units
// that it drives most, and those that it was drawn for at random.
type following struct {
	places []int // of the references, ascending
	chunks []followers
}

// followers are those of one chunk. Those of reference r are who[start[r]:start[r+1]].
type followers struct {
	start []int32
	who   []follower
}

// A follower is a unit of a chunk, counted from its first, with its side in the last bit and whether it is the null's in the one before.
type follower uint32

func follow(unit, side int, null bool) follower {
	f := follower(unit<<2 | side)
	if null {
		f |= 2
	}
	return f
}

func (f follower) unit() int  { return int(f >> 2) }
func (f follower) side() int  { return int(f & 1) }
func (f follower) null() bool { return f&2 != 0 }

// newFollowing deals the units of a group to their references. placeOf tells where the sample of an index stands, and nulls are the
// places that were drawn for chance.
func newFollowing(g group, globals []*Global, placeOf map[int32]int, nulls []int) *following {
	f := &following{}
	used := map[int]bool{}
	for _, global := range globals {
		for _, t := range global.sides {
			for u := range t.units {
				for _, index := range t.strongest(u) {
					used[placeOf[index]] = true
				}
			}
		}
	}
	for _, p := range nulls {
		used[p] = true
	}
	for p := range used {
		f.places = append(f.places, p)
	}
	slices.Sort(f.places)
	at := make(map[int]int32, len(f.places))
	for r, p := range f.places {
		at[p] = int32(r)
	}
	for i, c := range g {
		f.chunks = append(f.chunks, deal(len(f.places), c, globals[i], func(index int32) int32 { return at[placeOf[index]] }, func(unit, slot int) int32 {
			return at[nulls[nullOf(unit, slot, len(nulls))]]
		}))
	}
	return f
}

// deal sorts the units of a chunk by their references: counting first, then filling.
func deal(references int, c chunk, g *Global, of func(index int32) int32, null func(unit, slot int) int32) followers {
	out := followers{start: make([]int32, references+1)}
	visit := func(each func(r int32, w follower)) {
		for u := range c.count() {
			for side, t := range g.sides {
				for slot, index := range t.strongest(u) {
					each(of(index), follow(u, side, false))
					each(null(c.lo+u, slot), follow(u, side, true))
				}
			}
		}
	}
	visit(func(r int32, _ follower) { out.start[r+1]++ })
	for r := range references {
		out.start[r+1] += out.start[r]
	}
	out.who = make([]follower, out.start[references])
	next := slices.Clone(out.start)
	visit(func(r int32, w follower) {
		out.who[next[r]] = w
		next[r]++
	})
	return out
}

// A visit is a reference on whose trajectory a picture lies, and how often.
type visit struct{ reference, times int32 }

// An itinerary is the pictures of the trajectories around references, ascending, and who is visited at each.
type itinerary struct {
	numbers []int
	visits  func(number int) []visit
}

func newItinerary(p path, places []int) itinerary {
	if p.whole {
		return ownPictures(p, places)
	}
	var t itinerary
	all := map[int][]visit{}
	for r, place := range places {
		for _, number := range p.steps(place) {
			v := all[number]
			if k := len(v) - 1; k >= 0 && v[k].reference == int32(r) {
				v[k].times++
				continue
			}
			if v == nil {
				t.numbers = append(t.numbers, number)
			}
			all[number] = append(v, visit{int32(r), 1})
		}
	}
	slices.Sort(t.numbers)
	t.visits = func(number int) []visit { return all[number] }
	return t
}

// ownPictures is the itinerary where each picture belongs to one reference.
func ownPictures(p path, places []int) itinerary {
	var t itinerary
	for _, place := range places { // ascending
		t.numbers = append(t.numbers, p.steps(place)...)
	}
	n := len(p.amounts)
	t.visits = func(number int) []visit {
		r, _ := slices.BinarySearch(places, number/n)
		return []visit{{int32(r), 1}}
	}
	return t
}

// fire counts who fires at a picture among the followers of the references that it belongs to.
func (f followers) fire(row []float32, visits []visit, c chunk, to *found, path int) {
	q, t := to.q, &to.paths[path]
	for _, v := range visits {
		for _, w := range f.who[f.start[v.reference]:f.start[v.reference+1]] {
			unit, side := w.unit(), w.side()
			if row[unit]*signs[side] < q[side][c.lo+unit] {
				continue
			}
			if w.null() {
				t.null[side][c.lo+unit] += v.times
			} else {
				t.fires[side][c.lo+unit] += v.times
			}
		}
	}
}
