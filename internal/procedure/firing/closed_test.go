package firing_test

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/tensor"
)

// respond returns the responses of units, given as functions of a grating, to the inputs (the first
// gratings of trajectories) and to all gratings on trajectories. A grating is an image of stripes,
// and its trajectory consists of the gratings that differ from it in phase, or in orientation,
// only.
func respond(trajectories *dataset.GratingTrajectories, inputs int, units ...func(g dataset.Grating) float64) firing.Responses {
	r := firing.Responses{Inputs: tensor.New(inputs, len(units)), Images: tensor.New(trajectories.Len(), len(units)), Steps: trajectories.Trajectory}
	for i := range trajectories.Len() {
		for u, h := range units {
			r.Images.Data[i*len(units)+u] = float32(h(trajectories.Grating(i)))
		}
	}
	copy(r.Inputs.Data, r.Images.Data)
	return r
}

// orientation returns the orientation of a grating in [0, 360) degrees.
func orientation(g dataset.Grating) float64 { return math.Mod(math.Mod(g.Orientation, 360)+360, 360) }

// wave returns the cosine of frequency x phase, as a unit that is linear in the image responds. It
// is rounded so that equal values remain equal in float32.
func wave(g dataset.Grating) float64 {
	return math.Round(1e5*math.Cos(g.Frequency*g.Phase)) / 1e5
}

// indicator returns 1 for true and 0 for false.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// TestCountedScores checks scores of units whose firing can be counted by hand. N = 1,764 gratings
// have 4 frequencies, 21 orientations (0 to 180 degrees in steps of 9) and 21 phases (0 to pi in
// steps of pi/20). A unit fires where s h reaches the threshold q, the k-th largest s h, for its
// response h. At a rate of 0.01, k is 18, a hundredth of N. A phase trajectory has 41 images in
// steps of pi/20, and an orientation trajectory 81 in steps of 4.5 degrees. The global firing rate
// G is the fraction of the N gratings at which the unit fires. The local firing rate L is that of
// the trajectory of the reference, the grating at which s h is largest (References = 1). The score
// is L / G. The sign s, 1 or -1, is the one with the higher score.
func TestCountedScores(t *testing.T) {
	t.Parallel()
	base, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	units := []struct {
		name                                 string
		h                                    func(g dataset.Grating) float64
		global, alongPhase, alongOrientation float64 // G, and L on each kind of trajectory
		constant                             bool
	}{
		{"all phases of one frequency and orientation", func(g dataset.Grating) float64 { return indicator(g.Frequency == 4 && orientation(g) == 45) },
			21. / 1764, 1, 1. / 81, false},
		{"another value for each frequency and orientation", func(g dataset.Grating) float64 { return g.Frequency*1000 + orientation(g) },
			// The strongest inputs have an orientation of 180 degrees. On their trajectory, 0 to 360
			// degrees, the unit fires from 180 to 355.5 degrees.
			21. / 1764, 1, 40. / 81, false},
		{"stripes of 90 and 270 degrees, of which the inputs have one", func(g dataset.Grating) float64 {
			return indicator(g.Frequency == 6 && math.Mod(orientation(g), 180) == 90)
		},
			21. / 1764, 1, 3. / 81, false},
		{"stripes of 0 and 180 degrees, of which the inputs have both", func(g dataset.Grating) float64 {
			return indicator(g.Frequency == 6 && math.Mod(orientation(g), 180) == 0)
		},
			42. / 1764, 1, 3. / 81, false},
		// The 21 phases are 18 degrees of the wave apart. The cosine's 18 largest values are those of
		// phases 0 to 8 and 12 to 20, and q = cos(144 degrees). The trajectory of phase 0 has the
		// phases -20 to 20. The wave repeats after 20 phases: 17 of each period fire, and one more at
		// the end.
		{"linear in one frequency and orientation", func(g dataset.Grating) float64 {
			if g.Frequency != 2 || orientation(g) != 27 {
				return -2
			}
			return wave(g)
		}, 18. / 1764, 35. / 41, 1. / 81, false},
		{"the same with the opposite sign", func(g dataset.Grating) float64 {
			if g.Frequency != 2 || orientation(g) != 27 {
				return 2
			}
			return -wave(g)
		}, 18. / 1764, 35. / 41, 1. / 81, false},
		{"a quarter of the gratings tie", func(g dataset.Grating) float64 { return indicator(g.Frequency == 8) }, 0.25, 1, 1, false},
		{"constant", func(g dataset.Grating) float64 { return 3.25 }, 1, 1, 1, true},
		{"zero", func(g dataset.Grating) float64 { return 0 }, 1, 1, 1, true},
		// With s = 1, q is 0 and the unit fires at all gratings, since 18 must fire. With s = -1 it
		// fires at all but one, and its score is higher.
		{"not 0 at one grating only", func(g dataset.Grating) float64 { return indicator(g == base.Grating(777)) }, 1763. / 1764, 1, 1, false},
	}
	var h []func(dataset.Grating) float64
	for _, u := range units {
		h = append(h, u.h)
	}
	for _, factor := range []struct {
		name         string
		trajectories *dataset.GratingTrajectories
		want         func(i int) float64
	}{
		{"phase", base.AlongPhase(), func(i int) float64 { return units[i].alongPhase }},
		{"orientation", base.AlongOrientation(), func(i int) float64 { return units[i].alongOrientation }},
	} {
		s := firing.Defaults()
		s.References = 1
		got, err := firing.ScoreUnits(respond(factor.trajectories, base.Len(), h...), s)
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range units {
			local := factor.want(i)
			if math.Abs(got[i].Global-u.global) > 1e-12 || math.Abs(got[i].Local-local) > 1e-12 || math.Abs(got[i].Score-local/u.global) > 1e-9 || got[i].Constant != u.constant {
				t.Errorf("%s along %s: %+v, want G %v and L %v", u.name, factor.name, got[i], u.global, local)
			}
		}
	}
}

