package dataset

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/transform"
)

// scenesOfFive is a source of frames in scenes of five. A trajectory holds a frame and its two
// neighbours.
type scenesOfFive struct{ Source }

func (scenesOfFive) Amounts() []float64 { return []float64{-1, 0, 1} }

func (scenesOfFive) Trajectory(i int) []int {
	if i%5 == 0 || i%5 == 4 {
		return nil
	}
	return []int{i - 1, i, i + 1}
}

func TestTrajectoriesThroughSubsets(t *testing.T) {
	t.Parallel()
	shapes, err := OpenShapes(ShapesOptions{N: 20, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	src := Source(scenesOfFive{shapes})
	if got := Trajectory(Corrupt(src, transform.Corrupt{Kind: "fog"}, 1, "x"), 7); !slices.Equal(got, []int{6, 7, 8}) {
		t.Errorf("the trajectory of sample 7 is %v", got)
	}
	measured, err := ComputeFactors(src, []string{"value"})
	if err != nil {
		t.Fatal(err)
	}
	if got := Trajectory(measured, 7); !slices.Equal(got, []int{6, 7, 8}) || len(Amounts(measured)) != 3 {
		t.Errorf("with a factor that is measured, the trajectory of sample 7 is %v", got)
	}
	shuffled := Shuffle(src, 1)
	picks := shuffled.(subset).indices
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
			t.Errorf("position %d of some samples has the trajectory %v, not %v", i, got, want)
		}
	}
	if Amounts(chosen) == nil || Amounts(shapes) != nil || Trajectory(shapes, 3) != nil {
		t.Error("AsTrajectories does not recognise the sources with trajectories")
	}
}
