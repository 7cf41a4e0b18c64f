package dense

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/measure/decoded"
)

type pair struct {
	A, B int
	IoU  float64
}

// candidates returns the overlapping pairs with an IoU of at least minIoU: those of the same class
// first, then others, by descending IoU.
func candidates(a, b []decoded.Box, minIoU float64) []pair {
	var all []pair
	for i, x := range a {
		for j, y := range b {
			if v := decoded.IoU(x, y); v >= minIoU && v > 0 {
				all = append(all, pair{i, j, v})
			}
		}
	}
	differ := func(p pair) int {
		if a[p.A].Class != b[p.B].Class {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(p, q pair) int {
		return cmp.Or(differ(p)-differ(q), cmp.Compare(q.IoU, p.IoU), p.A-q.A, p.B-q.B)
	})
	return all
}

// assign returns, in order, the candidates that are allowed and whose boxes are unused, and marks
// their boxes as used.
func assign(all []pair, allowed func(pair) bool, usedA, usedB []bool) []pair {
	var out []pair
	for _, p := range all {
		if !usedA[p.A] && !usedB[p.B] && allowed(p) {
			usedA[p.A], usedB[p.B] = true, true
			out = append(out, p)
		}
	}
	return out
}

// An imageBoxes holds the boxes found in an image, and whether each counts (see the package
// comment).
type imageBoxes struct {
	boxes  []decoded.Box
	counts []bool
}

type matching struct {
	pairs              []pair // of boxes that both count
	countedA, countedB []bool // boxes that count, in pairs or alone
}

// compare matches the boxes with a score of at least confidence; all is from candidates. It first
// pairs boxes that both count, then boxes that do not count with boxes that do, which from then on
// do not count. Only the former pairs are returned.
func compare(a, b imageBoxes, all []pair, confidence float64) matching {
	strong := func(s imageBoxes, i int) bool { return float32(s.boxes[i].Score) >= float32(confidence) } // models output float32 scores
	both := func(p pair) bool { return strong(a, p.A) && strong(b, p.B) }
	usedA, usedB := make([]bool, len(a.boxes)), make([]bool, len(b.boxes))
	var m matching
	m.pairs = assign(all, func(p pair) bool { return both(p) && a.counts[p.A] && b.counts[p.B] }, usedA, usedB)
	m.countedA, m.countedB = make([]bool, len(a.boxes)), make([]bool, len(b.boxes))
	for i := range a.boxes {
		m.countedA[i] = strong(a, i) && a.counts[i]
	}
	for i := range b.boxes {
		m.countedB[i] = strong(b, i) && b.counts[i]
	}
	for _, p := range assign(all, func(p pair) bool { return both(p) && a.counts[p.A] != b.counts[p.B] }, usedA, usedB) {
		m.countedA[p.A], m.countedB[p.B] = false, false
	}
	return m
}
