package firing

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/state"
)

// A sketch stores, for each unit, a sample of its largest values over the inputs, from which the
// k-th largest can be found with a given error. That value is the threshold at which the unit
// counts as firing. The sketch is the quantile sketch of Karnin, Lang and Liberty, "Optimal
// quantile approximation in streams" (2016), for the upper tail only.
//
// The sample is divided into levels, whose values each represent a number of values, their weight.
// Values at or below a bound are dropped. The others are added to level 0, with weight 1. When
// level 0 is full, it is compacted: it is sorted, and of each 2^step values of its lower half one
// is moved to level 1 and the others are dropped. A value at level h > 0 thus has weight
// 2^(step+h-1). When such a level is full, every second value of its lower half is moved to the
// next level. A hash chooses the first or the second value of each pair; the next compaction takes
// the others. The larger half of a level is not compacted, as in Cormode et al., "Relative error
// streaming quantiles" (2021).
//
// A compaction does not change the total weight. It changes the rank of a value by less than the
// weight of a value at the next level, and that of the largest values not at all. If the total
// weight exceeds target by more than a quarter when a level needs room, the lowest values are
// dropped and the bound is raised.
type sketch struct {
	units       int       // number of units
	first       int       // index of the first unit in its layer, for the hash in draw
	k           int       // rank of the threshold
	target      int       // total weight that remains when values are dropped: see keptWeight
	step        int       // binary logarithm of the weight of a value at level 1
	offsets     []int     // for each level, the index of its first value among the items of a unit; the last element is size, the number of items
	items       []float32 // units x size
	counts      []uint16  // units x levels: number of values
	compactions []uint16  // units x levels: how often the level was compacted
	bound       []float32 // by unit: values at or below it are dropped
}

const (
	minCapacity    = 8    // smallest capacity of a level, before levels raises it further
	maxCapacity    = 8192 // largest capacity of the last level
	bottomCapacity = 32   // smallest capacity of level 0; sorting is cheaper for more values at once
	replacedBelow  = 12   // level 0 replaces levels of less capacity, at most maxStep of them
	// smallest capacity of the two lowest levels that are not replaced: larger ones are sorted less
	// often
	minUpperCapacity = 24
	maxStep          = 4 // largest step, so that the lower half of level 0 has at least one value to move
)

// levels returns the capacities of a sketch's levels, in order of weight, and its step. k is the
// rank of the threshold, relative the allowed relative error of it. Each level has about two thirds
// of the capacity of the next; the last has perError / relative, and the number of levels is the
// smallest with which it, when full, has twice the target weight. The lowest levels, of less than
// replacedBelow, are replaced by a single level 0. step is their number, or 1.
func levels(k int, relative float64) (capacities []int, step int) {
	top := float64(minCapacity)
	if relative > 0 {
		top = max(top, perError/relative)
	}
	top = min(top, maxCapacity)
	n := 1
	for top*float64(int(1)<<(n-1)) < 2*float64(keptWeight(k, relative)) {
		n++
	}
	if n == 1 {
		return []int{even(2 * float64(keptWeight(k, relative)))}, 1
	}
	for h := range n {
		capacity := even(max(minCapacity, top*math.Pow(2./3, float64(n-1-h))))
		if capacity < replacedBelow && step < maxStep && h < n-1 {
			step++
			continue
		}
		if n := len(capacities); n < 2 {
			capacity = max(capacity, minUpperCapacity)
		} else {
			// values from the level below must fit after the level was compacted
			capacity = max(capacity, even(4+float64(capacities[n-1])/4))
		}
		capacities = append(capacities, capacity)
	}
	if step > 0 {
		return slices.Concat([]int{bottomCapacity}, capacities), step
	}
	capacities[0] = max(capacities[0], bottomCapacity)
	return capacities, 1
}

// perError is the last level's capacity times the resulting relative error of the rank, determined
// by experiment with values added in many orders.
const perError = 4.2

func even(v float64) int { return 2 * int(math.Ceil(v/2)) }

// keptWeight is k and a margin of three times the allowed error of the rank.
func keptWeight(k int, relative float64) int { return k + int(math.Ceil(3*relative*float64(k))) }

// sketched reports whether an error is allowed and a sketch needs less memory than the k largest
// values.
func sketched(k int, relative float64) bool {
	return relative > 0 && sketchBytes(k, relative) < int64(4*k)
}

func newSketch(units, k int, relative float64, first int) *sketch {
	capacities, step := levels(k, relative)
	s := &sketch{units: units, first: first, k: k, target: keptWeight(k, relative), step: step, offsets: []int{0}}
	for _, capacity := range capacities {
		s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+capacity)
	}
	n := s.levels()
	s.items, s.bound = make([]float32, units*s.offsets[n]), make([]float32, units)
	s.counts, s.compactions = make([]uint16, units*n), make([]uint16, units*n)
	for u := range s.bound {
		s.bound[u] = float32(math.Inf(-1))
	}
	return s
}

func sketchBytes(k int, relative float64) int64 {
	bytes := 4
	capacities, _ := levels(k, relative)
	for _, capacity := range capacities {
		bytes += 4*capacity + 4
	}
	return int64(bytes)
}

func (s *sketch) levels() int { return len(s.offsets) - 1 }

// shift returns the binary logarithm of the weight of a value at level h.
func (s *sketch) shift(h int) int {
	if h == 0 {
		return 0
	}
	return s.step + h - 1
}

