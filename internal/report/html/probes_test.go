package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// probeRun returns a run of measures that train probes: single-layer (slp) and multi-layer
// perceptrons (mlp) that predict factors from the representations of three models at two layers. A
// parameter of disentanglement is the middle of a quarter of the range of its transformation.
func probeRun() Run {
	run := Run{Record: scores.Record{Study: "probes", Measures: reporttest.Measures()}}
	quarters := map[string][]string{"hue-shift": {"-0.375", "-0.125", "0.125", "0.375"}, "brightness-shift": {"-1.5", "-0.5", "0.5", "1.5"}}
	for m, model := range []string{"small", "middle", "large"} {
		for l, layer := range []string{"stage1", "penultimate"} {
			base := scores.Row{Model: model, Layer: layer, Depth: 5 + 4*l, Data: "photos", N: 300}
			add := func(r scores.Row, measure, statistic string, value, null float64) {
				r.Measure, r.Statistic, r.Value, r.Low, r.High, r.Null = measure, statistic, value, value-0.05, value+0.05, null
				run.Rows = append(run.Rows, r)
			}
			for k, probe := range []string{"slp", "mlp"} {
				base.Variant = probe
				for f, factor := range []string{"hue", "saturation", "value"} {
					r := base
					r.Factor = factor
					add(r, "informativeness", "r2", 0.4+0.1*float64(m)+0.02*float64(f)+0.15*float64(k)-0.1*float64(l), -0.03)
					add(r, "informativeness", "rmse", 0.2-0.02*float64(m)-0.06*float64(k), 0.25)
					for transform, middles := range quarters {
						r.Transform = transform
						for q, middle := range append(slices.Clone(middles), "") { // "": the whole range
							r.Parameter = middle
							add(r, "disentanglement", "rmse-change", 0.2-0.1*float64(q)+0.01*float64(m+f), 0.01)
						}
						r.Parameter = ""
					}
				}
				for _, transform := range []string{"hue-shift", "brightness-shift"} {
					r := base
					r.Transform = transform
					add(r, "parameter-equivariance", "r2", 0.3+0.2*float64(k)+0.1*float64(m), 0)
					add(r, "representation-equivariance", "cosine", 0.8+0.05*float64(k)+0.01*float64(m), 0.75)
				}
			}
			base.Variant, base.Transform = "", "jpeg"
			for q, quality := range []string{"10", "30", "50", "70", "90", ""} {
				base.Parameter = quality
				add(base, "invariance", "cosine", 0.7+0.04*float64(q)-0.02*float64(m), 0.4)
			}
		}
	}
	slices.SortStableFunc(run.Rows, func(a, b scores.Row) int { return strings.Compare(b.Transform, a.Transform) })
	return run
}

// probeSection returns the CSS selector of the section of a measure on the page of probeRun.
func probeSection(name string) string {
	index := slices.Index([]string{"informativeness", "parameter-equivariance", "representation-equivariance", "invariance", "disentanglement"}, name)
	return fmt.Sprintf("section.measure[data-measure='%d'] ", index)
}

// TestProbeCharts checks the charts of a run of probes. Scores of probes are bars for each model,
// with a panel for each factor or transformation and a colour for each probe. Invariance is a curve
// over the parameter. Disentanglement is a matrix of factors by quarters of the ranges. At the end
// of each test, quiet checks that the page reported no problem and requested nothing but itself.
func TestProbeCharts(t *testing.T) {
	t.Parallel()
	v := openAt(t, probeRun(), 1280, 900, "")
	for _, c := range []struct {
		measure, titles, legend string
		marks                   int // drawn points or tiles of the first chart
		text                    string
	}{
		{"informativeness", "hue,saturation,value", "slp,mlp,a tick alone: the null, what chance gives", 6,
			"It is highest for mlp, large (0.650) and lowest for slp, small (0.300). mlp is above the other in 3 of 3, in 3 of them by more than chance."},
		{"parameter-equivariance", "hue-shift,brightness-shift", "slp,mlp,a tick alone: the null, what chance gives", 6, "mlp is above the other in 3 of 3"},
		{"representation-equivariance", "hue-shift,brightness-shift", "slp,mlp,a tick alone: the null, what chance gives", 6, "Higher: better preserved. It is highest for mlp, large"},
		{"invariance", "jpeg", "small,middle,large,dotted: the null, what chance gives", 15, "of small under jpeg rises from 0.700 at 10 to 0.860 at 90"},
		{"disentanglement", "small,middle,large", "", 24,
			"It is highest for value under hue-shift at -0.375 (0.220) and lowest for hue under hue-shift at 0.375 (-0.100). In 18 of 24 cells the interval excludes the null."},
	} {
		section := probeSection(c.measure)
		if got, want := strings.Join(v.texts(t, section+"figcaption > span:first-child"), ","), c.titles; got != want {
			t.Errorf("%s has the charts %q, want %q", c.measure, got, want)
		}
		if got, want := strings.Join(v.texts(t, section+".legend li"), ","), c.legend; got != want {
			t.Errorf("%s has the legend %q, want %q", c.measure, got, want)
		}
		marks := "symbol" // kinds of mark in Vega
		if c.measure == "disentanglement" {
			marks = "rect"
		}
		if got := evaluate[int](t, v, fmt.Sprintf("document.querySelectorAll(%q).length", section+"figure:first-child .mark-"+marks+".role-mark path")); got != c.marks {
			t.Errorf("%s has %d marks in its first chart, want %d", c.measure, got, c.marks)
		}
		if said := v.texts(t, section+".reading, "+section+".sentences"); len(said) < 2 || !strings.Contains(said[0]+" "+said[1], c.text) {
			t.Errorf("%s has the sentences %q, want %q in the first two", c.measure, said, c.text)
		}
	}
	labels := strings.Join(v.texts(t, probeSection("disentanglement")+"figure:first-child .role-axis-label text"), ",")
	// The quarters of a range are named – –, –, + and + + from low to high.
	for _, want := range []string{"– –,–,+,+ +", "hueunder brightness-shift"} {
		if !strings.Contains(labels, want) {
			t.Errorf("the matrix has the labels %q, want %q among them", labels, want)
		}
	}
	v.quiet(t)
}

