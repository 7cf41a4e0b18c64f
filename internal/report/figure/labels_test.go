package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A label is a text of a figure with the corners of its bounding box, in points. The height of the
// box is that of digits and capitals, 0.7 of the font size.
type label struct {
	text    string
	corners [4]vg.Point
}

// labels returns the texts of a figure and where they are drawn, from the recorded drawing
// commands.
func labels(f *Figure) []label {
	var rec recorder.Canvas
	rec.KeepCaller = false
	f.draw(draw.NewCanvas(&rec, f.width, f.height))
	type affine [6]float64 // a to f of x' = a x + c y + e, y' = b x + d y + f
	now, stack := affine{1, 0, 0, 1, 0, 0}, []affine{}
	apply := func(m affine) {
		n := now
		now = affine{n[0]*m[0] + n[2]*m[1], n[1]*m[0] + n[3]*m[1], n[0]*m[2] + n[2]*m[3], n[1]*m[2] + n[3]*m[3],
			n[0]*m[4] + n[2]*m[5] + n[4], n[1]*m[4] + n[3]*m[5] + n[5]}
	}
	var out []label
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.Push:
			stack = append(stack, now)
		case *recorder.Pop:
			now, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case *recorder.Translate:
			apply(affine{1, 0, 0, 1, float64(a.Point.X), float64(a.Point.Y)})
		case *recorder.Scale:
			apply(affine{a.X, 0, 0, a.Y, 0, 0})
		case *recorder.Rotate:
			sin, cos := math.Sincos(a.Angle)
			apply(affine{cos, sin, -sin, cos, 0, 0})
		case *recorder.FillString:
			w, h := f.style.textWidth(a.Font, a.String), a.Size*0.7
			l := label{text: a.String}
			for i, by := range []vg.Point{{}, {X: w}, {X: w, Y: h}, {Y: h}} {
				x, y := float64(a.Point.X+by.X), float64(a.Point.Y+by.Y)
				l.corners[i] = vg.Point{X: vg.Length(now[0]*x + now[2]*y + now[4]), Y: vg.Length(now[1]*x + now[3]*y + now[5])}
			}
			out = append(out, l)
		}
	}
	return out
}

// overlaps reports whether two boxes overlap, by the separating axis theorem: they do not if their
// projections onto the normal of some side are disjoint.
func (l label) overlaps(o label) bool {
	for _, of := range []label{l, o} {
		for i := range 2 {
			a, b := of.corners[i], of.corners[i+1]
			normal := vg.Point{X: a.Y - b.Y, Y: b.X - a.X}
			project := func(q label) (low, high vg.Length) {
				low, high = vg.Inch*1e6, -vg.Inch*1e6
				for _, c := range q.corners {
					v := c.X*normal.X + c.Y*normal.Y
					low, high = min(low, v), max(high, v)
				}
				return low, high
			}
			low1, high1 := project(l)
			low2, high2 := project(o)
			if high1 <= low2 || high2 <= low1 {
				return false
			}
		}
	}
	return true
}

// checkLabels reports texts that overlap or leave the figure.
func checkLabels(t *testing.T, f *Figure) {
	t.Helper()
	all := labels(f)
	if len(all) < 3 {
		t.Errorf("the figure has %d texts, want at least 3", len(all))
	}
	const slack = 0.3 // points
	for i, l := range all {
		for _, c := range l.corners {
			if c.X < -slack || c.X > f.width+slack || c.Y < -slack || c.Y > f.height+slack {
				t.Errorf("%q leaves the figure", l.text)
				break
			}
		}
		for _, o := range all[:i] {
			if l.overlaps(o) {
				t.Errorf("%q and %q overlap", o.text, l.text)
			}
		}
	}
}

