package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
	"pgregory.net/rapid"
)

// TestChartsOf checks which charts suit rows (one score each). Its keys are the names of the wanted
// charts in the order in which a page offers them. Nearly all rows suit a heat map too, so all
// cases but "heat bars" ignore it. The rows are scores of the measure one, so that the measure two
// has no chart. Attachments are other data of the run, such as values of single units. A unit is
// one channel at one position, and a tuning curve its responses to transformed versions of an
// input.
func TestChartsOf(t *testing.T) {
	t.Parallel()
	row := func(layer string, depth int, parameter string) scores.Row {
		return scores.Row{Model: "m", Layer: layer, Depth: depth, Data: "d", Transform: "turn", Parameter: parameter, Measure: "one", Statistic: "s", Value: 1}
	}
	// pair returns the similarity of a layer of the model m to one of the model n.
	pair := func(layer, other string) scores.Row {
		r := row(layer, 1, "")
		r.OtherModel, r.OtherLayer, r.Transform = "n", other, ""
		return r
	}
	// The score of those detections alone whose confidence is 0.5 or more.
	confident := row("", 0, "")
	confident.Factor = "confidence=0.5"
	units := Attachments{Distributions: []Distribution{{Subject: Subject{Of: "unit", Measure: "one", Layer: "a"}}, {Subject: Subject{Of: "unit", Measure: "one", Layer: "b"}}},
		Curves: []TuningCurve{{Measure: "one"}}}
	for want, c := range map[string]struct {
		m    measure.Descriptor
		rows []scores.Row
		a    Attachments
	}{
		"":                                     {measure.Descriptor{Name: "two"}, []scores.Row{row("", 0, "")}, Attachments{}},
		"bars":                                 {measure.Descriptor{Name: "one"}, []scores.Row{row("", 0, "")}, Attachments{}},
		"parameter bars":                       {measure.Descriptor{Name: "one"}, []scores.Row{row("", 0, "1"), row("", 0, "2")}, Attachments{}},
		"bars confidence":                      {measure.Descriptor{Name: "one"}, []scores.Row{row("", 0, ""), confident}, Attachments{}},
		"depth bars":                           {measure.Descriptor{Name: "one"}, []scores.Row{row("a", 0, ""), row("b", 1, "")}, Attachments{}},
		"bars depth":                           {measure.Descriptor{Name: "one", Chart: "bars"}, []scores.Row{row("a", 0, ""), row("b", 1, "")}, Attachments{}},
		"heat bars":                            {measure.Descriptor{Name: "one"}, []scores.Row{pair("a", "a"), pair("a", "b"), pair("b", "b")}, Attachments{}},
		"depth bars parameter":                 {measure.Descriptor{Name: "one"}, []scores.Row{row("a", 0, "1"), row("b", 1, "1"), row("a", 0, "2"), row("b", 1, "2")}, Attachments{}},
		"depth bars distribution units tuning": {measure.Descriptor{Name: "one"}, []scores.Row{row("a", 0, ""), row("b", 1, "")}, units},
	} {
		var got []string
		for _, chart := range ChartsOf(c.m, c.rows, c.a) {
			if chart.Name != "heat" || want == "heat bars" {
				got = append(got, chart.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("charts %q, want %q", got, want)
		}
	}
}

// TestFieldsHaveTitles checks that each field of a score that a chart shows has a title.
func TestFieldsHaveTitles(t *testing.T) {
	t.Parallel()
	// "unit" is a column of the table of tuning curves, not a field of a score, and has no title.
	for _, c := range []Chart{DepthChart, ParameterChart, ConfidenceChart, BarsChart, HeatChart, DistributionChart, unitsChart, tuningChart} {
		// Spread: fields that the axes show. Sides: fields of the rows and columns of a heat map.
		// probeBarSides: the same for bars of probes (networks trained on the vectors of a layer).
		fields := slices.Concat(c.Colour, c.Spread)
		for _, s := range slices.Concat(c.Sides, probeBarSides) {
			fields = append(fields, s.Down, s.Across)
		}
		for _, f := range fields {
			if f.Title() == "" && f != "" && f != "unit" {
				t.Errorf("%s: the field %s has no title", c.Name, f)
			}
		}
	}
}

// TestLooks checks that no two looks (colour, marker and dashes of a curve) are the same, and that
// a hexadecimal colour is read as red, green and blue.
func TestLooks(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, l := range Looks() {
		if seen[fmt.Sprint(l)] {
			t.Errorf("the look %v occurs twice", l)
		}
		seen[fmt.Sprint(l)] = true
	}
	if got := (Colour("#0072b2")).RGBA(); got != (color.RGBA{0, 0x72, 0xb2, 255}) {
		t.Errorf("#0072b2 is %v, want {0 114 178 255}", got)
	}
}

// TestColourScale checks the scale of the colours of a heat map: 0 to 1 for fractions, else the
// range of the values, which is symmetric around 0 (signed) if some are negative and some positive.
func TestColourScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values    []float64
		of        measure.Range // of the statistic
		low, high float64
		signed    bool
	}{
		{[]float64{0.2, 0.4}, measure.ZeroToOne, 0, 1, false},
		{[]float64{0.2, math.NaN(), 0.4}, measure.AtMostOne, 0, 1, false},
		{[]float64{-0.2, 0.4}, measure.AtMostOne, -0.4, 0.4, true},
		{[]float64{3, 7}, measure.NotNegative, 3, 7, false},
		{[]float64{3, 3}, measure.NotNegative, 2.5, 3.5, false},
		{nil, measure.AnyNumber, 0, 1, false},
	} {
		s := NewColourScale(c.values, c.of)
		if s.Low != c.low || s.High != c.high || s.Signed != c.signed {
			t.Errorf("%v in %v: scale %+v, want %g to %g, signed %t", c.values, c.of, s, c.low, c.high, c.signed)
		}
		if s.At(s.Low) != s.colours()[0].RGBA() || s.At(s.High+1) != s.colours()[len(s.colours())-1].RGBA() {
			t.Errorf("%v: the ends are coloured %v and %v, want the first and the last colour", c.values, s.At(s.Low), s.At(s.High))
		}
	}
}