// TestProbeChartsOfOtherChoices checks the charts after lines (what the rows of a bar chart stand
// for, such as layers), kinds of chart, a layer and a factor other than the defaults are chosen, by
// the fragment of the address and on the page.
func TestProbeChartsOfOtherChoices(t *testing.T) {
	t.Parallel()
	v := openAt(t, probeRun(), 1280, 900, "#informativeness.lines=layer&informativeness.by=model&disentanglement.chart=parameter&parameter-equivariance.layer=stage1")
	titles := func(measure string) string {
		return strings.Join(v.texts(t, probeSection(measure)+"figcaption > span:first-child"), ",")
	}
	if got := titles("informativeness"); got != "hue,saturation,value" {
		t.Errorf("informativeness with a line for each layer has the charts %q, want %q", got, "hue,saturation,value")
	}
	if lines := v.texts(t, probeSection("informativeness")+"figure:first-child .role-axis-label text"); !slices.Contains(lines, "stage1") || !slices.Contains(lines, "penultimate") {
		t.Errorf("informativeness has the axis labels %q, want stage1 and penultimate among them", lines)
	}
	if got := titles("disentanglement"); got != "hue under hue-shift,saturation under hue-shift,value under hue-shift,hue under brightness-shift,saturation under brightness-shift,value under brightness-shift" {
		t.Errorf("the curves over quarters have the titles %q, want one for each of 3 factors under 2 transformations", got)
	}
	if said := v.texts(t, probeSection("parameter-equivariance")+".sentences"); len(said) != 2 {
		t.Errorf("parameter-equivariance has the sentences %q, want two", said)
	}
	v.do(t, script(fmt.Sprintf(`{ const s = document.querySelector(%q); s.value = "hue"; s.dispatchEvent(new Event("change")) }`, probeSection("disentanglement")+"select[name=factor]")), until(complete))
	if got := titles("disentanglement"); strings.Count(got, "hue under") != 2 || strings.Contains(got, "value") {
		t.Errorf("the curves of hue have the titles %q, want one for each of 2 transformations", got)
	}
	for _, m := range []string{"informativeness", "disentanglement"} {
		for _, kind := range v.values(t, probeSection(m)+".segments:first-child input") {
			v.do(t, script(fmt.Sprintf("document.querySelector(%q).click()", probeSection(m)+".segments input[value="+kind+"]")), until(complete))
			if n := evaluate[int](t, v, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(f => f.querySelectorAll(".role-mark path").length === 0 || !f.querySelector(".sentences").textContent).length`, probeSection(m)+"figure")); n > 0 {
				t.Errorf("%s, %s: %d figures without marks or a sentence", m, kind, n)
			}
		}
	}
	v.quiet(t)
}

// values returns the values of the input elements that a selector finds.
func (v *visit) values(t *testing.T, selector string) []string {
	t.Helper()
	return evaluate[[]string](t, v, fmt.Sprintf("[...document.querySelectorAll(%q)].map(i => i.value)", selector))
}

// TestProbeChartsOnAPhone checks that the charts fit a narrow window.
func TestProbeChartsOnAPhone(t *testing.T) {
	t.Parallel()
	v := openAt(t, probeRun(), 390, 844, "")
	if wider := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); wider > 0 {
		t.Errorf("the page is %d pixels wider than the window", wider)
	}
	widths := evaluate[[]float64](t, v, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(p => p.getBoundingClientRect().width)`, probeSection("disentanglement")+"figure .mark-rect.role-mark path"))
	if len(widths) == 0 || slices.Min(widths) < 20 {
		t.Errorf("the tiles are %v pixels wide, want at least one tile, and at least 20 pixels for each", widths)
	}
	v.quiet(t)
}
