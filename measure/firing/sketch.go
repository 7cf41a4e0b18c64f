package firing

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/huge"
	"github.com/noether-ml/noether/internal/state"
)

// sketch keeps, for each of some units, so much of its largest values that the k-th largest can be told within a stated error: a quantile
// sketch after Karnin, Lang and Liberty, "Optimal quantile approximation in streams" (2016), of the tail alone, which spares the
// larger values as Cormode and others do in "Relative error streaming quantiles" (2021).
//
// A value at or below the gate is told by one comparison, and left out. The others are put down as they come at level 0, which is sorted
// when it is full: its lower half moves up, of each 2^step values one. Values at level h > 0 stand for 2^(step+h-1) each, and where such a level is full,
// every second value of its lower half moves up in the place of two. Which of two or more it is follows from a hash, and is mirrored the next time. The weight
// of all stays what it was, and the rank of a value changes by less than the weight above, that of the largest not at all: so what is merged of many parts, in each of which few values
// are among the k largest of all, is no worse than what was seen in one. Once the values weigh a quarter more than k and a margin, the lowest
// are dropped: no value at or below the gate can be the k-th any more.
type sketch struct {
	units  int
	first  int       // number of the first unit, of which draws depend
	k      int       // the rank that is asked for
	target int       // what is left when values are dropped: k and a margin
	step   int       // levels of a full ladder that lie between level 0 and level 1
	start  []int     // of each level among the values of a unit, and their number in the end
	items  []float32 // units x size
	fill   []uint16  // units x levels: values in each
	turns  []uint16  // units x levels: how often each has moved up
	gate   []float32 // by unit: values that are no higher change nothing
}

const (
	leastLevel = 8    // room of a level, at least
	mostLevel  = 8192 // and at most
	bulk       = 32   // room of level 0, at least: values are cheaper to sort by many
	narrow     = 12   // levels of less room are left to level 0
	leastAbove = 24   // room of a level above level 0, at least: the more of them, the more seldom they are sorted
	mostStep   = 4    // so that the lower half of level 0 makes one value at least
)

// levels are the rooms of a sketch's levels, the heaviest values last: each has two thirds of the room of the one above it. The last has room
// for twice the weight that is kept. Level 0 takes the place of the lowest step levels.
func levels(k int, relative float64) (rooms []int, step int) {
	top := float64(leastLevel)
	if relative > 0 {
		top = max(top, perError/relative)
	}
	top = min(top, mostLevel)
	n := 1
	for top*float64(int(1)<<(n-1)) < 2*float64(keptWeight(k, relative)) {
		n++
	}
	if n == 1 {
		return []int{even(2 * float64(keptWeight(k, relative)))}, 1
	}
	for h := range n {
		room := even(max(leastLevel, top*math.Pow(2./3, float64(n-1-h))))
		if room < narrow && step < mostStep && h < n-1 {
			step++
			continue
		}
		if n := len(rooms); n < 2 {
			room = max(room, leastAbove)
		} else {
			room = max(room, even(4+float64(rooms[n-1])/4)) // what moves up fits once the level itself has moved up
		}
		rooms = append(rooms, room)
	}
	if step > 0 {
		return slices.Concat([]int{bulk}, rooms), step
	}
	rooms[0] = max(rooms[0], bulk)
	return rooms, 1
}

// perError is the room of the last level times the error that it allows: measured, for values in many orders and merged from many parts.
const perError = 4.2

func even(v float64) int { return 2 * int(math.Ceil(v/2)) }

// keptWeight is k and a margin of three errors.
func keptWeight(k int, relative float64) int { return k + int(math.Ceil(3*relative*float64(k))) }

// sketched tells whether a sketch serves: an error is allowed, and the values themselves would take more room.
func sketched(k int, relative float64) bool {
	return relative > 0 && sketchBytes(k, relative) < int64(4*k)
}

