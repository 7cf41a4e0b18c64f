package correlation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/scores"
)

// near reports an error unless got is within tolerance of want, relative to |want| if that exceeds
// 1.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

// The golden values are those of testdata/golden.py, which uses SciPy and statsmodels.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name                                       string
		X, Y                                       []float64
		Pearson, Spearman, Intercept, Slope, Scale float64    // Scale: of the residuals
		Interval                                   [2]float64 // Fisher's interval of Pearson's r
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 6 {
		t.Fatalf("%d cases, want at least 6", len(cases))
	}
	for _, c := range cases {
		near(t, c.Name+" pearson", Pearson(c.X, c.Y).Value, c.Pearson, 1e-12)
		near(t, c.Name+" low", Pearson(c.X, c.Y).Low, c.Interval[0], 1e-9)
		near(t, c.Name+" high", Pearson(c.X, c.Y).High, c.Interval[1], 1e-9)
		near(t, c.Name+" spearman", Spearman(c.X, c.Y).Value, c.Spearman, 1e-12)
		line, err := huber(c.X, c.Y)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.Name+" intercept", line.Intercept, c.Intercept, 1e-7)
		near(t, c.Name+" slope", line.Slope/c.Slope, 1, 1e-5)
		near(t, c.Name+" scale", line.Scale/c.Scale, 1, 1e-6)
	}
}

// Fisher's interval of r = 0.5 over 28 points, by hand: atanh 0.5 +- 1.959964 / sqrt(28 - 3). The
// third argument of fisher is a factor of the variance, 1 for Pearson's r.
func TestFisherInterval(t *testing.T) {
	t.Parallel()
	c := fisher(0.5, 28, 1)
	near(t, "low", c.Low, math.Tanh(math.Atanh(0.5)-1.959963985/5), 1e-9)
	near(t, "high", c.High, math.Tanh(math.Atanh(0.5)+1.959963985/5), 1e-9)
	if c := fisher(0.5, 3, 1); !math.IsNaN(c.Low) {
		t.Errorf("three points have the interval %v, want none", c)
	}
}

// Logit adds half a success and half a failure to the counts, so it is finite at 0 and 1.
func TestLogit(t *testing.T) {
	t.Parallel()
	near(t, "9 of 9 correct", Logit(1, 9), math.Log(9.5/0.5), 1e-12)
	near(t, "0 of 9 correct", Logit(0, 9), -math.Log(9.5/0.5), 1e-12)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 10000).Draw(t, "n")
		p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
		if got := InverseLogit(Logit(p, n), n); math.Abs(got-p) > 1e-9 {
			t.Fatalf("InverseLogit(Logit(%g, %d)) = %g, want %g", p, n, got, p)
		}
	})
}

// Spearman's rho does not change if x is cubed. Pearson's r is symmetric, and from -1 to 1.
func TestProperties(t *testing.T) {
	t.Parallel()
	values := rapid.SliceOfN(rapid.Float64Range(-10, 10), 5, 40)
	distinct := func(v []float64) int { return len(slices.Compact(slices.Sorted(slices.Values(v)))) }
	rapid.Check(t, func(t *rapid.T) {
		x := values.Draw(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), len(x), len(x)).Draw(t, "y")
		cubed := make([]float64, len(x))
		for i, v := range x {
			cubed[i] = v * v * v
		}
		a, b := Spearman(x, y).Value, Spearman(cubed, y).Value
		// The cubes of tiny values may underflow to ties, which change the ranks.
		if distinct(cubed) == distinct(x) && !math.IsNaN(b) && math.Abs(a-b) > 1e-9 {
			t.Fatalf("rho is %g, and %g with x cubed, want the same", a, b)
		}
		r := Pearson(x, y).Value
		if !math.IsNaN(r) && (r < -1 || r > 1) {
			t.Fatalf("r = %g, want a value from -1 to 1", r)
		}
		if s := Pearson(y, x).Value; !math.IsNaN(r) && math.Abs(r-s) > 1e-9 {
			t.Fatalf("r is not symmetric: %g, %g", r, s)
		}
	})
}

// Huber finds the line of most points exactly, however large the outliers are.
func TestHuberIgnoresOutliers(t *testing.T) {
	t.Parallel()
	var x, y []float64
	for i := range 20 {
		x, y = append(x, float64(i)), append(y, 3-0.5*float64(i))
	}
	y[3], y[11] = 1e3, -1e3
	line, err := huber(x, y)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "slope", line.Slope, -0.5, 1e-6)
	near(t, "intercept", line.Intercept, 3, 1e-5)
}

