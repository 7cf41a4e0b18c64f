package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// probeRun is a study of what probes read: three models, two layers, three factors and two
// transformations with ranges of their own.
func probeRun() Run {
	run := Run{Record: scores.Record{Study: "probes", Measures: reporttest.Measures()}}
	quarters := map[string][]string{"hue-shift": {"-0.375", "-0.125", "0.125", "0.375"}, "brightness-shift": {"-1.5", "-0.5", "0.5", "1.5"}}
	for m, model := range []string{"small", "middle", "large"} {
		for l, layer := range []string{"stage1", "penultimate"} {
			at := scores.Row{Model: model, Layer: layer, Depth: 5 + 4*l, Data: "photos", N: 300}
			add := func(r scores.Row, measure, statistic string, value, null float64) {
				r.Measure, r.Statistic, r.Value, r.Low, r.High, r.Null = measure, statistic, value, value-0.05, value+0.05, null
				run.Rows = append(run.Rows, r)
			}
			for k, probe := range []string{"slp", "mlp"} {
				at.Variant = probe
				for f, factor := range []string{"hue", "saturation", "value"} {
					r := at
					r.Factor = factor
					add(r, "informativeness", "r2", 0.4+0.1*float64(m)+0.02*float64(f)+0.15*float64(k)-0.1*float64(l), -0.03)
					add(r, "informativeness", "rmse", 0.2-0.02*float64(m)-0.06*float64(k), 0.25)
					for transform, parts := range quarters {
						r.Transform = transform
						for q, part := range append(slices.Clone(parts), "") {
							r.Parameter = part
							add(r, "disentanglement", "rmse-change", 0.2-0.1*float64(q)+0.01*float64(m+f), 0.01)
						}
						r.Parameter = ""
					}
				}
				for _, transform := range []string{"hue-shift", "brightness-shift"} {
					r := at
					r.Transform = transform
					add(r, "parameter-equivariance", "r2", 0.3+0.2*float64(k)+0.1*float64(m), 0)
					add(r, "representation-equivariance", "cosine", 0.8+0.05*float64(k)+0.01*float64(m), 0.75)
				}
			}
			at.Variant, at.Transform = "", "jpeg"
			for q, part := range []string{"10", "30", "50", "70", "90", ""} {
				at.Parameter = part
				add(at, "invariance", "cosine", 0.7+0.04*float64(q)-0.02*float64(m), 0.4)
			}
		}
	}
	slices.SortStableFunc(run.Rows, func(a, b scores.Row) int { return strings.Compare(b.Transform, a.Transform) })
	return run
}

// probeSection is that of a measure of a run of probes.
func probeSection(name string) string {
	at := slices.Index([]string{"informativeness", "parameter-equivariance", "representation-equivariance", "invariance", "disentanglement"}, name)
	return fmt.Sprintf("section.measure[data-measure='%d'] ", at)
}

// TestProbeCharts looks for the charts of a study of probes: what probes read as bars for each
// model, a panel for each factor or transformation, a colour for each probe; invariance against the
// parameter; what is disturbed as a matrix and as curves over the quarters of the ranges.
func TestProbeCharts(t *testing.T) {
	t.Parallel()
	v := openAt(t, probeRun(), 1280, 900, "")
	for _, c := range []struct {
		measure, titles, legend string
		marks                   int // of the first chart
		text                    string
	}{
		{"informativeness", "hue,saturation,value", "slp,mlp,a tick alone: the null, what chance gives", 6,
			"It is highest for mlp, large (0.650) and lowest for slp, small (0.300). mlp is above the other in 3 of 3, in 3 of them by more than their intervals."},
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
		marks := "symbol"
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
	for _, want := range []string{"– –,–,+,+ +", "hueunder brightness-shift"} {
		if !strings.Contains(labels, want) {
			t.Errorf("the matrix has the labels %q, want %q among them", labels, want)
		}
	}
	v.quiet(t)
}

// TestProbeChartsOtherwise chooses lines, charts and a factor other than the defaults.
func TestProbeChartsOtherwise(t *testing.T) {
	t.Parallel()
	v := openAt(t, probeRun(), 1280, 900, "#informativeness.lines=layer&informativeness.by=model&disentanglement.chart=parameter&parameter-equivariance.layer=stage1")
	titles := func(measure string) string {
		return strings.Join(v.texts(t, probeSection(measure)+"figcaption > span:first-child"), ",")
	}
	if got := titles("informativeness"); got != "hue,saturation,value" {
		t.Errorf("layers by models: %q, want %q", got, "hue,saturation,value")
	}
	if lines := v.texts(t, probeSection("informativeness")+"figure:first-child .role-axis-label text"); !slices.Contains(lines, "stage1") || !slices.Contains(lines, "penultimate") {
		t.Errorf("layers by models have the lines %q, want stage1 and penultimate among them", lines)
	}
	if got := titles("disentanglement"); got != "hue under hue-shift,saturation under hue-shift,value under hue-shift,hue under brightness-shift,saturation under brightness-shift,value under brightness-shift" {
		t.Errorf("the curves over quarters have the titles %q, want one for each of 3 factors under 2 transformations", got)
	}
	if said := v.texts(t, probeSection("parameter-equivariance")+".sentences"); len(said) != 2 {
		t.Errorf("the sections have the sentences %q, want two", said)
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

// values are those of the inputs that a selector finds.
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
	if narrow := evaluate[int](t, v, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(p => p.getBoundingClientRect().width < 20).length`, probeSection("disentanglement")+"figure .mark-rect.role-mark path")); narrow > 0 {
		t.Errorf("%d tiles are narrower than 20 pixels", narrow)
	}
	v.quiet(t)
}
