package flips

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestGolden compares with testdata/golden.py, which computes the statistics of four sequences from
// the permutations of all classes.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var videos []struct {
		Scores [][]float32
		Values []float64
	}
	if err := json.Unmarshal(data, &videos); err != nil || len(videos) != 4 {
		t.Fatal(len(videos), err)
	}
	for i, v := range videos {
		var frames []ranking
		for _, scores := range v.Scores {
			frames = append(frames, rankingOf(scores))
		}
		for k, got := range compare(frames, frames) {
			if math.Abs(got-v.Values[k]) > 1e-12 {
				t.Errorf("sequence %d: %s is %v, want %v", i, statistics[k].name, got, v.Values[k])
			}
		}
	}
}

// TestRanking checks the first five classes of random scores with ties against a stable sort, and
// models of fewer classes.
func TestRanking(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		scores := make([]float32, 1+g.IntN(12))
		for i := range scores {
			scores[i] = float32(g.IntN(6))
		}
		order := make([]int, len(scores))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(scores[b] - scores[a]) })
		r := rankingOf(scores)
		for i, got := range r {
			want := -1
			if i < len(order) {
				want = order[i]
			}
			if got != want {
				t.Fatalf("%v: place %d has class %d, want %d", scores, i, got, want)
			}
		}
		if distance(r, r) != 0 || flip(r, r) != 0 {
			t.Errorf("a frame differs from itself")
		}
	}
	// The largest distance: other classes in all five places. The first place is exchanged with the
	// second: two places in all.
	a, b := ranking{0, 1, 2, 3, 4}, ranking{5, 6, 7, 8, 9}
	if d := distance(a, b); d != 15 {
		t.Errorf("the distance of rankings without a common class is %v, want 15", d)
	}
	if d := distance(a, ranking{1, 0, 2, 3, 4}); d != 2 || flip(a, ranking{1, 0, 2, 3, 4}) != 1 {
		t.Errorf("the distance of an exchange is %v, want 2", d)
	}
}