// TestLogitTicks checks that any part of a logit axis has 2 to 15 ticks.
func TestLogitTicks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-6, 6).Draw(t, "low")
		high := low + rapid.Float64Range(0.1, 6).Draw(t, "size")
		ticks := logitTicks(low, high)
		if len(ticks) < 2 || len(ticks) > 15 {
			t.Fatalf("%d ticks between %g and %g, want 2 to 15", len(ticks), low, high)
		}
		for _, tick := range ticks {
			if tick.At < low-1e-9 || tick.At > high+1e-9 {
				t.Fatalf("a tick at %g, outside %g to %g", tick.At, low, high)
			}
		}
	})
	// The axis is in logits, the labels in per cent. The 0 of Logit stands for no continuity
	// correction.
	if got := logitTicks(correlation.Logit(0.52, 0), correlation.Logit(0.58, 0)); fmt.Sprint(got[0].Label, got[1].Label) != "52%53%" {
		t.Errorf("ticks between 52 %% and 58 %%: %v, want 52 %%, 53 %%, ...", got)
	}
}

// TestNarrowScatter checks that the axes are much longer than the differences of points that are
// almost equal (by 0.006 and 0.003), and that error bars lie on the axes.
func TestNarrowScatter(t *testing.T) {
	t.Parallel()
	var points []correlation.Point
	for i := range 4 {
		x, y := 0.5+0.002*float64(i), 0.995+0.001*float64(i)
		points = append(points, correlation.Point{X: x, Y: y, N: 500, YInterval: correlation.Interval{Low: y - 0.004, High: min(1, y+0.004)}})
	}
	for _, logit := range []bool{true, false} {
		s := NewScatter(points, nil, "", "x", "y", logit)
		if s.Right-s.Left < 0.06 || s.Left > 0.5 || s.Right < 0.506 {
			t.Errorf("logit %v: the horizontal axis is from %v to %v, want 0.06 or more around 0.5", logit, s.Left, s.Right)
		}
		low, high := s.Low, s.High
		if logit {
			low, high = correlation.InverseLogit(low, 0), correlation.InverseLogit(high, 0)
		}
		if high-low < 0.055 || low > 0.95 {
			t.Errorf("logit %v: the vertical axis is from %v to %v, want 0.055 or more from at most 0.95", logit, low, high)
		}
		for _, p := range s.Points {
			if p.Low >= p.At || p.High < p.At || p.Low < s.Low || p.High > s.High || p.Left != p.X || p.Right != p.X {
				t.Errorf("logit %v: the error bars of %+v are not around the point and on the axis from %v to %v", logit, p, s.Low, s.High)
			}
		}
	}
}

// TestScatterOfEqualScores checks that a scatter plot whose correlation is undefined, since all
// accuracies (vertical) are 0, has no line and a note, and that the vertical axis begins just below
// the points.
func TestScatterOfEqualScores(t *testing.T) {
	t.Parallel()
	var points []correlation.Point
	for i := range 4 {
		points = append(points, correlation.Point{X: 0.1 * float64(i), N: 100, YInterval: correlation.Interval{High: 0.04}})
	}
	undefined := correlation.Coefficient{Value: math.NaN()}
	s := NewScatter(points, &correlation.Fit{Pearson: undefined, Spearman: undefined}, "", "x", "y", true)
	if len(s.Line) > 0 || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "no correlation") {
		t.Errorf("%d points of a line and the notes %q, want no line and a note that there is no correlation", len(s.Line), s.Notes)
	}
	if low := correlation.InverseLogit(s.Low, 0); low < 0.002 {
		t.Errorf("the axis begins at %v, want 0.002 or more; the points are at %v", low, correlation.InverseLogit(s.Points[0].At, 0))
	}
}
