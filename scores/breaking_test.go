package scores

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// curveRows returns rows of a statistic 1 - strength / 10 with intervals of 0.1 to both sides.
func curveRows(parameters ...string) []Row {
	var rows []Row
	for _, p := range parameters {
		v := map[string]float64{"-8": 0.2, "-4": 0.6, "0": 1, "2": 0.8, "4": 0.6, "8": 0.2}[p]
		rows = append(rows, Row{Model: "m", Data: "d", Transform: "tilt", Parameter: p, Measure: "effective-invariance", Statistic: "ei", Value: v, Low: v - 0.1, High: v + 0.1, N: 50 + len(rows), Warning: p, P: v / 10, PAdjusted: v / 5})
	}
	return append(rows, Row{Model: "m", Data: "d", Transform: "tilt", Measure: "effective-invariance", Statistic: "ei", Value: 0.5, Low: 0.4, High: 0.6})
}

func zero(string) (float64, error) { return 0, nil }

func TestBreakingPoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows      []Row
		tolerance string
		want      []string // of each side, with its area
	}{
		"between":                {curveRows("2", "4", "8"), "effective-invariance.ei >= 0.5", []string{"5 [4, 6]"}},
		"at a value":             {curveRows("2", "4", "8"), "effective-invariance.ei >= 0.6", []string{"4 [3, 5]"}},
		"both sides, any order":  {curveRows("8", "-8", "4", "-4", "2"), "effective-invariance.ei@tilt >= 0.5", []string{"5 [4, 6]", "5 [4, 6]"}},
		"before":                 {curveRows("4", "8"), "effective-invariance.ei >= 0.9", []string{"before 4 [0, 4]"}},
		"perhaps before":         {curveRows("4", "8"), "effective-invariance.ei >= 0.55", []string{"4.5 [0, 5.5]"}},
		"beyond":                 {curveRows("2", "4"), "effective-invariance.ei >= 0.3", []string{"beyond 4"}},
		"perhaps beyond":         {curveRows("2", "4", "8"), "effective-invariance.ei >= 0.25", []string{"7.5 [6.5, beyond]"}},
		"beyond, perhaps before": {curveRows("2", "4", "8"), "effective-invariance.ei >= 0.15", []string{"beyond 8 [7.5, beyond]"}},
		"relative to zero":       {curveRows("0", "4", "8"), "effective-invariance.ei >= 70%", []string{"3 [2, 4]"}},
		"at most":                {curveRows("2", "4", "8"), "effective-invariance.ei <= 0.7", []string{"before 2 [0, 2]"}},
	} {
		tolerance, err := ParseTolerance(c.tolerance)
		if err != nil {
			t.Fatal(err)
		}
		got, err := BreakingPoints(c.rows, tolerance, zero)
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		for i, b := range got {
			if b.String() != c.want[i] {
				t.Errorf("%s: %s, want %s", name, b, c.want[i])
			}
		}
	}
}