// Forty points scatter a little around a line with the slope 4 on the logit scale. The band is the
// 95 % interval of the line at each x (Fit.At). The interval of a single point (Fit.Predict)
// includes the scatter.
func TestAnalyse(t *testing.T) {
	t.Parallel()
	var points []Point
	for i := range 40 {
		x := float64(i) / 40
		scatter := 0.15 * math.Sin(float64(7*i))
		points = append(points, Point{X: x, Y: InverseLogit(-2+4*x+scatter, 10000), N: 10000})
	}
	f, err := Analyse(points, Options{Logit: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "slope", f.Line.Slope, 4, 0.03)
	if f.Pearson.Value < 0.98 || f.Pearson.Low > f.Pearson.Value || f.Pearson.High < f.Pearson.Value {
		t.Errorf("r = %v, want at least 0.98 within its interval", f.Pearson)
	}
	inside := 0
	for i, p := range points {
		line, single := f.At(p.X), f.Predict(p.X)
		if !(single.Low <= line.Low && line.Low <= line.Value && line.Value <= line.High && line.High <= single.High) {
			t.Fatalf("point %d: the band %v is not within the interval of a single point, %v", i, line, single)
		}
		if single.Low <= p.Y && p.Y <= single.High {
			inside++
		}
	}
	if inside < 35 { // 95 % are 38
		t.Errorf("%d of 40 points are within their intervals, want at least 35", inside)
	}
	if e := f.MeanAbsoluteError(); e < 0.005 || e > 0.04 {
		t.Errorf("the mean absolute error is %g, want 0.005 to 0.04", e)
	}
	again, _ := Analyse(points, Options{Logit: true, Seed: 1})
	if again.At(0.3) != f.At(0.3) {
		t.Error("the band differs between two fits with the same seed")
	}
}

// The band contains the true line, y = 1 + x, in about 95 of 100 experiments.
func TestBandCovers(t *testing.T) {
	t.Parallel()
	covered := 0
	for e := range 100 {
		var points []Point
		for i := range 30 {
			// Pseudo-random and uniform from -0.5 to 0.5.
			noise := math.Mod(math.Abs(math.Sin(float64(e*131+i*17+1)))*43758.5453, 1) - 0.5
			points = append(points, Point{X: float64(i) / 30, Y: 1 + float64(i)/30 + noise})
		}
		f, err := Analyse(points, Options{Bootstrap: 200, Seed: uint64(e)})
		if err != nil {
			t.Fatal(err)
		}
		if v := f.At(0.5); v.Low <= 1.5 && 1.5 <= v.High {
			covered++
		}
	}
	if covered < 86 { // at a true coverage of 95 % this has a probability of 1.4e-4
		t.Errorf("the band contains the line in %d of 100 experiments, want at least 86", covered)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	at := func(xy ...float64) (p []Point) { // the points of x, y, x, y, ...; each without N
		for i := 0; i < len(xy); i += 2 {
			p = append(p, Point{Label: "m", X: xy[i], Y: xy[i+1]})
		}
		return p
	}
	if _, err := Analyse(at(1, 2, 3, 4), Options{}); !errors.Is(err, errTooFew) {
		t.Errorf("two points: error %v, want errTooFew", err)
	}
	for name, c := range map[string]struct {
		points []Point
		logit  bool
	}{
		"constant x":      {at(1, 2, 1, 3, 1, 4, 1, 5), false},
		"NaN":             {at(1, 2, 2, math.NaN(), 3, 4, 1, 5), false},
		"infinite":        {at(1, 2, 2, 3, math.Inf(1), 4, 1, 5), false},
		"y above 1":       {at(1, .2, 2, 1.3, 3, .4, 1, .5), true},
		"logit without n": {at(1, .2, 2, 1, 3, .4, 1, .5), true},
	} {
		if _, err := Analyse(c.points, Options{Logit: c.logit}); err == nil {
			t.Errorf("%s: Analyse returns no error", name)
		} else {
			t.Log(err)
		}
	}
	if c := Pearson([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}); !math.IsNaN(c.Value) {
		t.Errorf("the correlation of a constant is %v, want NaN", c)
	}
}

// Rows returns the six statistics of a fit, and a prediction for the one unlabelled model or data
// set, whose accuracy is not known. A selector names a measure, a statistic and, after the @, a
// transformation; the variant of a row names both scores.
func TestRows(t *testing.T) {
	t.Parallel()
	var set Set
	set.Name = "test"
	for i := range 12 {
		x := float64(i) / 12
		set.Points = append(set.Points, Point{Label: "m", X: x, Y: 0.2 + 0.6*x + 0.01*math.Sin(float64(3*i)), N: 1000})
	}
	set.Unlabelled = []Point{{Label: "new", X: 0.5}}
	fit, err := Analyse(set.Points, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := scores.ParseSelector("effective-invariance.ei@rotation")
	y, _ := scores.ParseSelector("accuracy.clean")
	for _, by := range []By{ByModel, ByData} {
		rows := Relation{X: x, Y: y, By: by}.Rows(set, fit)
		got := map[string]scores.Row{}
		for _, r := range rows {
			got[r.Statistic] = r
		}
		if len(rows) != 7 || got["pearson"].Value != fit.Pearson.Value || got["pearson"].Low != fit.Pearson.Low || got["leave-one-out-error"].Value != fit.MeanAbsoluteError() {
			t.Errorf("the rows are %+v, want 7 with the values of the fit", rows)
		}
		p := got["predicted"]
		if math.Abs(p.Value-0.5) > 0.02 || !(p.Low < 0.5 && 0.5 < p.High) || p.Variant != "effective-invariance.ei@rotation ~ accuracy.clean" || p.Transform != "rotation" {
			t.Errorf("the prediction is %+v, want 0.5 within its interval, under rotation", p)
		}
		if by == ByModel && (p.Model != "new" || p.Data != "test") || by == ByData && (p.Model != "test" || p.Data != "new") {
			t.Errorf("the prediction is of %s on %s, want the new one on the set", p.Model, p.Data)
		}
		var b strings.Builder
		if err := scores.WriteCSV(&b, rows); err != nil {
			t.Fatal(err)
		}
		if back, err := scores.ReadCSV(strings.NewReader(b.String())); err != nil || len(back) != len(rows) {
			t.Errorf("%d rows are read back, want %d; error %v", len(back), len(rows), err)
		}
	}
}

// A hundred checkpoints of five training runs are five independent units. So the interval of r is
// that of five points, a leave-one-out error leaves out a whole run, and a warning says that there
// are few units.
func TestIndependentUnits(t *testing.T) {
	t.Parallel()
	var points, ungrouped []Point // ungrouped: each point is a unit
	for i := range 100 {
		run := i / 20
		x := float64(run) + 0.01*float64(i%20)
		p := Point{Label: fmt.Sprint(i), Unit: fmt.Sprint("run ", run), X: x, Y: 0.5 + 0.05*x + 0.1*math.Sin(float64(7*run)), N: 1000}
		points = append(points, p)
		p.Unit = ""
		ungrouped = append(ungrouped, p)
	}
	f, err := Analyse(points, Options{Seed: 1, Bootstrap: 200})
	if err != nil {
		t.Fatal(err)
	}
	u, err := Analyse(ungrouped, Options{Seed: 1, Bootstrap: 200})
	if err != nil {
		t.Fatal(err)
	}
	if f.Units != 5 || u.Units != 100 || f.Pearson.Value != u.Pearson.Value || f.Pearson.N != 5 {
		t.Errorf("%d and %d units, r = %v and %v; want 5 and 100 units and the same r", f.Units, u.Units, f.Pearson, u.Pearson)
	}
	want := fisher(u.Pearson.Value, 5, 1)
	if f.Pearson.Low != want.Low || f.Pearson.High != want.High || f.Spearman.Low > f.Pearson.Value-0.5 {
		t.Errorf("the interval of r over five runs is %v, want %v; that of rho is %v, want a lower bound at least 0.5 below r", f.Pearson, want, f.Spearman)
	}
	if f.MeanAbsoluteError() < 1.5*u.MeanAbsoluteError() {
		t.Errorf("the mean error is %v if a run is left out, and %v if a checkpoint is, want at least 1.5 times as much", f.MeanAbsoluteError(), u.MeanAbsoluteError())
	}
	if a, b := f.At(2), u.At(2); b.High-b.Low > (a.High-a.Low)/2 {
		t.Errorf("the bands over units and over points are %v and %v, want the second at most half as wide", a, b)
	}
	if len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], "5 independent units") || len(u.Warnings) > 0 {
		t.Errorf("the warnings are %q and %q, want one of 5 independent units, and none", f.Warnings, u.Warnings)
	}
}

// A coefficient of exactly 1 has no interval, and four points have a wide one; both have a warning.
func TestFewPoints(t *testing.T) {
	t.Parallel()
	points := []Point{{X: 1, Y: 0.1, N: 50}, {X: 2, Y: 0.2, N: 50}, {X: 3, Y: 0.35, N: 50}, {X: 4, Y: 0.36, N: 50}}
	f, err := Analyse(points, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(f.Spearman.Low) || !math.IsNaN(f.Spearman.High) || f.Pearson.High-f.Pearson.Low < 0.5 {
		t.Errorf("the intervals of four points are %v and %v, want a wide one of r and none of rho", f.Pearson, f.Spearman)
	}
	if want := []string{"4 independent units: too few to tell a relation from chance", "Spearman's rho is exactly +1 and has no interval"}; !slices.Equal(f.Warnings, want) {
		t.Errorf("warnings %q, want %q", f.Warnings, want)
	}
}

// A constant score has no correlation, and a warning says which of the two scores is constant.
func TestConstantScoresHaveAWarning(t *testing.T) {
	t.Parallel()
	var points []Point
	for i := range 8 {
		points = append(points, Point{Label: fmt.Sprint(i), X: float64(i), Y: 0.25, N: 10})
	}
	f, err := Analyse(points, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(f.Pearson.Value) || !slices.Contains(f.Warnings, "the second score is 0.25 everywhere, so that there is no correlation") {
		t.Errorf("Pearson's r is %v, with the warnings %q; want NaN, and a warning that the second score is constant", f.Pearson.Value, f.Warnings)
	}
}
