package firing

import "slices"

// A placeIndex finds the place of a sample, its position in the order of the run (measure.Layout),
// by its index in the data set.
type placeIndex struct {
	sampleOf []int32 // sample index of each place, or the constant unread
	byIndex  []int32 // places, sorted by sample index
}

func newPlaceIndex(index []int32) placeIndex {
	p := placeIndex{sampleOf: index, byIndex: make([]int32, len(index))}
	for place := range p.byIndex {
		p.byIndex[place] = int32(place)
	}
	slices.SortFunc(p.byIndex, func(a, b int32) int { return int(index[a]) - int(index[b]) })
	return p
}

// place returns the place of the sample with the given index, which must exist.
func (p placeIndex) place(index int32) int {
	at, _ := slices.BinarySearchFunc(p.byIndex, index, func(place, index int32) int { return int(p.sampleOf[place]) - int(index) })
	return int(p.byIndex[at])
}

// referenceUnits maps reference stimuli to units. The null takes, for each unit, random inputs in
// place of its references. For each chunk of a group and each reference, referenceUnits lists the
// units that have it as a reference, and the units for which it is a random input of the null.
type referenceUnits struct {
	places []int // places of the references, ascending
	chunks []unitsByReference
}

// unitsByReference holds the units of one chunk, sorted by reference: those of reference r are
// units[start[r]:start[r+1]].
type unitsByReference struct {
	start []int32
	units []assignment
}

// An assignment packs a unit of a chunk, counted from the chunk's first, with its side (an index in
// signs) in bit 0. Bit 1 is set if the reference is a random input of the null.
type assignment uint32

func newAssignment(unit, side int, null bool) assignment {
	a := assignment(unit<<2 | side)
	if null {
		a |= 2
	}
	return a
}

func (a assignment) unit() int  { return int(a >> 2) }
func (a assignment) side() int  { return int(a & 1) }
func (a assignment) null() bool { return a&2 != 0 }

// newReferenceUnits assigns the units of a group to references. nulls are the places of the random
// inputs of the null.
func newReferenceUnits(g group, globals []*ThresholdEstimator, where placeIndex, nulls []int) *referenceUnits {
	f := &referenceUnits{}
	used := make([]bool, len(where.sampleOf)) // by place
	for _, global := range globals {
		for _, t := range global.sides {
			for u := range t.units {
				for _, index := range t.strongest(u) {
					used[where.place(index)] = true
				}
			}
		}
	}
	for _, p := range nulls {
		used[p] = true
	}
	at := make([]int32, len(used)) // index of a place in f.places
	for p, isReference := range used {
		if isReference {
			at[p] = int32(len(f.places))
			f.places = append(f.places, p)
		}
	}
	for i, c := range g {
		f.chunks = append(f.chunks, assignUnits(len(f.places), c, globals[i], func(index int32) int32 { return at[where.place(index)] }, func(unit, slot int) int32 {
			return at[nulls[nullOf(unit, slot, len(nulls))]]
		}))
	}
	return f
}

// assignUnits lists the units of a chunk by reference (a counting sort). of returns the number of
// the reference with a sample index, and null that of a random input of a unit.
func assignUnits(references int, c chunk, g *ThresholdEstimator, of func(index int32) int32, null func(unit, slot int) int32) unitsByReference {
	out := unitsByReference{start: make([]int32, references+1)}
	visit := func(each func(r int32, w assignment)) {
		for u := range c.count() {
			for side, t := range g.sides {
				for slot, index := range t.strongest(u) {
					each(of(index), newAssignment(u, side, false))
					each(null(c.lo+u, slot), newAssignment(u, side, true))
				}
			}
		}
	}
	visit(func(r int32, _ assignment) { out.start[r+1]++ })
	for r := range references {
		out.start[r+1] += out.start[r]
	}
	out.units = make([]assignment, out.start[references])
	next := slices.Clone(out.start)
	visit(func(r int32, w assignment) {
		out.units[next[r]] = w
		next[r]++
	})
	return out
}

// A membership is a reference with an image on its trajectory, and how often the image is on it.
type membership struct {
	reference, times int32
	// whether the image is the reference itself, for which the threshold stage has counted firing
	itself bool
}

// trajectoryImages are the images on the trajectories of references, ascending, with the references
// of each image.
type trajectoryImages struct {
	numbers     []int // of the images (see image.number), ascending
	memberships func(number int) []membership
}

func newTrajectoryImages(p trajectory, places, nulls []int) trajectoryImages {
	if p.exclusive {
		return exclusiveImages(p, places, nulls)
	}
	var t trajectoryImages
	all := map[int][]membership{}
	for r, place := range places {
		for _, number := range p.images(place) {
			v := all[number]
			if k := len(v) - 1; k >= 0 && v[k].reference == int32(r) {
				v[k].times++
				continue
			}
			if v == nil {
				t.numbers = append(t.numbers, number)
			}
			all[number] = append(v, membership{reference: int32(r), times: 1})
		}
	}
	slices.Sort(t.numbers)
	t.memberships = func(number int) []membership { return all[number] }
	return t
}

// exclusiveImages returns the images of trajectories without common images. References themselves
// are read only if they are random inputs of the null: the threshold stage has counted the firing
// of units at their own references.
func exclusiveImages(p trajectory, places, nulls []int) trajectoryImages {
	isNull := map[int]bool{}
	for _, place := range nulls {
		isNull[place] = true
	}
	var t trajectoryImages
	for _, place := range places { // ascending
		for step, number := range p.images(place) {
			if step != p.centre || isNull[place] {
				t.numbers = append(t.numbers, number)
			}
		}
	}
	n := len(p.amounts)
	t.memberships = func(number int) []membership {
		r, _ := slices.BinarySearch(places, number/n)
		return []membership{{reference: int32(r), times: 1, itself: number%n == p.centre}}
	}
	return t
}

// countFiring counts the units that fire at an image, among the units of the references whose
// trajectories it is on. kind is the index of the kind of trajectory.
func (f unitsByReference) countFiring(row []float32, memberships []membership, c chunk, result *layerResult, kind int) {
	q, t := result.q, &result.trajectories[kind]
	for _, v := range memberships {
		for _, w := range f.units[f.start[v.reference]:f.start[v.reference+1]] {
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
