package dataset

import (
	"context"
	"math"
	"slices"
	"testing"
)

// TestGratingTrajectoriesOfThePaper checks every step of trajectories from the grid of gratings
// (images of a sinusoid) of Goodfellow et al. (2009): 4 frequencies, 21 orientations and 21 phases.
// A trajectory is a grating with versions whose phase or orientation differs by each of the
// amounts.
func TestGratingTrajectoriesOfThePaper(t *testing.T) {
	t.Parallel()
	base := must(OpenGratings(GratingsOptions{Size: 8, Channels: 1}))
	phase, orientation := base.AlongPhase(), base.AlongOrientation()
	for _, c := range []struct {
		name         string
		trajectories *GratingTrajectories
		// Length of a trajectory; number of gratings, those of base included.
		steps, total int
		vary         func(*Grating, float64) // changes a grating by an amount
	}{
		{"phase", phase, 41, 1764, func(g *Grating, by float64) { g.Phase += by }},
		// 59 orientations are added between those of the grid. At these, phases that differ by a
		// wavelength count once, since they give the same image: at the four frequencies, 20, 10,
		// 20 and 5 of the 21 phases are left.
		{"orientation", orientation, 81, 1764 + (20+10+20+5)*59, func(g *Grating, by float64) { g.Orientation += by }},
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
	// A fingerprint is a hash of the settings.
	if phase.Fingerprint() == orientation.Fingerprint() || phase.Fingerprint() == base.Fingerprint() {
		t.Error("the fingerprints are equal")
	}
	// Sample 700 stands for all of base.
	a, b := must(base.At(context.Background(), 700, Frame{})), must(orientation.At(context.Background(), 700, Frame{}))
	if !slices.Equal(a.Input.Data, b.Input.Data) || a.Index != b.Index {
		t.Error("sample 700 differs from that of base")
	}
}

// TestGratingTrajectoriesOfAnyGrid checks trajectories whose gratings are not on the grid of base.
// Phases are compared up to a whole number of wavelengths.
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

// TestAsGratings checks that AsGratings returns the gratings beneath sources that wrap them, and
// nil for other data.
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
