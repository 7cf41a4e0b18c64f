package scores

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ei returns a row of effective invariance. In a row without a parameter the value is the mean over
// the parameters of the transformation, such as angles.
func ei(model, data, transform, parameter string, trial int, value float64) Row {
	return Row{Model: model, Data: data, Transform: transform, Parameter: parameter, Trial: trial,
		Measure: "effective-invariance", Statistic: "ei", Value: value}
}

// A selector, MEASURE.STATISTIC@TRANSFORMATION=PARAMETER, selects one row for each model and data
// set: the mean over trials and parameters, if there is one. It does not select scores of a part of
// the samples, such as the factor class=cat.
func TestSelect(t *testing.T) {
	t.Parallel()
	rows := []Row{
		ei("a", "d", "rotation", "90", 0, .1), ei("a", "d", "rotation", "180", 0, .2), ei("a", "d", "rotation", "", 0, .15),
		ei("a", "d", "gray", "", 0, .7), ei("b", "d", "gray", "", 0, .6), ei("b", "d", "gray", "", 1, .62), ei("b", "d", "gray", "", -1, .61),
		{Model: "a", Data: "d", Transform: "rotation", Measure: "accuracy", Statistic: "clean", Value: .9},
		{Model: "a", Data: "d", Transform: "gray", Measure: "accuracy", Statistic: "clean", Value: (.9 + .9 + .9) / 3}, // equal up to rounding
		{Model: "a", Data: "d", Transform: "gray", Measure: "accuracy", Statistic: "clean", Factor: "class=cat", Value: .5},
	}
	for text, want := range map[string][]float64{
		"effective-invariance.ei@rotation":     {.15},
		"effective-invariance.ei@rotation=180": {.2},
		"effective-invariance.ei@gray":         {.7, .61},
		"accuracy.clean":                       {.9},
	} {
		s, err := ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != text {
			t.Errorf("the selector %s is written as %s", text, s)
		}
		got, err := s.Select(rows)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s selects %v, want %v", text, got, want)
		}
		for i := range want {
			if got[i].Value != want[i] {
				t.Errorf("%s selects %v, want the value %g", text, got[i], want[i])
			}
		}
	}
	for text, want := range map[string]string{
		"effective-invariance.ei": "several scores of model a on d: effective-invariance.ei@rotation and effective-invariance.ei@gray",
		"seis.equivariance":       "available: accuracy.clean, effective-invariance.ei",
	} {
		s, _ := ParseSelector(text)
		if _, err := s.Select(rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	for _, text := range []string{"", "ei", ".ei", "a.", "a.b@", "@x"} {
		if s, err := ParseSelector(text); err == nil {
			t.Errorf("ParseSelector(%q) = %+v, want an error", text, s)
		}
	}
}

// FuzzSelector checks that ParseSelector reads what String returns as the same selector.
func FuzzSelector(f *testing.F) {
	f.Add("seis.equivariance@shift=0.25/relu3")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(s.String())
		if err != nil || again != s {
			t.Fatalf("%q is read as %+v, and %q as %+v, error %v", text, s, s.String(), again, err)
		}
	})
}

// TestSelectModelOfTwoRuns checks the error if two runs have measured models of the same name.
func TestSelectModelOfTwoRuns(t *testing.T) {
	t.Parallel()
	a, b := ei("m", "d", "gray", "", 0, .7), ei("m", "d", "gray", "", 0, .6)
	a.Study, b.Study = "first", "second"
	s := Selector{Measure: "effective-invariance", Statistic: "ei"}
	want := `model m on d has two values of effective-invariance.ei: 0.7 in study "first" and 0.6 in study "second"; leave one run out, or measure the models under different names`
	if _, err := s.Select([]Row{a, b}); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestSelectorRoundTrip(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-z][a-z-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		s := Selector{Measure: word.Draw(t, "m"), Statistic: word.Draw(t, "s"), Transform: word.Draw(t, "t"), Layer: word.Draw(t, "l")}
		if got, err := ParseSelector(s.String()); err != nil || got != s {
			t.Fatalf("ParseSelector(%q) = %+v, error %v; want %+v", s.String(), got, err, s)
		}
	})
}
