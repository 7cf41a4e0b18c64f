package firing_test

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/firing"
	"github.com/noether-ml/noether/tensor"
)

// respond returns the responses of units, given as functions of a grating, to the paper's gratings
// and to their trajectories.
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

// orientation returns the orientation in [0, 360) degrees.
func orientation(g dataset.Grating) float64 { return math.Mod(math.Mod(g.Orientation, 360)+360, 360) }

// wave returns cos(omega phi + shift), rounded so that equal values remain equal in float32.
func wave(g dataset.Grating, shift float64) float64 {
	return math.Round(1e5*math.Cos(g.Frequency*g.Phase+shift)) / 1e5
}

// indicator returns 1 for true and 0 for false.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Scores agree with counts on the 1,764 gratings: k is 18, a phase trajectory has 41 images and an
// orientation trajectory 81.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	base, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	units := []struct {
		name                                 string
		h                                    func(g dataset.Grating) float64
		global, alongPhase, alongOrientation float64
		constant                             bool
	}{
		{"one block of 21 phases", func(g dataset.Grating) float64 { return indicator(g.Frequency == 4 && orientation(g) == 45) },
			21. / 1764, 1, 1. / 81, false},
		{"frequency and orientation, all blocks different", func(g dataset.Grating) float64 { return g.Frequency*1000 + orientation(g) },
			// the strongest inputs are at 180 degrees, and rotations from there to 355.5 fire
			21. / 1764, 1, 40. / 81, false},
		{"stripes of one orientation in both directions", func(g dataset.Grating) float64 {
			return indicator(g.Frequency == 6 && math.Mod(orientation(g), 180) == 90)
		},
			21. / 1764, 1, 3. / 81, false},
		{"stripes at both ends of the orientations", func(g dataset.Grating) float64 {
			return indicator(g.Frequency == 6 && math.Mod(orientation(g), 180) == 0)
		},
			42. / 1764, 1, 3. / 81, false},
		// 21 phases of one block: the cosine's 18 largest values are those of steps 0 to 8 and 12
		// to 20, q = cos(144 degrees). Along the trajectory, steps -20 to 20 of a wave of 20 steps,
		// 17 of each period fire, and one more at the end.
		{"linear", func(g dataset.Grating) float64 {
			if g.Frequency != 2 || orientation(g) != 27 {
				return -2
			}
			return wave(g, 0)
		}, 18. / 1764, 35. / 41, 1. / 81, false},
		{"linear, by low values", func(g dataset.Grating) float64 {
			if g.Frequency != 2 || orientation(g) != 27 {
				return 2
			}
			return -wave(g, 0)
		}, 18. / 1764, 35. / 41, 1. / 81, false},
		{"a quarter of the gratings tie", func(g dataset.Grating) float64 { return indicator(g.Frequency == 8) }, 0.25, 1, 1, false},
		{"constant", func(g dataset.Grating) float64 { return 3.25 }, 1, 1, 1, true},
		{"zero", func(g dataset.Grating) float64 { return 0 }, 1, 1, 1, true},
		// With s = 1 the unit fires always, since 18 gratings must; with s = -1 at all other
		// gratings.
		{"one grating of all", func(g dataset.Grating) float64 { return indicator(g == base.Grating(777)) }, 1763. / 1764, 1, 1, false},
	}
	var h []func(dataset.Grating) float64
	for _, u := range units {
		h = append(h, u.h)
	}
	for _, path := range []struct {
		name         string
		trajectories *dataset.GratingTrajectories
		want         func(i int) float64
	}{
		{"phase", base.AlongPhase(), func(i int) float64 { return units[i].alongPhase }},
		{"orientation", base.AlongOrientation(), func(i int) float64 { return units[i].alongOrientation }},
	} {
		s := firing.Defaults()
		s.References = 1
		got, err := firing.ScoreUnits(respond(path.trajectories, base.Len(), h...), s)
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range units {
			local := path.want(i)
			if math.Abs(got[i].Global-u.global) > 1e-12 || math.Abs(got[i].Local-local) > 1e-12 || math.Abs(got[i].Score-local/u.global) > 1e-9 || got[i].Constant != u.constant {
				t.Errorf("%s along %s: %+v, want G %v and L %v", u.name, path.name, got[i], u.global, local)
			}
		}
	}
}

// The largest score is N / k = 98.
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

func TestScoreUnitsErrors(t *testing.T) {
	t.Parallel()
	good := func() firing.Responses {
		return firing.Responses{Inputs: tensor.New(120, 2), Images: tensor.New(120, 2), Steps: func(i int) []int { return []int{i} }}
	}
	for name, c := range map[string]struct {
		spoil func(r *firing.Responses, s *firing.Settings)
		want  string
	}{
		"too few":         {func(r *firing.Responses, s *firing.Settings) { r.Inputs = tensor.New(99, 2) }, "needs at least 100"},
		"NaN":             {func(r *firing.Responses, s *firing.Settings) { r.Images.Data[5] = float32(math.NaN()) }, "response 2 of unit 1"},
		"other units":     {func(r *firing.Responses, s *firing.Settings) { r.Images = tensor.New(120, 3) }, "shape"},
		"no trajectories": {func(r *firing.Responses, s *firing.Settings) { r.Steps = func(int) []int { return nil } }, "complete trajectory"},
		"a rate of 0":     {func(r *firing.Responses, s *firing.Settings) { s.Rate = 0 }, "rate"},
		"a top of 2":      {func(r *firing.Responses, s *firing.Settings) { s.Top = 2 }, "top"},
		"positions":       {func(r *firing.Responses, s *firing.Settings) { s.Positions = "some" }, "positions"},
		"also":            {func(r *firing.Responses, s *firing.Settings) { s.Also = []string{"variances"} }, "also"},
	} {
		r, s := good(), firing.Defaults()
		c.spoil(&r, &s)
		if _, err := firing.ScoreUnits(r, s); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
