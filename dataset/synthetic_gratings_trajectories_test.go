package dataset

import (
	"context"
	"math"
	"slices"
	"testing"
)

// TestGratingTrajectoriesOfThePaper checks every step of the trajectories of the paper's grid.
func TestGratingTrajectoriesOfThePaper(t *testing.T) {
	t.Parallel()
	base := must(OpenGratings(GratingsOptions{Size: 8, Channels: 1}))
	phase, turn := base.AlongPhase(), base.AlongOrientation()
	for _, c := range []struct {
		name         string
		trajectories *GratingTrajectories
		steps, total int                     // amounts of a trajectory; gratings, with those of the base
		vary         func(*Grating, float64) // changes a grating by an amount
	}{
		{"phase", phase, 41, 1764, func(g *Grating, by float64) { g.Phase += by }},
		// Between the grid's orientations, phases that differ by a wavelength give the same image:
		// for the four frequencies 20, 10, 20 and 5 of the 21 phases are distinct. 59 orientations
		// are added.
		{"orientation", turn, 81, 1764 + (20+10+20+5)*59, func(g *Grating, by float64) { g.Orientation += by }},
	} {
		if c.trajectories.Len() != c.total || len(c.trajectories.Amounts()) != c.steps {
			t.Errorf("%s: %d gratings and %d steps, want %d and %d", c.name, c.trajectories.Len(), len(c.trajectories.Amounts()), c.total, c.steps)
		}
		for i := 0; i < base.Len(); i += 37 {
			steps := c.trajectories.Trajectory(i)
			if steps[c.steps/2] != i || c.trajectories.Grating(i) != base.Grating(i) {
				t.Fatalf("%s: the middle of the trajectory of %d is %d", c.name, i, steps[c.steps/2])
			}
			for k, by := range c.trajectories.Amounts() {
				want := base.Grating(i)
				c.vary(&want, by)
				got, drawn := drawnGrating(t, c.trajectories.Grating(steps[k]), 8), drawnGrating(t, want, 8)
				for p := range got.Data {
					if math.Abs(float64(got.Data[p]-drawn.Data[p])) > 1e-6 {
						t.Fatalf("%s: step %v from %+v shows %+v", c.name, by, base.Grating(i), c.trajectories.Grating(steps[k]))
					}
				}
			}
		}
		if c.trajectories.Trajectory(base.Len()) != nil || c.trajectories.Trajectory(-1) != nil {
			t.Errorf("%s: samples outside the base have trajectories", c.name)
		}
	}
	if phase.Fingerprint() == turn.Fingerprint() || phase.Fingerprint() == base.Fingerprint() {
		t.Error("the fingerprints are equal")
	}
	a, b := must(base.At(context.Background(), 700, Frame{})), must(turn.At(context.Background(), 700, Frame{}))
	if !slices.Equal(a.Input.Data, b.Input.Data) || a.Index != b.Index {
		t.Error("the samples of the base differ from those of the source")
	}
}

// TestGratingTrajectoriesOfAnyGrid checks trajectories that leave the grid of the base.
func TestGratingTrajectoriesOfAnyGrid(t *testing.T) {
	t.Parallel()
	base := must(OpenGratings(GratingsOptions{Size: 6, Channels: 1, Frequencies: []float64{1, 3}, Orientations: []float64{10}, Phases: []float64{0.1}}))
	trajectories := base.AlongPhase()
	for i := range base.Len() {
		for k, p := range trajectories.Trajectory(i) {
			if got, want := trajectories.Grating(p).Phase, 0.1+trajectories.Amounts()[k]; math.Abs(math.Sin(base.Grating(i).Frequency*(got-want)/2)) > 1e-9 {
				t.Errorf("step %d of grating %d has the phase %v, want %v", k, i, got, want)
			}
		}
	}
}

func TestAsGratings(t *testing.T) {
	t.Parallel()
	base := must(OpenGratings(GratingsOptions{Size: 6}))
	if AsGratings(Shuffle(base, 1)) != base || AsGratings(must(OpenShapes(ShapesOptions{N: 3, Size: 8}))) != nil {
		t.Error("AsGratings does not distinguish gratings from other sources")
	}
	if AsGratings(must(ComputeFactors(Limit(base, 5), []string{"value"}))) != base {
		t.Error("AsGratings does not unwrap gratings with a computed factor")
	}
}

var _ Trajectories = (*GratingTrajectories)(nil)