func (s *sketch) level(u, h int) []float32 {
	size, n := s.offsets[s.levels()], s.levels()
	return s.items[u*size+s.offsets[h] : u*size+s.offsets[h]+int(s.counts[u*n+h])]
}

func (s *sketch) capacity(h int) int { return s.offsets[h+1] - s.offsets[h] }

// add adds a value of unit u. It reports whether the bound may have changed.
func (s *sketch) add(u int, v float32) bool {
	if !(v > s.bound[u]) {
		return false
	}
	n := len(s.offsets) - 1
	fill := &s.counts[u*n]
	// level 0 has room, since it is compacted as soon as it is full
	s.items[u*s.offsets[n]+int(*fill)] = v
	*fill++
	if int(*fill) < s.offsets[1] {
		return false
	}
	s.compactBottom(u)
	return true
}

// compactBottom makes room at level 0. If level 1 has room, it moves values up without regard to
// the total weight: fast, and usual where level 0 has the capacity bottomCapacity.
func (s *sketch) compactBottom(u int) {
	n := s.levels()
	if s.offsets[1] == bottomCapacity && n > 1 && int(s.counts[u*n+1])+bottomCapacity/2>>s.step <= s.capacity(1) {
		s.moveUp(u, 0)
	} else {
		s.compact(u, 0)
	}
}

// free returns how many more values fit into level h of unit u.
func (s *sketch) free(u, h int) int { return s.capacity(h) - len(s.level(u, h)) }

// compact makes room at a level: it drops the lowest values of all levels if the total weight is
// large enough, else moves the lower half of the level up.
func (s *sketch) compact(u, h int) {
	before := s.free(u, h)
	if last := h == s.levels()-1; last || s.weight(u) > s.target+s.target/4 {
		s.trim(u)
		if last || s.free(u, h) > before {
			return
		}
	}
	for s.free(u, h+1) < s.capacity(h)/2>>s.compactionShift(h) {
		s.compact(u, h+1)
	}
	s.moveUp(u, h)
}

// compactionShift returns log2 of how many values at level h give one at the next.
func (s *sketch) compactionShift(h int) int { return s.shift(h+1) - s.shift(h) }

// moveUp moves values of the lower half to the level above, which must have room, and drops the
// others.
func (s *sketch) moveUp(u, h int) {
	v := s.level(u, h)
	slices.Sort(v)
	at, shift := u*s.levels()+h, s.compactionShift(h)
	count := 1 << shift              // values of which one is moved
	low := len(v) / 2 &^ (count - 1) // of the lower half, a multiple of count
	above := s.items[u*s.offsets[s.levels()]+s.offsets[h+1]+int(s.counts[at+1]):]
	for i, from := 0, s.draw(at, count); from < low; i, from = i+1, from+count {
		above[i] = v[from]
	}
	s.counts[at+1] += uint16(low >> shift)
	s.counts[at] = uint16(copy(v, v[low:]))
}

// draw returns which of count successive values is moved up, from 0. at is the index in counts. Two
// successive compactions choose positions that mirror each other.
func (s *sketch) draw(at, count int) int {
	s.compactions[at]++
	earlier := s.compactions[at] - 1 // number of earlier compactions
	i := int(hash(uint64(s.first*s.levels()+at), uint64(earlier/2))) & (count - 1)
	if earlier&1 == 1 {
		return count - 1 - i
	}
	return i
}

// weight returns the number of values that the stored values of unit u represent.
func (s *sketch) weight(u int) int {
	n, sum := s.levels(), 0
	for h, f := range s.counts[u*n : (u+1)*n] {
		sum += int(f) << s.shift(h)
	}
	return sum
}

// trim raises the bound and drops the lowest values, so that the target weight remains.
func (s *sketch) trim(u int) {
	bound, reached := s.valueAt(u, s.target)
	if !reached {
		return
	}
	s.bound[u] = bound
	for h := range s.levels() {
		v := s.level(u, h)
		low, _ := slices.BinarySearchFunc(v, bound, func(x, bound float32) int {
			if x <= bound {
				return -1
			}
			return 1
		})
		s.counts[u*s.levels()+h] = uint16(copy(v, v[low:]))
	}
}

// valueAt sorts the levels and returns the value of a rank, from 1 for the largest, and whether the
// total weight reaches it.
func (s *sketch) valueAt(u, rank int) (v float32, reached bool) {
	var heads [32]int // of each level, of which there are fewer than 32: index of the largest value not yet counted
	for h := range s.levels() {
		values := s.level(u, h)
		slices.Sort(values)
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

// threshold returns about the k-th largest of at least k values. It may be the bound, if values
// equal to the bound were dropped.
func (s *sketch) threshold(u int) float32 {
	if v, ok := s.valueAt(u, s.k); ok {
		return v
	}
	return s.bound[u]
}

// Code writes or reads the sketch. A level with too many values is an error. Level 0 is never full,
// since it is compacted at once.
func (s *sketch) Code(c *state.Codec) {
	if c.Values(s.items, s.counts, s.compactions, s.bound); !c.Reads() {
		return
	}
	for i, f := range s.counts {
		h := i % s.levels()
		if capacity := s.capacity(h); int(f) > capacity || h == 0 && int(f) == capacity {
			s.counts[i] = 0
			c.Fail(fmt.Errorf("a level of capacity %[2]d has %[1]d values", f, capacity))
		}
	}
}