// alike tells whether two keep the same things.
func (t *tops) alike(o *tops) bool {
	return t.sketch == nil && o.sketch == nil || t.sketch != nil && o.sketch != nil && slices.Equal(t.sketch.start, o.sketch.start)
}

func newSketch(units, k int, relative float64, first int) *sketch {
	rooms, step := levels(k, relative)
	s := &sketch{units: units, first: first, k: k, target: keptWeight(k, relative), step: step, start: []int{0}}
	for _, room := range rooms {
		s.start = append(s.start, s.start[len(s.start)-1]+room)
	}
	n := s.levels()
	s.items, s.gate = huge.Make[float32](units*s.start[n]), make([]float32, units)
	s.fill, s.turns = make([]uint16, units*n), make([]uint16, units*n)
	for u := range s.gate {
		s.gate[u] = float32(math.Inf(-1))
	}
	return s
}

// sketchBytes is the memory of a sketch for one unit.
func sketchBytes(k int, relative float64) int64 {
	bytes := 4
	rooms, _ := levels(k, relative)
	for _, room := range rooms {
		bytes += 4*room + 4
	}
	return int64(bytes)
}

func (s *sketch) levels() int { return len(s.start) - 1 }

// shift is the logarithm of what a value at level h stands for.
func (s *sketch) shift(h int) int {
	if h == 0 {
		return 0
	}
	return s.step + h - 1
}

// level are the values of unit u at level h.
func (s *sketch) level(u, h int) []float32 {
	size, n := s.start[s.levels()], s.levels()
	return s.items[u*size+s.start[h] : u*size+s.start[h]+int(s.fill[u*n+h])]
}

func (s *sketch) room(h int) int { return s.start[h+1] - s.start[h] }

// add shows a value of unit u, and tells whether the gate may have changed.
func (s *sketch) add(u int, v float32) bool {
	if !(v > s.gate[u]) {
		return false
	}
	n := len(s.start) - 1
	fill := &s.fill[u*n]
	s.items[u*s.start[n]+int(*fill)] = v // there is room: level 0 is emptied as soon as it is full
	*fill++
	if int(*fill) < s.start[1] {
		return false
	}
	s.empty(u)
	return true
}

// empty makes room at level 0, which is full.
func (s *sketch) empty(u int) {
	n := s.levels()
	if s.start[1] == bulk && n > 1 && int(s.fill[u*n+1])+bulk/2>>s.step <= s.room(1) {
		s.moveUp(u, 0)
	} else {
		s.makeRoom(u, 0)
	}
}

// put enters a value at a level above 0, making room there first if need be.
func (s *sketch) put(u, h int, v float32) {
	if s.free(u, h) == 0 {
		s.makeRoom(u, h)
		if v <= s.gate[u] {
			return
		}
	}
	at := u*s.levels() + h
	s.items[u*s.start[s.levels()]+s.start[h]+int(s.fill[at])] = v
	s.fill[at]++
}

func (s *sketch) free(u, h int) int { return s.room(h) - len(s.level(u, h)) }

// makeRoom drops what is too low, where there is enough of that, or moves the lower half of a level up.
func (s *sketch) makeRoom(u, h int) {
	before := s.free(u, h)
	if last := h == s.levels()-1; last || s.weight(u) > s.target+s.target/4 {
		s.trim(u)
		if last || s.free(u, h) > before {
			return
		}
	}
	for s.free(u, h+1) < s.room(h)/2>>s.lift(h) {
		s.makeRoom(u, h+1)
	}
	s.moveUp(u, h)
}

// lift is the logarithm of how many values of level h become one above it.
func (s *sketch) lift(h int) int { return s.shift(h+1) - s.shift(h) }

