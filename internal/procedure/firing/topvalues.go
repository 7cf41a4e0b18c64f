package firing

import (
	"math"
	"slices"
)

// topValues stores, for each unit, the k largest values (or a sketch), the number of other values
// that equal the k-th largest, and the inputs with the z largest values, its reference stimuli. k
// is the field rank, and z the field references. All values are multiplied by a sign s, 1 or -1.
type topValues struct {
	units, rank, references int
	n                       int // number of inputs so far
	eligible                int // number of inputs so far that can be references: all their transformed versions can be read

	sketch *sketch // nil: the values are in heaps

	heap []float32 // units x rank: min-heaps; values in order of arrival until one is full
	tied []int32   // by unit: number of values outside a full heap that equal its smallest
	// strongestValue is units x z, descending; of equal values the lower index comes first. -inf:
	// no value yet.
	strongestValue []float32
	strongestIndex []int32   // units x references: indices of their inputs
	bound          []float32 // by unit: smaller values change nothing here
}

// relative is the relative error allowed for the rank of the threshold; 0 is exact. first is the
// index of the first unit in its layer, for the hash of a sketch.
func newTopValues(units, k, z int, relative float64, first int) *topValues {
	t := &topValues{units: units, rank: k, references: z, strongestValue: make([]float32, units*z), strongestIndex: make([]int32, units*z), bound: make([]float32, units)}
	if sketched(k, relative) {
		t.sketch = newSketch(units, k, relative, first)
	} else {
		t.heap, t.tied = make([]float32, units*k), make([]int32, units)
	}
	for _, list := range [][]float32{t.bound, t.strongestValue} {
		for i := range list {
			list[i] = float32(math.Inf(-1))
		}
	}
	return t
}

func topValuesBytes(k, z int, relative float64) int64 {
	if sketched(k, relative) {
		return sketchBytes(k, relative) + int64(8*z+4) // strongestValue and strongestIndex, bound
	}
	return int64(4*k + 8*z + 8) // heap, strongestValue and strongestIndex, tied and bound
}

func (t *topValues) bytes() int {
	if t.sketch != nil {
		// the sketch's values, its two uint16 for each level, its bound; then as in topValuesBytes
		return 4*t.sketch.offsets[t.sketch.levels()] + 4*t.sketch.levels() + 4 + 8*t.references + 4
	}
	return 4*t.rank + 8*t.references + 8
}

// update adds the responses of the units from first on to input number n, from 0. eligible is the
// number of earlier inputs that can be references. Most responses are below the bound.
func (t *topValues) update(row []float32, sign float32, first, n, eligible int, in Input) {
	bound := t.bound[first:][:len(row)]
	for i, v := range row {
		if v *= sign; v >= bound[i] {
			t.add(first+i, v, n, eligible, int32(in.Index), in.Reference)
		}
	}
}

// add adds the value of unit u for input number n, from 0. See update for eligible.
func (t *topValues) add(u int, v float32, n, eligible int, index int32, reference bool) {
	if t.sketch != nil {
		t.addSketched(u, v, eligible, index, reference)
		return
	}
	floor := t.addToHeap(u, v, n)
	if reference {
		t.insertStrongest(u, v, eligible, index)
		eligible++
	}
	if n >= t.rank-1 && eligible >= t.references {
		t.bound[u] = min(floor, t.strongestValue[(u+1)*t.references-1])
	}
}

// Most values change the sketch but not the bound.
func (t *topValues) addSketched(u int, v float32, eligible int, index int32, reference bool) {
	changed := t.sketch.add(u, v)
	if reference && v >= t.strongestValue[(u+1)*t.references-1] {
		t.insertStrongest(u, v, eligible, index)
		changed = true
	}
	if changed {
		t.bound[u] = t.sketchedBound(u)
	}
}

// sketchedBound returns the smallest value that can change the sketch or the strongest inputs.
func (t *topValues) sketchedBound(u int) float32 {
	bound, last := t.sketch.bound[u], t.strongestValue[(u+1)*t.references-1]
	if bound < last {
		return math.Nextafter32(bound, last)
	}
	return last
}

// addToHeap returns as floor the k-th largest value once there are k; before, it has no meaning.
func (t *topValues) addToHeap(u int, v float32, n int) (floor float32) {
	heap := t.heap[u*t.rank : (u+1)*t.rank]
	switch {
	case n < t.rank:
		heap[n] = v
		if n == t.rank-1 {
			heapify(heap)
		}
	case v == heap[0]:
		t.tied[u]++
	case v > heap[0]:
		t.replaceLeast(u, heap, v)
	}
	return heap[0]
}

func (t *topValues) replaceLeast(u int, heap []float32, v float32) {
	old := heap[0]
	heap[0] = v
	siftDown(heap, 0)
	if heap[0] == old {
		t.tied[u]++ // the removed value equals the new smallest
	} else {
		t.tied[u] = 0
	}
}

// insertStrongest inserts into the min(eligible, z) strongest values of unit u.
func (t *topValues) insertStrongest(u int, v float32, eligible int, index int32) {
	values, indices := t.strongestValue[u*t.references:(u+1)*t.references], t.strongestIndex[u*t.references:(u+1)*t.references]
	end := min(eligible, t.references)
	p := end
	for p > 0 && (v > values[p-1] || v == values[p-1] && index < indices[p-1]) {
		p--
	}
	if p == t.references {
		return
	}
	end = min(end+1, t.references)
	copy(values[p+1:end], values[p:end-1])
	copy(indices[p+1:end], indices[p:end-1])
	values[p], indices[p] = v, index
}

func heapify(h []float32) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
}

func siftDown(h []float32, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// threshold returns the k-th largest value and the number of values at least as large; 0 with a
// sketch. At least k inputs must have been added.
func (t *topValues) threshold(u int) (q float32, count int) {
	if t.sketch != nil {
		return t.sketch.threshold(u), 0
	}
	return t.heap[u*t.rank], t.rank + int(t.tied[u])
}

// With a sketch, largest is that of the inputs that can be references.
func (t *topValues) largest(u int) float32 {
	if t.sketch != nil {
		return t.strongestValue[u*t.references]
	}
	return slices.Max(t.heap[u*t.rank : (u+1)*t.rank])
}

func (t *topValues) strongest(u int) []int32 {
	return t.strongestIndex[u*t.references : u*t.references+min(t.eligible, t.references)]
}

// firesAtStrongest counts the strongest inputs at which unit u reaches the threshold q.
func (t *topValues) firesAtStrongest(u int, q float32) (fires int32) {
	for _, v := range t.strongestValue[u*t.references : u*t.references+min(t.eligible, t.references)] {
		if v >= q {
			fires++
		}
	}
	return fires
}