// manyModels returns the rows (one score each) of models whose names begin with name: the loss of
// accuracy (drop) under two transformations, of which rotate has a list of values and "" for their
// mean, and the equivariance of layers, a statistic of the measure seis.
func manyModels(models, layers int, name string) []scores.Row {
	var rows []scores.Row
	for m := range models {
		model := fmt.Sprintf("%s%02d", name, m)
		add := func(r scores.Row) {
			r.Model, r.Data, r.N = model, "cifar10", 100
			r.Low, r.High = r.Value-0.03, r.Value+0.03
			rows = append(rows, r)
		}
		for _, transform := range []string{"rotate", "elastic-transform-of-the-image"} {
			for _, p := range []string{"-40", "-20", "0", "20", "40", ""} {
				if transform == "rotate" || p == "" {
					add(scores.Row{Depth: scores.NoDepth, Transform: transform, Parameter: p, Measure: "accuracy", Statistic: "drop",
						Value: 0.3 - 0.011*float64(m*(1+len(p)%2)), Null: math.NaN()})
				}
			}
			for l := range layers {
				add(scores.Row{Layer: fmt.Sprintf("/features/block%d/conv%d/Conv_output_0", l/3, l), Depth: 3 * l, Transform: transform, Measure: "seis",
					Statistic: "equivariance", Value: 1 - 0.8*float64(l)/float64(layers), Null: 0.1})
			}
		}
	}
	return rows
}

// TestLabelsKeepApart draws every kind of chart at one and at two columns and looks for texts that
// overlap or leave the figure. study, in figure_test.go, returns the rows of two models with five
// layers each.
func TestLabelsKeepApart(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][]scores.Row{
		"small": study(), "three models": manyModels(3, 20, "resnet-"), "long names": manyModels(3, 12, "a-very-long-name-of-a-model-trained-on-"+strings.Repeat("x", 30)), "40 models": manyModels(40, 6, "m"),
		"300 layers": manyModels(1, 300, "deep"), "one layer": manyModels(2, 1, "flat"),
	} {
		for _, chart := range []Chart{Depth, Parameter, Bars, Heat, Distribution} {
			for columns := 1; columns <= 2; columns++ {
				t.Run(fmt.Sprintf("%s, %s, %d", name, chart, columns), func(t *testing.T) {
					t.Parallel()
					o := Options{Measures: reporttest.Measures(), Chart: chart, Columns: columns}
					f, err := Draw(rows, o)
					if err != nil && strings.Contains(err.Error(), "select fewer") { // a panel for each layer is too many
						few := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Depth > 9 })
						f, err = Draw(few, o)
					}
					if err != nil {
						t.Fatal(err)
					}
					checkLabels(t, f)
				})
			}
		}
	}
	var charts []report.Scatter
	for k := range 2 {
		var points []correlation.Point
		for i := range 12 {
			x, y := 0.4+0.03*float64(i%5), 0.9+0.004*float64(i*(k+1)%7)
			points = append(points, correlation.Point{Label: fmt.Sprint("network-", i), X: x, Y: y, N: 1000,
				XInterval: correlation.Interval{Low: x - 0.01, High: x + 0.01}, YInterval: correlation.Interval{Low: y - 0.01, High: y + 0.01}})
		}
		charts = append(charts, report.NewScatter(points, nil, fmt.Sprint("data ", k), "effective invariance under rotation", "accuracy", k == 0))
	}
	for columns := 1; columns <= 2; columns++ {
		f, err := DrawScatter(charts, Options{Columns: columns, Labels: true})
		if err != nil {
			t.Fatal(err)
		}
		checkLabels(t, f)
	}
}

// TestManyModels draws 40 models: one in colour, by default the first, and the others in grey.
func TestManyModels(t *testing.T) {
	t.Parallel()
	rows := manyModels(40, 6, "m")
	for _, chart := range []Chart{Depth, Parameter, Distribution} {
		// The keys are the models to highlight, the values the one that the figure names. svg draws
		// the figure as SVG, and textsOf returns the texts in it.
		for asked, want := range map[string]string{"": "m00", "m17": "m17"} {
			parts := textsOf(t, svg(t, rows, Options{Measures: reporttest.Measures(), Chart: chart, Highlight: asked}))
			if !slices.Contains(parts, want) || !slices.Contains(parts, "39 others") {
				t.Errorf("%s has the texts %q, want %q and 39 others among them", chart, parts, want)
			}
		}
	}
	if got := textsOf(t, svg(t, rows, Options{Measures: reporttest.Measures(), Chart: Bars})); !slices.Contains(got, "m00") || !slices.Contains(got, "m39") {
		t.Errorf("the bars have the texts %q, want m00 and m39 among them", got)
	}
	_, err := Draw(rows, Options{Measures: reporttest.Measures(), Chart: Depth, Highlight: "m99"})
	if err == nil || !strings.Contains(err.Error(), `no "m99" to highlight`) {
		t.Errorf("highlighting an unknown model: error %v, want one with %q", err, `no "m99" to highlight`)
	}
}

