package main

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
)

func TestParseBreakingCondition(t *testing.T) {
	t.Parallel()
	measures := []measure.Descriptor{
		{Name: "effective-invariance", Statistics: []measure.StatisticDescriptor{{Name: "ei", Direction: measure.Higher, Range: measure.ZeroToOne}}},
		{Name: "distance", Statistics: []measure.StatisticDescriptor{{Name: "cosine", Direction: measure.Lower}, {Name: "l2", Direction: measure.Lower}}},
		{Name: "other", Statistics: []measure.StatisticDescriptor{{Name: "l2"}}},
	}
	for text, want := range map[string]string{
		"breaking-point(tilt, ei, 0.9) < 12":                      "effective-invariance.ei@tilt >= 0.9",
		"breaking-point( tilt,distance.cosine/layer4 ,0.1 ) < 12": "distance.cosine@tilt/layer4 <= 0.1",
		"breaking-point(tilt, ei, 90%) < 12":                      "effective-invariance.ei@tilt >= 90%",
		"breaking-point(tilt, l2, 1) < 12":                        "error: 2 statistics of the run are called l2: write one of distance.l2, other.l2",
		"breaking-point(tilt, none, 1) < 12":                      "error: no statistic of the run is called none; known are ei, cosine, l2, l2",
		"breaking-point(tilt, eii, 1) < 12":                       "error: did you mean \"ei\"?",
		"breaking-point(tilt, ei, 90) < 12":                       "error: effective-invariance.ei is from 0 to 1, and 90 is not; write 90%",
		"breaking-point(tilt, ei, 0.9) < -1":                      "error: a strength is at least 0",
		"breaking-point(tilt, ei, 1) > 12":                        "error: write breaking-point",
		"breaking-point(tilt, ei, 1) < x":                         "error: \"x\" is not a number",
		"breaking-point(tilt, ei, x) < 1":                         "error: \"x\" is not a number",
	} {
		tolerance, least, err := parseBreakingCondition(text, measures)
		if e, ok := strings.CutPrefix(want, "error: "); ok {
			if err == nil || !strings.Contains(err.Error(), e) {
				t.Errorf("%s: %v, want %q", text, err, e)
			}
		} else if err != nil || tolerance.String() != want || least != 12 {
			t.Errorf("%s: %s at %v, %v; want %s", text, tolerance, least, err, want)
		}
	}
}
