package dense

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/measure/decoded"
)

// A pair is a pair of matched boxes: their indices in two lists, and their IoU.
type pair struct {
	A, B int
	IoU  float64
}

// candidates returns all pairs of boxes that overlap and have an IoU of at least minIoU: first
// pairs of the same class, then others, both by descending IoU.
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

// assign returns the candidates, in order, whose boxes are both unused and which are allowed. It
// marks their boxes as used.
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

// An imageBoxes holds the boxes found in an image, and whether each counts: a box that is largely
// outside of the image, before or after the transformation, does not (see the package comment).
type imageBoxes struct {
	boxes  []decoded.Box
	counts []bool
}

// A matching is the comparison of the boxes of two images: of an image, moved by the
// transformation, and of the transformed image.
type matching struct {
	pairs              []pair // of boxes that both count
	countedA, countedB []bool // boxes that count, in pairs or alone
}

// compare matches the boxes of two images that have a score of at least confidence. all holds the
// pairs that candidates returns for these images. It first pairs boxes that both count. Then it
// pairs remaining boxes that do not count with boxes that do, which from then on do not count
// either. Only the pairs of the first step are returned.
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
