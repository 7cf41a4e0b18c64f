package spec

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// decodeSearch decodes an entry of transforms of a study that has nothing else.
func decodeSearch(t *testing.T, src string) (*Study, error) {
	t.Helper()
	n, err := config.Parse("s.yaml", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{node: n, Trials: 1, lists: Lists{Transforms: transform.Kinds()}, Transforms: []Transform{{node: n}}}
	return s, s.Transforms[0].Decode(transform.Kinds())
}

// curve returns the cells of the scores of effective invariance that f gives for the values, with
// intervals of the given half-width.
func (s *Study) curve(f func(v float64) float64, half float64) []scores.Cell {
	var out []scores.Cell
	for i, v := range s.Transforms[0].Search.values() {
		score := measure.Plain("ei", f(v), 100)
		score.Low, score.High = score.Value-half, score.Value+half
		out = append(out, scores.Cell{Model: "m", Data: "d", Transform: s.Transforms[0].Name, Parameter: s.Transforms[0].Cells[i].Parameter, Measure: "effective-invariance",
			Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{score}}}})
	}
	return out
}

// TestSearchFindsBreakingPoint checks that a search of rounds finds where curves in closed form
// leave the tolerance, on the first side and first among several crossings, with few values, and
// that it stops where the interval of the breaking point is wide.
func TestSearchFindsBreakingPoint(t *testing.T) {
	t.Parallel()
	line := func(v float64) float64 { return 1 - math.Abs(v)/100 }
	for name, c := range map[string]struct {
		src    string
		f      func(float64) float64
		half   float64
		want   []float64 // breaking points
		within float64
		values int // most that are tried
	}{
		"a line":                  {"{rotate: {values: auto}, tolerance: effective-invariance.ei >= 0.63}", line, 1e-6, []float64{37}, 1e-9, 14},
		"two sides":               {"{rotate: {values: auto, range: [-60, 90]}, tolerance: effective-invariance.ei >= 0.63}", line, 1e-6, []float64{37, 37}, 1e-9, 27},
		"a step":                  {"{rotate: {values: auto, range: [0, 64]}, tolerance: effective-invariance.ei >= 0.5}", func(v float64) float64 { return 1 - math.Ceil(max(0, v-21.3)/1e9) }, 1e-6, []float64{21.3}, 0.25, 14},
		"a curve that returns":    {"{rotate: {values: auto, range: [0, 80]}, tolerance: effective-invariance.ei >= 0.5}", func(v float64) float64 { return 0.5 + 0.5*math.Cos(v*math.Pi/40) }, 1e-6, []float64{20}, 0.1, 14},
		"within its interval":     {"{rotate: {values: auto, range: [0, 80]}, tolerance: effective-invariance.ei >= 0.6}", line, 0.3, []float64{40}, 1e-9, 8},
		"beyond":                  {"{rotate: {values: auto, range: [0, 10]}, tolerance: effective-invariance.ei >= 0.5}", line, 1e-6, nil, 0, 5},
		"two tolerances":          {"{rotate: {values: auto, range: [0, 80]}, tolerance: [effective-invariance.ei >= 0.5, effective-invariance.ei >= 70%]}", line, 1e-6, []float64{50, 30}, 1e-9, 23},
		"a range without neutral": {"{corrupt: {kind: fog, severity: {values: auto, range: [1, 5]}}, tolerance: effective-invariance.ei >= 0.975}", line, 1e-6, []float64{2.5}, 1e-9, 14},
		"factors":                 {"{name: dark, brightness: {values: auto, range: [0.2, 1]}, tolerance: effective-invariance.ei >= 0.7}", func(v float64) float64 { return v }, 1e-6, []float64{0.3}, 1e-9, 14},
	} {
		s, err := decodeSearch(t, c.src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rounds := 1
		for more := true; more; rounds++ {
			if more, err = s.Refine(s.curve(c.f, c.half)); err != nil || rounds > SearchRounds+1 {
				t.Fatalf("%s, round %d: %v", name, rounds, err)
			}
		}
		var got []float64
		search := s.Transforms[0].Search
		for _, tolerance := range s.Transforms[0].Tolerances {
			points, err := scores.BreakingPointsOfCells(s.curve(c.f, c.half), tolerance, func(string) (float64, error) { return search.neutral, nil })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, b := range points {
				if b.State == scores.Found {
					got = append(got, b.Strength)
				}
			}
		}
		if len(search.values()) > c.values || len(got) != len(c.want) {
			t.Errorf("%s: %v with %d values %v, want %v with at most %d", name, got, len(search.values()), search.values(), c.want, c.values)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > c.within {
				t.Errorf("%s: %v, want %v", name, got[i], c.want[i])
			}
		}
		// The resolved study lists the values.
		raw, err := config.Encode(s.node)
		if err != nil || strings.Contains(string(raw), "auto") || !strings.Contains(string(raw), "tolerance") {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
		if again, err := decodeSearch(t, string(raw)); err != nil || again.Transforms[0].Search != nil || len(again.Transforms[0].Cells) != len(search.values()) {
			t.Errorf("%s: the resolved study is read as %+v, %v", name, again.Transforms[0], err)
		}
	}
}

func TestSearchErrors(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"{rotate: {values: auto}}": "add one to the transformation",
		"{rotate: {values: auto, range: 3}, tolerance: effective-invariance.ei >= 0.9}":                                     "two ends",
		"{rotate: {values: auto, range: [3, 3]}, tolerance: effective-invariance.ei >= 0.9}":                                "no width",
		"{rotate: {values: auto, range: [3, 720]}, tolerance: effective-invariance.ei >= 0.9}":                              "between -360 and 360",
		"{brightness: {values: auto}, tolerance: effective-invariance.ei >= 0.9}":                                           "add a range",
		"{gaussian-blur: {values: auto, range: [0, 4]}, tolerance: effective-invariance.ei >= 0.9}":                         "above 0",
		"{flip: {values: auto}, tolerance: effective-invariance.ei >= 0.9}":                                                 "not known",
		"{affine: {rotate: {values: auto, range: [0, 4]}}, tolerance: effective-invariance.ei >= 0.9}":                      "not known",
		"{sequence: [{rotate: {values: auto}}], tolerance: effective-invariance.ei >= 0.9}":                                 "list",
		"{rotate: {values: automatic}, tolerance: effective-invariance.ei >= 0.9}":                                          "list",
		"{rotate: {values: auto}, tolerance: effective-invariance.ei@tilt >= 0.9}":                                          "leave out @tilt",
		"{rotate: {values: auto}, tolerance: ei}":                                                                           "invalid tolerance",
		"{rotate: {values: auto}, tolerance: []}":                                                                           "a text such as",
		"{rotate: {values: auto, interpolation: {values: [nearest, bilinear]}}, tolerance: effective-invariance.ei >= 0.9}": "lists",
	} {
		if _, err := decodeSearch(t, src); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// TestSearchNeedsTheStatistic checks that a tolerance of what the study does not measure is an
// error when the study is read.
func TestSearchNeedsTheStatistic(t *testing.T) {
	t.Parallel()
	for tolerance, want := range map[string]string{
		"effective-invarianc.ei >= 0.9":  `the study has no measure "effective-invarianc"; did you mean "effective-invariance"?`,
		"effective-invariance.ee >= 0.9": `has no statistic "ee"; did you mean "ei"?`,
	} {
		s, err := decodeSearch(t, fmt.Sprintf("{rotate: {values: auto}, tolerance: %s}", tolerance))
		if err != nil {
			t.Fatal(err)
		}
		s.Measures = []MeasureSpec{{Method: named{}}}
		if err := s.checkTolerances(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tolerance, err, want)
		}
	}
	s, _ := decodeSearch(t, "{rotate: {values: auto}, tolerance: effective-invariance.ei >= 0.9}")
	s.Measures = []MeasureSpec{{Method: named{}}}
	if err := s.checkTolerances(); err == nil || !strings.Contains(err.Error(), "all values at once") {
		t.Errorf("a measure that is no accumulator: %v", err)
	}
	if err := s.WholeRun(); err == nil || !strings.Contains(err.Error(), "rotate") {
		t.Errorf("a part of a run: %v", err)
	}
}

// A named method has a descriptor and nothing else.
type named struct{ measure.Method }

func (named) Name() string { return "effective-invariance" }
func (named) Descriptor() measure.Descriptor {
	return measure.Descriptor{Name: "effective-invariance", Statistics: []measure.StatisticDescriptor{{Name: "ei"}}}
}

// fineGrid returns the rows of testdata/fine-grid.csv, of three ResNets on 300 images of CIFAR-10,
// rotated by 0, 1 ... 64 degrees; see testdata/fine-grid.yaml.
func fineGrid(t *testing.T) []scores.Row {
	t.Helper()
	f, err := os.Open("testdata/fine-grid.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := scores.ReadCSV(f)
	if err != nil || len(rows) != 3*(65*3+1) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}

// between returns the row of a score at a value, on a line between those of the nearest values of
// the grid.
func between(rows []scores.Row, score scores.Selector, value string) scores.Row {
	v, _ := strconv.ParseFloat(value, 64)
	at := func(grid float64) scores.Row {
		i := slices.IndexFunc(rows, func(r scores.Row) bool {
			return r.Measure == score.Measure && r.Statistic == score.Statistic && r.Parameter == fmt.Sprint(grid)
		})
		return rows[i]
	}
	low, high := at(math.Floor(v)), at(math.Ceil(v))
	mix := func(of func(scores.Row) float64) float64 { return of(low) + (v-math.Floor(v))*(of(high)-of(low)) }
	out := low
	out.Parameter = value
	out.Value, out.Low, out.High = mix(func(r scores.Row) float64 { return r.Value }), mix(func(r scores.Row) float64 { return r.Low }), mix(func(r scores.Row) float64 { return r.High })
	return out
}

// TestSearchOnThreeNetworks compares breaking points by a search with those of a fine grid, for
// scores of real networks. Points are within their intervals, and take few values.
func TestSearchOnThreeNetworks(t *testing.T) {
	t.Parallel()
	rows := fineGrid(t)
	neutral := func(string) (float64, error) { return 0, nil }
	for _, text := range []string{"accuracy.moved >= 95%", "accuracy.moved >= 90%", "accuracy.moved >= 0.5", "effective-invariance.ei >= 0.8", "effective-invariance.ei >= 0.6",
		"distance.cosine <= 0.1", "distance.cosine <= 0.2"} {
		for _, model := range []string{"resnet20", "resnet32", "resnet56"} {
			s, err := decodeSearch(t, fmt.Sprintf("{name: tilt, rotate: {values: auto, range: [0, 64]}, tolerance: %s}", text))
			if err != nil {
				t.Fatal(err)
			}
			search, tolerance := s.Transforms[0].Search, s.Transforms[0].Tolerances[0]
			own := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Model != model })
			fine, err := scores.BreakingPoints(own, tolerance, neutral)
			if err != nil {
				t.Fatal(err)
			}
			var found []scores.BreakingPoint
			for more := true; more; {
				tried := slices.DeleteFunc(slices.Clone(own), func(r scores.Row) bool { return r.Statistic != "clean" })
				for _, c := range s.Transforms[0].Cells {
					tried = append(tried, between(own, tolerance.Selector, c.Parameter))
				}
				if found, err = scores.BreakingPoints(tried, tolerance, neutral); err != nil {
					t.Fatal(err)
				}
				if more, err = s.refine(func(*Transform, scores.Tolerance) ([]scores.BreakingPoint, error) { return found, nil }); err != nil {
					t.Fatal(err)
				}
			}
			want, got := fine[0], found[0]
			t.Logf("%s of %s: %s by %d values, %s by 65", text, model, got, len(search.values()), want)
			if want.State != got.State || want.State == scores.Found && (!(got.Low <= want.Strength && want.Strength <= got.High) || math.Abs(got.Strength-want.Strength) > 0.3) || len(search.values()) > 14 {
				t.Errorf("%s of %s: %s by %d values, %s by 65", text, model, got, len(search.values()), want)
			}
		}
	}
}