// TestBreakingRows checks the rows of points that were found, that lie beyond what was tried and on
// both sides, and that tolerances of one score share the area.
func TestBreakingRows(t *testing.T) {
	t.Parallel()
	rows := curveRows("-4", "-8", "2", "4")
	var points []BreakingPoint
	for _, text := range []string{"effective-invariance.ei@tilt >= 0.5", "effective-invariance.ei >= 0.7"} {
		tolerance, err := ParseTolerance(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := BreakingPoints(rows, tolerance, zero)
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, found...)
	}
	var got []string
	for _, r := range BreakingRows("s", points) {
		got = append(got, fmt.Sprintf("%s %s %s %.3g [%.3g, %.3g] %s", r.Statistic, r.Variant, r.Factor, r.Value, r.Low, r.High, r.Warning))
		if r.Study != "s" || r.Model != "m" || r.Data != "d" || r.Transform != "tilt" || r.Parameter != "" || r.Measure != BreakingDescriptor().Name || !math.IsNaN(r.Null) || r.P != 0 {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"breaking-point above effective-invariance.ei >= 0.5 NaN [NaN, NaN] no value: the score keeps to the tolerance up to 4, the largest strength that was tried",
		"area above effective-invariance.ei 0.7 [0.6, 0.8] ",
		"breaking-point below effective-invariance.ei >= 0.5 5 [4, 6] ",
		"area below effective-invariance.ei 0.4 [0.3, 0.5] ",
		"breaking-point above effective-invariance.ei >= 0.7 3 [NaN, NaN] no interval: its upper end is beyond 4, the largest strength that was tried",
		"breaking-point below effective-invariance.ei >= 0.7 NaN [NaN, NaN] no value: the score is outside of the tolerance at 4, the smallest strength that was tried",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestArea compares with integrals in closed form.
func TestArea(t *testing.T) {
	t.Parallel()
	tolerance, _ := ParseTolerance("effective-invariance.ei >= 0.5")
	for _, c := range []struct {
		rows            []Row
		area, low, high float64
	}{
		{curveRows("2", "4", "8"), 0.5, 0.4, 0.6}, // a line: its mean is the value in the middle
		{curveRows("0", "8"), 0.6, 0.5, 0.7},
		{curveRows("4"), math.NaN(), math.NaN(), math.NaN()},
	} {
		got, err := BreakingPoints(c.rows, tolerance, zero)
		if err != nil {
			t.Fatal(err)
		}
		for i, pair := range [][2]float64{{got[0].Area, c.area}, {got[0].AreaLow, c.low}, {got[0].AreaHigh, c.high}} {
			if !(math.Abs(pair[0]-pair[1]) < 1e-12) && !(math.IsNaN(pair[0]) && math.IsNaN(pair[1])) {
				t.Errorf("area %d is %v, want %v", i, pair[0], pair[1])
			}
		}
	}
}

// TestAccuracyIsRelativeToClean checks that the accuracy on clean data is the reference, also mAP and
// mean IoU, and that of several trials the means count.
func TestAccuracyIsRelativeToClean(t *testing.T) {
	t.Parallel()
	for _, of := range [][3]string{{"accuracy", "clean", "moved"}, {"dense-accuracy", "clean-map", "moved-map"}, {"dense-accuracy", "clean-miou", "moved-miou"}} {
		row := func(statistic, parameter string, trial int, v float64) Row {
			return Row{Model: "m", Data: "d", Transform: "tilt", Parameter: parameter, Trial: trial, Measure: of[0], Statistic: statistic, Value: v, Low: v, High: v}
		}
		rows := []Row{row(of[1], "4", 0, 0.8), row(of[2], "4", 0, 0.1), row(of[2], "4", 1, 0.7), row(of[2], "4", MeanOverTrials, 0.4)}
		tolerance, _ := ParseTolerance(of[0] + "." + of[2] + " >= 75%")
		got, err := BreakingPoints(rows, tolerance, zero)
		if err != nil || len(got) != 1 || got[0].String() != "2 [2, 2]" { // 0.6 between 0.8 at 0 and 0.4 at 4
			t.Errorf("%s: %v, %v", of, got, err)
		}
	}
}

func TestBreakingPointErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ei >= 0.5": "invalid score", "effective-invariance.ei > 0.5": "invalid tolerance", "effective-invariance.ei >= x": "not a number",
		"effective-invariance.ei >= NaN": "not a number", "effective-invariance.ei@tilt=5 >= 1": "leave out =5", "": "invalid tolerance",
	} {
		if _, err := ParseTolerance(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	run := func(rows []Row, text string, neutral func(string) (float64, error)) error {
		tolerance, err := ParseTolerance(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = BreakingPoints(rows, tolerance, neutral)
		return err
	}
	unknown := func(string) (float64, error) { return 0, errors.New("not known") }
	undefined := curveRows("4")
	undefined[0].Value, undefined[0].Warning = math.NaN(), "no samples"
	for want, err := range map[string]error{
		"no score matches":            run(curveRows("4"), "seis.rank >= 1", zero),
		"has a list of numbers":       run(curveRows(), "effective-invariance.ei >= 1", zero),
		"add 0 to the values of tilt": run(curveRows("4"), "effective-invariance.ei >= 90%", zero),
		"not known":                   run(curveRows("4"), "effective-invariance.ei >= 0.9", unknown),
		"has no value (no samples)":   run(undefined, "effective-invariance.ei >= 0.9", zero),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzParseTolerance(f *testing.F) {
	f.Add("effective-invariance.ei@tilt/layer >= 95%")
	f.Add("distance.cosine <= -1e-3")
	f.Fuzz(func(t *testing.T, text string) {
		tolerance, err := ParseTolerance(text)
		if err != nil {
			return
		}
		again, err := ParseTolerance(tolerance.String())
		if err != nil || again.Selector != tolerance.Selector || again.AtMost != tolerance.AtMost || again.Relative != tolerance.Relative ||
			math.Abs(again.Limit-tolerance.Limit) > 1e-9*math.Abs(tolerance.Limit) {
			t.Errorf("%q is %+v, and %q %+v, %v", text, tolerance, tolerance, again, err)
		}
	})
}