// moveUp thins the lower half of a level. There is room above it.
func (s *sketch) moveUp(u, h int) {
	v := s.level(u, h)
	sorted(v)
	at, lift := u*s.levels()+h, s.lift(h)
	of := 1 << lift
	low := len(v) / 2 &^ (of - 1)
	above := s.items[u*s.start[s.levels()]+s.start[h+1]+int(s.fill[at+1]):]
	for i, from := 0, s.draw(at, of); from < low; i, from = i+1, from+of {
		above[i] = v[from]
	}
	s.fill[at+1] += uint16(low >> lift)
	s.fill[at] = uint16(copy(v, v[low:]))
}

// draw says which of so many values moves up, of a level of a unit.
func (s *sketch) draw(at, of int) int {
	s.turns[at]++
	turn := s.turns[at] - 1
	i := int(hash(uint64(s.first*s.levels()+at), uint64(turn/2))) & (of - 1)
	if turn&1 == 1 {
		return of - 1 - i
	}
	return i
}

// weight is how many values those of unit u stand for.
func (s *sketch) weight(u int) int {
	n, sum := s.levels(), 0
	for h, f := range s.fill[u*n : (u+1)*n] {
		sum += int(f) << s.shift(h)
	}
	return sum
}

// trim drops the values below the weight that is kept.
func (s *sketch) trim(u int) {
	gate, reached := s.at(u, s.target)
	if !reached {
		return
	}
	s.gate[u] = gate
	for h := range s.levels() {
		v := s.level(u, h)
		low, _ := slices.BinarySearchFunc(v, gate, func(x, gate float32) int {
			if x <= gate {
				return -1
			}
			return 1
		})
		s.fill[u*s.levels()+h] = uint16(copy(v, v[low:]))
	}
}

// at is the value of a rank from the highest, if the values kept weigh so much. It sorts the levels.
func (s *sketch) at(u, rank int) (v float32, reached bool) {
	var heads [32]int
	for h := range s.levels() {
		values := s.level(u, h)
		sorted(values)
		heads[h] = len(values) - 1
	}
	for sum := 0; sum < rank; {
		best := -1
		for h := range s.levels() {
			if heads[h] < 0 {
				continue
			}
			if x := s.level(u, h)[heads[h]]; best < 0 || x > v {
				best, v = h, x
			}
		}
		if best < 0 {
			return 0, false
		}
		heads[best]--
		sum += 1 << s.shift(best)
	}
	return v, true
}

// threshold is about the k-th largest value of unit u, of k values or more.
func (s *sketch) threshold(u int) float32 {
	if v, ok := s.at(u, s.k); ok {
		return v
	}
	return s.gate[u]
}

// merge adds what other values gave, of a sketch of the same making.
func (s *sketch) merge(o *sketch) {
	for u := range s.units {
		s.raise(u, o.gate[u])
		for h := range o.levels() {
			for _, v := range o.level(u, h) {
				if h == 0 {
					s.add(u, v)
				} else if v > s.gate[u] {
					s.put(u, h, v)
				}
			}
		}
	}
}

// raise takes the gate of another sketch, if it is higher: below it are values that cannot be the k-th.
func (s *sketch) raise(u int, gate float32) {
	if gate <= s.gate[u] {
		return
	}
	s.gate[u] = gate
	for h := range s.levels() {
		v := s.level(u, h)
		s.fill[u*s.levels()+h] = uint16(len(slices.DeleteFunc(v, func(x float32) bool { return x <= gate })))
	}
}

func (s *sketch) write(w *state.Writer) {
	w.Float32s(s.items)
	w.Uint16s(s.fill)
	w.Uint16s(s.turns)
	w.Float32s(s.gate)
}

func (s *sketch) read(r *state.Reader) {
	r.Float32sInto(s.items)
	r.Uint16sInto(s.fill)
	r.Uint16sInto(s.turns)
	r.Float32sInto(s.gate)
	for i, f := range s.fill {
		h := i % s.levels()
		if room := s.room(h); int(f) > room || h == 0 && int(f) == room {
			s.fill[i] = 0
			r.Fail(fmt.Errorf("%d values where there is room for %d", f, room))
		}
	}
}
