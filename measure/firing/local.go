package firing

import "slices"

// places tell where samples stand.
type places struct {
	index []int32 // of the sample at each place; unread where there is none
	order []int32 // places in the order of their samples' indices
}

func placesOf(index []int32) places {
	p := places{index: index, order: make([]int32, len(index))}
	for place := range p.order {
		p.order[place] = int32(place)
	}
	slices.SortFunc(p.order, func(a, b int32) int { return int(index[a]) - int(index[b]) })
	return p
}

// of is the place of the sample of an index that there is.
func (p places) of(index int32) int {
	at, _ := slices.BinarySearchFunc(p.order, index, func(place, index int32) int { return int(p.index[place]) - int(index) })
	return int(p.order[at])
}

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

// newFollowing deals the units of a group to their references. nulls are the places that were drawn for chance.
func newFollowing(g group, globals []*Global, where places, nulls []int) *following {
	f := &following{}
	used := make([]bool, len(where.index)) // by place
	for _, global := range globals {
		for _, t := range global.sides {
			for u := range t.units {
				for _, index := range t.strongest(u) {
					used[where.of(index)] = true
				}
			}
		}
	}
	for _, p := range nulls {
		used[p] = true
	}
	at := make([]int32, len(used)) // of a place among the references
	for p, isReference := range used {
		if isReference {
			at[p] = int32(len(f.places))
			f.places = append(f.places, p)
		}
	}
	for i, c := range g {
		f.chunks = append(f.chunks, deal(len(f.places), c, globals[i], func(index int32) int32 { return at[where.of(index)] }, func(unit, slot int) int32 {
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

// A visit is a reference on whose trajectory an image lies, and how often.
type visit struct {
	reference, times int32
	itself           bool // the image is nobody's but the reference's own: who fires there among its units the thresholds' pass has told
}

// An itinerary is the images of the trajectories around references, ascending, and who is visited at each.
type itinerary struct {
	numbers []int
	visits  func(number int) []visit
}

func newItinerary(p path, places, nulls []int) itinerary {
	if p.whole {
		return ownImages(p, places, nulls)
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
			all[number] = append(v, visit{reference: int32(r), times: 1})
		}
	}
	slices.Sort(t.numbers)
	t.visits = func(number int) []visit { return all[number] }
	return t
}

// ownImages is the itinerary where each image belongs to one reference. Those that show the reference itself are needed for the null alone.
func ownImages(p path, places, nulls []int) itinerary {
	isNull := map[int]bool{}
	for _, place := range nulls {
		isNull[place] = true
	}
	var t itinerary
	for _, place := range places { // ascending
		for step, number := range p.steps(place) {
			if step != p.centre || isNull[place] {
				t.numbers = append(t.numbers, number)
			}
		}
	}
	n := len(p.amounts)
	t.visits = func(number int) []visit {
		r, _ := slices.BinarySearch(places, number/n)
		return []visit{{reference: int32(r), times: 1, itself: number%n == p.centre}}
	}
	return t
}

// fire counts who fires at an image among the followers of the references that it belongs to.
func (f followers) fire(row []float32, visits []visit, c chunk, to *found, path int) {
	q, t := to.q, &to.paths[path]
	for _, v := range visits {
		for _, w := range f.who[f.start[v.reference]:f.start[v.reference+1]] {
			unit, side := w.unit(), w.side()
			switch {
			case row[unit]*signs[side] < q[side][c.lo+unit]:
			case w.null():
				t.null[side][c.lo+unit] += v.times
			case !v.itself:
				t.fires[side][c.lo+unit] += v.times
			}
		}
	}
}