// TestLargestScore checks that the largest score is N / k = 98, for N = 1,764 gratings and k = 18
// (see TestCountedScores). The unit fires at 18 inputs, and at every image of the trajectories.
func TestLargestScore(t *testing.T) {
	t.Parallel()
	base, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	trajectories := base.AlongPhase()
	first := trajectories.Trajectory(0)
	on := map[int]bool{}
	for _, p := range first[:18] {
		on[p] = true
	}
	r := respond(trajectories, base.Len(), func(dataset.Grating) float64 { return 0 })
	for i := range base.Len() {
		if on[i] {
			r.Inputs.Data[i] = 1
		}
	}
	for i := range r.Images.Data {
		r.Images.Data[i] = 1
	}
	s := firing.Defaults()
	s.References = 1
	got, err := firing.ScoreUnits(r, s)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Global != 18./1764 || math.Abs(got[0].Score-98) > 1e-12 {
		t.Errorf("a unit that fires at 18 gratings and all along its trajectory: %+v, want G = 18/1764 and S = 98", got[0])
	}
}

// TestScoreUnitsErrors checks the errors of invalid responses and settings. Rate and Top are
// fractions of the inputs and of the units.
func TestScoreUnitsErrors(t *testing.T) {
	t.Parallel()
	good := func() firing.Responses {
		return firing.Responses{Inputs: tensor.New(120, 2), Images: tensor.New(120, 2), Steps: func(i int) []int { return []int{i} }}
	}
	for name, c := range map[string]struct {
		spoil func(r *firing.Responses, s *firing.Settings)
		want  string
	}{
		"too few inputs":                        {func(r *firing.Responses, s *firing.Settings) { r.Inputs = tensor.New(99, 2) }, "needs at least 100"},
		"NaN":                                   {func(r *firing.Responses, s *firing.Settings) { r.Images.Data[5] = float32(math.NaN()) }, "response 2 of unit 1"},
		"more units for images than for inputs": {func(r *firing.Responses, s *firing.Settings) { r.Images = tensor.New(120, 3) }, "shape"},
		"no complete trajectory":                {func(r *firing.Responses, s *firing.Settings) { r.Steps = func(int) []int { return nil } }, "complete trajectory"},
		"rate 0":                                {func(r *firing.Responses, s *firing.Settings) { s.Rate = 0 }, "rate"},
		"top 2":                                 {func(r *firing.Responses, s *firing.Settings) { s.Top = 2 }, "top"},
		"unknown positions":                     {func(r *firing.Responses, s *firing.Settings) { s.Positions = "some" }, "positions"},
		"unknown statistic":                     {func(r *firing.Responses, s *firing.Settings) { s.Also = []string{"variances"} }, "also"},
	} {
		r, s := good(), firing.Defaults()
		c.spoil(&r, &s)
		if _, err := firing.ScoreUnits(r, s); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
