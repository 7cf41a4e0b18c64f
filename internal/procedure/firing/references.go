package firing

import "slices"

// A placeIndex finds the place of a sample, its position in the random order, by its index.
type placeIndex struct {
	sampleOf []int32 // index of the sample at each place; unread if it cannot be read
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

func (p placeIndex) place(index int32) int {
	at, _ := slices.BinarySearchFunc(p.byIndex, index, func(place, index int32) int { return int(p.sampleOf[place]) - int(index) })
	return int(p.byIndex[at])
}

// referenceUnits maps reference stimuli to units. For the null, the score that chance gives, each
// unit also has as many random inputs as references. For each chunk of a group and each place,
// referenceUnits lists the units for which the sample is a reference or a random input.
type referenceUnits struct {
	places []int              // places of the references and random inputs, ascending
	chunks []unitsByReference // for each chunk of the group
}

// The units of reference r are units[start[r]:start[r+1]].
type unitsByReference struct {
	start []int32
	units []assignment
}

// An assignment packs the side in bit 0; in bit 1, whether the reference is a random input of the
// null; above, a unit, counted from the first of its chunk.
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

func newReferenceUnits(g group, estimators []*ThresholdEstimator, where placeIndex, tracks trackIndex, nulls nullInputs) *referenceUnits {
	f := &referenceUnits{}
	used := make([]bool, len(where.sampleOf)) // by place: whether it is a reference or random input
	for _, e := range estimators {
		for _, t := range e.sides {
			for u := range t.units {
				for _, index := range t.strongest(u) {
					used[where.place(index)] = true
				}
			}
		}
	}
	for _, p := range nulls.places {
		used[p] = true
	}
	at := make([]int32, len(used)) // index of a place in f.places
	for p, ok := range used {
		if ok {
			at[p] = int32(len(f.places))
			f.places = append(f.places, p)
		}
	}
	var trackOf []int32
	var random []int // indices in nulls.places
	reference := func(index int32) int32 { return at[where.place(index)] }
	null := func(dst []int32, unit int, strongest []int32) []int32 {
		trackOf = trackOf[:0]
		for _, index := range strongest {
			trackOf = append(trackOf, tracks.track(where.place(index)))
		}
		random, dst = nulls.replace(random, unit, trackOf), dst[:0]
		for _, i := range random {
			dst = append(dst, at[nulls.places[i]])
		}
		return dst
	}
	for i, c := range g {
		f.chunks = append(f.chunks, assignUnits(len(f.places), c, estimators[i], reference, null))
	}
	return f
}

// assignUnits is a counting sort of a chunk's units by reference. reference returns the number of
// the reference with a sample index, null those of the random inputs that replace a unit's
// references.
func assignUnits(references int, c chunk, e *ThresholdEstimator, reference func(index int32) int32, null func(dst []int32, unit int, strongest []int32) []int32) unitsByReference {
	out := unitsByReference{start: make([]int32, references+1)}
	var random []int32
	const ofNull = true
	visit := func(each func(r int32, w assignment)) {
		for u := range c.count() {
			for side, t := range e.sides {
				strongest := t.strongest(u)
				random = null(random, c.lo+u, strongest)
				for slot, index := range strongest {
					each(reference(index), newAssignment(u, side, !ofNull))
					each(random[slot], newAssignment(u, side, ofNull))
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

type membership struct {
	reference int32 // index in referenceUnits.places
	times     int32 // how often the image is on its trajectory
	// itself: the image is the reference, and no image is on two trajectories, so that the
	// threshold stage has counted the firing at it.
	itself bool
}

// memberships returns the references on whose trajectories an image is.
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

// exclusiveImages is newTrajectoryImages for trajectories without common images. A reference itself
// is read only if it is an input of the null: the threshold stage has counted the firing at
// references. p.centre is its step.
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
	n := len(p.amounts) // images are numbered place by place, n for each
	t.memberships = func(number int) []membership {
		r, _ := slices.BinarySearch(places, number/n)
		return []membership{{reference: int32(r), times: 1, itself: number%n == p.centre}}
	}
	return t
}

// countFiring counts, in the result of their layer, the units that fire at an image on the
// trajectories of their references. row holds the activations of the chunk's units.
func (f unitsByReference) countFiring(row []float32, memberships []membership, c chunk, result *layerResult, kind int) {
	q, t := result.q, &result.trajectories[kind]
	for _, v := range memberships {
		for _, w := range f.units[f.start[v.reference]:f.start[v.reference+1]] {
			unit, side := w.unit(), w.side()
			switch {
			case row[unit]*signs[side] < q[side][c.lo+unit]: // it does not fire
			case w.null():
				t.null[side][c.lo+unit] += v.times
			case !v.itself:
				t.fires[side][c.lo+unit] += v.times
			}
		}
	}
}
