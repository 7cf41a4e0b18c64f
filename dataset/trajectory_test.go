package dataset

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/transform"
)

// scenesOfFive is a source of video frames: every five consecutive samples are one scene. The
// trajectory of a frame holds the frame and its two neighbours in the scene, with the amounts (here
// steps in time) -1, 0 and 1; the first and the last frame of a scene have none. A place is a group
// of samples that trajectories connect, so a scene is a place.
type scenesOfFive struct{ Source }

func (scenesOfFive) Amounts() []float64 { return []float64{-1, 0, 1} }

func (scenesOfFive) Trajectory(i int) []int {
	if i%5 == 0 || i%5 == 4 {
		return nil
	}
	return []int{i - 1, i, i + 1}
}

// The indices of a trajectory follow the samples through sources that wrap or select them. A
// trajectory is nil if a sample of it is left out.
func TestTrajectoriesThroughSubsets(t *testing.T) {
	t.Parallel()
	shapes, err := OpenShapes(ShapesOptions{N: 20, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	src := Source(scenesOfFive{shapes})
	// Seed 1 and name x determine the random numbers of the corruption.
	if got := Trajectory(Corrupt(src, transform.Corrupt{Kind: "fog"}, 1, "x"), 7); !slices.Equal(got, []int{6, 7, 8}) {
		t.Errorf("the trajectory of sample 7 is %v", got)
	}
	// The factor value is the mean brightness of the image.
	computed, err := ComputeFactors(src, []string{"value"})
	if err != nil {
		t.Fatal(err)
	}
	if got := Trajectory(computed, 7); !slices.Equal(got, []int{6, 7, 8}) || len(Amounts(computed)) != 3 {
		t.Errorf("with a computed factor, the trajectory of sample 7 is %v", got)
	}
	shuffled := Shuffle(src, 1)
	picks := shuffled.(subset).indices // index in src of each shuffled sample
	for i, p := range picks {
		got, want := Trajectory(shuffled, i), src.(scenesOfFive).Trajectory(p)
		if (got == nil) != (want == nil) {
			t.Fatalf("position %d, sample %d: trajectory %v where the source has %v", i, p, got, want)
		}
		for j := range got {
			if picks[got[j]] != want[j] {
				t.Errorf("position %d, sample %d: trajectory %v leads to sample %d, not %d", i, p, got, picks[got[j]], want[j])
			}
		}
	}
	chosen, err := Subset(src, []int{8, 6, 7, 11, 12})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int{nil, nil, {1, 2, 0}, nil, nil} {
		if got := Trajectory(chosen, i); !slices.Equal(got, want) {
			t.Errorf("position %d of the subset has the trajectory %v, not %v", i, got, want)
		}
	}
	if Amounts(chosen) == nil || Amounts(shapes) != nil || Trajectory(shapes, 3) != nil {
		t.Error("a subset of a source with trajectories has no amounts, or one without trajectories has some")
	}
}

// Shuffle, Split, RandomSubset and Limit keep the samples of a place, here a scene, together: every
// trajectory of the source is whole in what they select, or absent from it.
func TestScenesStayTogether(t *testing.T) {
	t.Parallel()
	shapes, err := OpenShapes(ShapesOptions{N: 40, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	src := Source(scenesOfFive{shapes}) // 40 samples are eight scenes
	ctx := t.Context()
	part := func(from, to float64) Source {
		out, err := Split(ctx, src, from, to, SplitOptions{Seed: 3, Stratified: true})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	random, err := RandomSubset(ctx, src, 21, SplitOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		src     Source
		samples int
	}{
		// RandomSubset and Split select the scenes whose middle sample is in the part asked for.
		// Limit selects as many whole scenes as n samples permit, but at least one unless n is 0.
		"shuffle":           {Shuffle(src, 1), 40},
		"shuffle and limit": {Limit(Shuffle(src, 1), 13), 10},
		"limit":             {Limit(src, 19), 15},
		"a small limit":     {Limit(src, 2), 5},
		"no samples":        {Limit(src, 0), 0},
		"a random part":     {random, 20},
		"a third":           {part(0, 1.0/3), 15},
	} {
		picks := c.src.(subset).indices
		// A subset of a subset, the limit of the shuffled: picks are indices in src all the same.
		if inner, ok := c.src.(subset).Source.(subset); ok {
			picks = nil
			for _, p := range c.src.(subset).indices {
				picks = append(picks, inner.indices[p])
			}
		}
		if len(picks) != c.samples {
			t.Errorf("%s: %d samples, not %d: %v", name, len(picks), c.samples, picks)
		}
		frames := map[int]int{} // of each scene
		for at, p := range picks {
			frames[p/5]++
			if whole := src.(scenesOfFive).Trajectory(p) != nil; whole != (Trajectory(c.src, at) != nil) {
				t.Errorf("%s: sample %d has the trajectory %v", name, p, Trajectory(c.src, at))
			}
		}
		for scene, n := range frames {
			if n != 5 {
				t.Errorf("%s: %d of the five frames of scene %d", name, n, scene)
			}
		}
	}
	if slices.Equal(Shuffle(src, 1).(subset).indices, Indices(40)) || slices.Equal(Shuffle(src, 1).(subset).indices, Shuffle(src, 2).(subset).indices) {
		t.Error("the order of the scenes does not depend on the seed")
	}
	seen := map[int]int{}
	for i := range 3 {
		for _, p := range part(float64(i)/3, float64(i+1)/3).(subset).indices {
			seen[p]++
		}
	}
	if len(seen) != 40 {
		t.Errorf("three parts have %d of 40 samples", len(seen))
	}
	for p, n := range seen {
		if n != 1 {
			t.Errorf("sample %d is in %d of the parts", p, n)
		}
	}
}
