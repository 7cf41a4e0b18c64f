package policy

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// detectors returns a run of the detectors float and int8 on n images, rotated by 5 and 15 degrees,
// with twenty groups of images for the jackknife. int8 is worse by lost, give or take spread.
func detectors(n int, lost, spread float64) Evidence {
	statistic := func(name string) measure.StatisticDescriptor {
		return measure.StatisticDescriptor{Name: name, Range: measure.ZeroToOne, Direction: measure.Higher}
	}
	e := Evidence{Record: scores.Record{Measures: []measure.Descriptor{{Name: "dense-accuracy", Statistics: []measure.StatisticDescriptor{statistic("moved-map"), statistic("clean-map")}}}},
		Neutral: func(string) (float64, error) { return 0, nil }, Transforms: []string{"tilt"}}
	const groups = 20
	score := func(name string, model int, value float64) measure.Score {
		s := measure.Plain(name, value, n)
		s.Low, s.High = value-0.1, value+0.1
		for g := range groups {
			// All groups differ in both models alike, and those of int8 by spread as well.
			own := 0.02*float64(g%3-1) + float64(model)*spread*float64(2*(g%2)-1)
			s.Replicates = append(s.Replicates, measure.Replicate{Value: value + own, Left: n / groups})
		}
		return s
	}
	for model, name := range []string{"float", "int8"} {
		value := 0.7 - float64(model)*lost
		for _, parameter := range []string{"5", "15", ""} { // the last is the mean
			all := []measure.Score{score("clean-map", model, value), score("moved-map", model, value-0.1)}
			e.Rows = append(e.Rows, scores.Row{Model: name, Data: "street", Transform: "tilt", Parameter: parameter, Measure: "dense-accuracy", Statistic: "moved-map", Value: value - 0.1, N: n})
			cell := scores.Cell{Model: name, Data: "street", Transform: "tilt", Parameter: parameter, Measure: "dense-accuracy", Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: all}}}
			before := e.Cells
			e.Cells = func() (out []scores.Cell, err error) {
				if before != nil {
					out, err = before()
				}
				return append(out, cell), err
			}
		}
	}
	return e
}

// TestDetectors judges detectors by their mean average precision, whose differences are paired by
// the replicates: on x, at 5 degrees, and at 10, between 5 and 15.
func TestDetectors(t *testing.T) {
	t.Parallel()
	const text = "use: street\nreference: float\ntransforms: {tilt: 10}\nloss: 0.02\nscore: dense-accuracy.moved-map\n"
	for name, c := range map[string]struct {
		n            int
		lost, spread float64
		want         State
	}{
		"as good": {1000, 0, 1e-5, Pass}, "a little worse": {1000, 0.01, 1e-4, Pass}, "worse": {1000, 0.1, 1e-3, Fail}, "uncertain": {1000, 0.01, 0.01, Undecided},
		"the same boxes in few images": {40, 0, 0, Undecided}, "the same boxes in many": {1000, 0, 0, Pass},
	} {
		v := verdict(t, text, detectors(c.n, c.lost, c.spread))
		if v.State != c.want || len(v.Claims) != 3 {
			t.Errorf("%s: %s of %d claims, want %s of 3: %+v", name, v.State, len(v.Claims), c.want, v.Claims)
		}
		for _, claim := range v.Claims {
			// The half-width is that of the jackknife of replicates that are spread above and below, with
			// Student's t of 19 degrees.
			want := 2.093024 * c.spread * math.Sqrt(19)
			if c.spread > 0 && (math.Abs(claim.Mean-c.lost) > 1e-9 || math.Abs((claim.High-claim.Low)/2-want) > 1e-4*want) {
				t.Errorf("%s: %v [%v, %v], want %v +- %v", name, claim.Mean, claim.Low, claim.High, c.lost, want)
			}
		}
	}
	for text, want := range map[string]string{
		"use: street\nreference: float\ntransforms: {tilt: 10}\nloss: 0.02\n": "write score: dense-accuracy.moved-map in the policy",
		text + "groups: [camera]\n": "the policy names the property",
	} {
		p, err := Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Judge(detectors(100, 0, 0.1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestReach checks the sentence on the strengths up to which all claims hold: none does where a claim
// without a transformation fails, although those with it hold.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clean, tilt, fog State
		want             string
	}{
		{Pass, Pass, Pass, "3 of 3 claims hold. All hold up to fog 3, tilt 10."},
		{Pass, Pass, Undecided, "2 of 3 claims hold, 1 undecided. All hold up to tilt 10, and at no strength of fog."},
		{Fail, Pass, Pass, "2 of 3 claims hold, 1 do not. At no strength of fog, tilt do all hold."},
	} {
		j := &judge{Policy: &Policy{Transforms: map[string]Strength{"tilt": 10, "fog": 3}}, Evidence: Evidence{Neutral: func(string) (float64, error) { return 0, nil }}}
		claims := []Claim{{State: c.clean}, {State: c.tilt, Transform: "tilt", Parameter: "-10"}, {State: c.fog, Transform: "fog", Parameter: "3"}}
		s := j.Summarise([]Verdict{{Claims: claims, HoldsUpTo: j.holdsUpTo(claims)}})
		if got := s.Models[0].Counts(); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}