// TestPanelsOfOneModel checks that the panels of a model follow each other, also if the layers of
// the models lie at different depths.
func TestPanelsOfOneModel(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for m, model := range []string{"b", "a"} {
		for l := range 4 {
			for _, transform := range []string{"t", "s"} {
				rows = append(rows, scores.Row{Model: model, Layer: fmt.Sprint("l", l), Depth: 5*l - 3*m*(l%2), Data: "d", Transform: transform, Measure: "seis",
					Statistic: "equivariance", Value: 0.5, Low: math.NaN(), High: math.NaN(), Null: math.NaN()})
			}
		}
	}
	slices.SortStableFunc(rows, func(x, y scores.Row) int { return x.Depth - y.Depth })
	f, err := Draw(rows, Options{Measures: reporttest.Measures(), Chart: Heat, Down: "layer", Across: "statistic"})
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, p := range f.panels {
		titles = append(titles, p.Title.Text)
	}
	if want := []string{"b, t", "b, s", "a, t", "a, s"}; !slices.Equal(titles, want) {
		t.Errorf("panels %q, want %q", titles, want)
	}
	// Three panels would fit side by side, but then the two of a model would not share a row.
	if f, err = Draw(rows, Options{Measures: reporttest.Measures(), Chart: Heat, Down: "layer", Across: "statistic", Width: 190}); err != nil || f.across != 2 {
		t.Errorf("%d panels side by side, want 2: %v", f.across, err)
	}
}

// TestParameterAxes checks that the axis of each panel states the parameter of its transformation.
func TestParameterAxes(t *testing.T) {
	t.Parallel()
	rows := manyModels(2, 0, "m")
	for _, r := range manyModels(2, 0, "m") {
		if r.Parameter != "" {
			r.Transform = "blur"
			rows = append(rows, r)
		}
	}
	got := textsOf(t, svg(t, rows, Options{Measures: reporttest.Measures(), Chart: Parameter, Parameters: map[string]string{"rotate": "angle (degrees)"}}))
	if !slices.Contains(got, "angle (degrees)") || !slices.Contains(got, "value of blur") {
		t.Errorf("the axes are among %q, want angle (degrees) and value of blur", got)
	}
}

// TestSignedValues checks that values of both signs have colours on two sides of 0.
func TestSignedValues(t *testing.T) {
	t.Parallel()
	f, err := Draw(manyModels(40, 1, "m"), Options{Measures: reporttest.Measures(), Chart: Heat, Down: "model", Across: "transform"})
	if err != nil {
		t.Fatal(err)
	}
	if s := f.scale; !s.Signed || s.Low != -s.High {
		t.Errorf("the scale of values of both signs is %+v, want a signed one that is symmetric about 0", s)
	}
}

// TestTitlesAreNotCut checks that a long title of an axis or of a colour bar is broken into lines,
// not shortened, and that names of columns that fit are not rotated.
func TestTitlesAreNotCut(t *testing.T) {
	t.Parallel()
	// Scores under rotate, which manyModels returns, and under tilt, which study returns.
	rows := append(study(), manyModels(3, 0, "model-")...)
	const title = "sigma (standard deviation, in the image's range of 0 to 1)"
	f, err := Draw(rows, Options{Measures: reporttest.Measures(), Chart: Parameter, Parameters: map[string]string{"rotate": title, "tilt": title}, Columns: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.panels {
		if got, want := strings.ReplaceAll(p.X.Label.Text, "\n", " "), title; got != want {
			t.Errorf("the title of the axis is %q, want %q", got, want)
		}
	}
	checkLabels(t, f)
	f, err = Draw(study()[:6], Options{Measures: reporttest.Measures(), Chart: Heat, Down: "model", Across: "transform", Columns: 2})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, l := range labels(f) {
		texts = append(texts, l.text)
		if l.text == "tilt" && l.corners[0].Y != l.corners[1].Y {
			t.Error("the name of a column that fits is rotated")
		}
	}
	if !slices.Contains(texts, "effective invariance") {
		t.Errorf("the title of the colour bar is cut: %q", texts)
	}
}
