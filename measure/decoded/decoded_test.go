package decoded

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIoU checks the intersection over union of two boxes.
func TestIoU(t *testing.T) {
	t.Parallel()
	a := Box{Left: 0.1, Top: 0.1, Right: 0.5, Bottom: 0.5}
	for want, b := range map[float64]Box{1: a, 0: {Left: 0.5, Top: 0.1, Right: 0.7, Bottom: 0.5}, 1. / 3: {Left: 0.3, Top: 0.1, Right: 0.7, Bottom: 0.5}, 0.25: {Left: 0.1, Top: 0.1, Right: 0.3, Bottom: 0.3}} {
		if got := IoU(a, b); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v and %v: %v, want %v", a, b, got, want)
		}
	}
	if got := IoU(Box{}, Box{}); got != 0 {
		t.Errorf("empty boxes: %v", got)
	}
}

// Complete removes boxes by greedy non-maximum suppression. It leaves those that a direct
// implementation leaves. A Format describes a model's output: Suppress is the IoU above which the
// weaker of two boxes of a class is removed (1: none is), and Most the largest number of boxes
// that remain.
func TestComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 25).Draw(t, "boxes")
		// Two rows (candidates) are left empty.
		f := &Format{Kind: BoxList, Candidates: n + 2, Confidence: 0.1, Suppress: rapid.SampledFrom([]float64{0.3, 0.7, 1}).Draw(t, "suppress"), Most: rapid.IntRange(1, 30).Draw(t, "most")}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		boxes := make([]Box, n) // squares whose side is half that of the image
		for i := range boxes {
			x, y := float64(float32(r.Float64())), float64(float32(r.Float64()))
			boxes[i] = Box{Left: x, Top: y, Right: float64(float32(x + 0.5)), Bottom: float64(float32(y + 0.5)), Score: float64(float32(r.Float64())), Class: r.IntN(2)}
		}
		slices.SortFunc(boxes, func(a, b Box) int { return int(math.Copysign(1, b.Score-a.Score)) })
		row := make([]float32, f.Candidates*f.Columns())
		f.SetBoxes(row, boxes)
		f.Complete(row)
		got, finite := f.Boxes(nil, row)
		if !finite {
			t.Fatal("a box is not finite")
		}
		suppressed := make([]bool, n)
		var want []Box
		for i, b := range boxes {
			if suppressed[i] || b.Score < 0.1 {
				continue
			}
			if len(want) < f.Most {
				want = append(want, b)
			}
			for j := i + 1; j < n; j++ {
				suppressed[j] = suppressed[j] || f.Suppress < 1 && boxes[j].Class == b.Class && IoU(b, boxes[j]) > f.Suppress
			}
		}
		if !slices.EqualFunc(got, want, func(a, b Box) bool {
			return a.Left == b.Left && a.Top == b.Top && a.Score == b.Score && a.Class == b.Class
		}) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
