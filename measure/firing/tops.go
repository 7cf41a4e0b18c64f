package firing

import "math"

// tops keeps, for each of some units, the k largest values that it has shown and how many more were equal to the least of them, or a sketch in
// their place, and which inputs drove it most. All units see the same inputs.
type tops struct {
	units, k, z int
	n           int // inputs seen
	eligible    int // of these, inputs that may stand as references

	sketch *sketch // nil: heaps

	heap []float32 // units x k, min-heaps; in order of arrival until there are k
	tied []int32   // by unit: values equal to the least of a full heap that are not in it
	best []float32 // units x z: the strongest values, descending; of equal ones that of the lower index first; -inf where there are fewer
	at   []int32   // units x z: indices of their inputs
	gate []float32 // by unit: no value below changes anything
}

// newTops has room for the k-th largest value within a relative error of its rank; 0 is exact.
func newTops(units, k, z int, relative float64, first int) *tops {
	t := &tops{units: units, k: k, z: z, best: make([]float32, units*z), at: make([]int32, units*z), gate: make([]float32, units)}
	if sketched(k, relative) {
		t.sketch = newSketch(units, k, relative, first)
	} else {
		t.heap, t.tied = make([]float32, units*k), make([]int32, units)
	}
	for _, list := range [][]float32{t.gate, t.best} {
		for i := range list {
			list[i] = float32(math.Inf(-1))
		}
	}
	return t
}

// topsBytes is the memory of tops for one unit.
func topsBytes(k, z int, relative float64) int64 {
	if sketched(k, relative) {
		return sketchBytes(k, relative) + int64(8*z+4)
	}
	return int64(4*k + 8*z + 8)
}

// bytes is what is kept of one unit.
func (t *tops) bytes() int {
	if t.sketch != nil {
		return 4*t.sketch.start[t.sketch.levels()] + 4*t.sketch.levels() + 4 + 8*t.z + 4
	}
	return 4*t.k + 8*t.z + 8
}

// update enters the responses of units from first on to the n-th input, where they may change anything. Most of them do not.
func (t *tops) update(row []float32, sign float32, first, n, eligible int, in Input) {
	gate := t.gate[first:][:len(row)]
	for i, v := range row {
		if v *= sign; v >= gate[i] {
			t.keep(first+i, v, n, eligible, int32(in.Index), in.Reference)
		}
	}
}

// keep enters a value of unit u, the n-th that it shows, of the eligible-th input that may be a reference.
func (t *tops) keep(u int, v float32, n, eligible int, index int32, reference bool) {
	if t.sketch != nil {
		t.keepSketched(u, v, eligible, index, reference)
		return
	}
	floor := t.enter(u, v, n)
	if reference {
		t.rank(u, v, eligible, index)
		eligible++
	}
	if n >= t.k-1 && eligible >= t.z {
		t.gate[u] = min(floor, t.best[(u+1)*t.z-1])
	}
}

// keepSketched is keep where there is a sketch. Most values that come so far change it alone, and not the gate.
func (t *tops) keepSketched(u int, v float32, eligible int, index int32, reference bool) {
	changed := t.sketch.add(u, v)
	if reference && v >= t.best[(u+1)*t.z-1] {
		t.rank(u, v, eligible, index)
		changed = true
	}
	if changed {
		t.gate[u] = t.sketchedGate(u)
	}
}

// sketchedGate is the least value that may change the sketch of a unit, or its strongest inputs.
func (t *tops) sketchedGate(u int) float32 {
	gate, last := t.sketch.gate[u], t.best[(u+1)*t.z-1]
	if gate < last {
		return math.Nextafter32(gate, last)
	}
	return last
}

// enter notes the n-th value of unit u. The k-th largest is no lower than floor, once there are k values.
func (t *tops) enter(u int, v float32, n int) (floor float32) {
	heap := t.heap[u*t.k : (u+1)*t.k]
	switch {
	case n < t.k:
		heap[n] = v
		if n == t.k-1 {
			heapify(heap)
		}
	case v == heap[0]:
		t.tied[u]++
	case v > heap[0]:
		t.replace(u, heap, v)
	}
	return heap[0]
}

// replace puts a value in the place of the least of a full heap.
func (t *tops) replace(u int, heap []float32, v float32) {
	old := heap[0]
	heap[0] = v
	sink(heap, 0)
	if heap[0] == old {
		t.tied[u]++ // what went out is as large as the least that stayed
	} else {
		t.tied[u] = 0
	}
}

// rank enters a value among the strongest, of which there are min(eligible, z).
func (t *tops) rank(u int, v float32, eligible int, index int32) {
	best, at := t.best[u*t.z:(u+1)*t.z], t.at[u*t.z:(u+1)*t.z]
	end := min(eligible, t.z)
	p := end
	for p > 0 && (v > best[p-1] || v == best[p-1] && index < at[p-1]) {
		p--
	}
	if p == t.z {
		return
	}
	end = min(end+1, t.z)
	copy(best[p+1:end], best[p:end-1])
	copy(at[p+1:end], at[p:end-1])
	best[p], at[p] = v, index
}

func heapify(h []float32) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
}

// sink moves the value at i down to where both of its children are as large.
func sink(h []float32, i int) {
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

// threshold is the k-th largest value of unit u, and how many are as large; a sketch has not counted them. There must be k inputs.
func (t *tops) threshold(u int) (q float32, count int) {
	if t.sketch != nil {
		return t.sketch.threshold(u), 0
	}
	return t.heap[u*t.k], t.k + int(t.tied[u])
}

// strongest are the indices of the inputs that drove unit u most, the strongest first.
func (t *tops) strongest(u int) []int32 {
	return t.at[u*t.z : u*t.z+min(t.eligible, t.z)]
}

// firesAtStrongest is at how many of its strongest inputs unit u fires.
func (t *tops) firesAtStrongest(u int, q float32) (fires int32) {
	for _, v := range t.best[u*t.z : u*t.z+min(t.eligible, t.z)] {
		if v >= q {
			fires++
		}
	}
	return fires
}

// merge adds what other inputs showed.
func (t *tops) merge(o *tops) {
	if t.sketch != nil {
		t.sketch.merge(o.sketch)
	}
	for u := range t.units {
		if t.sketch == nil {
			t.mergeHeap(u, o)
		}
		eligible := t.eligible
		for i, index := range o.strongest(u) {
			t.rank(u, o.best[u*o.z+i], eligible, index)
			eligible++
		}
	}
	t.n += o.n
	t.eligible += o.eligible
	for u := range t.units {
		t.gate[u] = float32(math.Inf(-1))
		switch {
		case t.sketch != nil:
			t.gate[u] = t.sketchedGate(u)
		case t.n >= t.k && t.eligible >= t.z:
			t.gate[u] = min(t.heap[u*t.k], t.best[(u+1)*t.z-1])
		}
	}
}

// mergeHeap enters the values that o keeps of unit u one by one, and then those equal to its least that it only counts.
func (t *tops) mergeHeap(u int, o *tops) {
	for i, v := range o.heap[u*o.k : u*o.k+min(o.n, o.k)] {
		t.enter(u, v, t.n+i)
	}
	if o.n >= o.k && o.tied[u] > 0 && t.heap[u*t.k] == o.heap[u*o.k] {
		t.tied[u] += o.tied[u] // the heap is full by now
	}
}
