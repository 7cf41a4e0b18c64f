package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// firingRun returns a run with the measure firing, the firing rates of single units, of one model.
// A unit is one channel at one position. Its invariance is its firing rate while an input that it
// responds to changes (local-rate), divided by that over all inputs. The units were measured along
// two factors of the data set gratings (images of stripes), phase and orientation, and on the data
// set clips (videos), which has no factor. Null is the score by chance. A tuning curve has a unit's
// responses along a factor.
func firingRun(t *testing.T, layers ...scores.LayerRecord) Run {
	t.Helper()
	run := Run{Record: scores.Record{Study: "gratings", Measures: reporttest.Measures(), Models: []scores.ModelRecord{{Name: "net", Layers: layers}}}}
	add := func(l scores.LayerRecord, data, factor string, value float64) {
		for _, statistic := range []string{"invariance", "local-rate"} {
			run.Rows = append(run.Rows, scores.Row{Study: "gratings", Model: "net", Layer: l.Name, Depth: l.Depth, Data: data, Measure: "firing", Statistic: statistic,
				Factor: factor, Value: value, Low: value - 1, High: value + 1, Null: 5, N: 40})
		}
		run.Curves = append(run.Curves, report.TuningCurve{Model: "net", Layer: l.Name, Data: data, Measure: "firing", Factor: factor, Unit: 3, Threshold: 0.5, Sign: 1,
			Amounts: []float64{-1, 0, 1}, Values: []float64{0.2, 1, 0.1}})
	}
	units := func(each func(report.Subject, float64)) error {
		for i, l := range layers {
			for factor, data := range map[string]string{"phase": "gratings", "orientation": "gratings", "": "clips"} {
				for unit := range 40 {
					each(report.Subject{Of: "unit", Model: "net", Layer: l.Name, Data: data, Factor: factor, Measure: "firing", Statistic: "invariance"}, float64(20*i+unit))
				}
			}
		}
		return nil
	}
	for i, l := range layers {
		add(l, "gratings", "phase", 30+float64(i))
		add(l, "gratings", "orientation", 10+float64(i))
		add(l, "clips", "", 60-float64(i))
	}
	var err error
	if run.Distributions, _, err = report.Distribute(units); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestOneFactorAtATime checks that each kind of chart draws only the chosen factor, and that data
// without factors have a chart and no choice of factors. complete is the condition that all charts
// are drawn.
func TestOneFactorAtATime(t *testing.T) {
	t.Parallel()
	layers := []scores.LayerRecord{{Name: "first", Depth: 1}, {Name: "second", Depth: 2}, {Name: "third", Depth: 3}}
	v := openAt(t, firingRun(t, layers...), 1280, 900, "")
	for _, kind := range []string{"depth", "distribution", "units", "tuning"} {
		v.do(t, script(fmt.Sprintf(`document.querySelector("input[value=%s]").click()`, kind)), until(complete))
		for _, factor := range []string{"phase", "orientation"} {
			v.do(t, script(fmt.Sprintf(`(() => { const s = document.querySelector("select[name=factor]"); s.value = %q; s.dispatchEvent(new Event("change")) })()`, factor)), until(complete))
			titles := v.texts(t, "figcaption span:first-child")
			if len(titles) != 1 || !strings.Contains(titles[0], factor) {
				t.Errorf("the kind %s of %s has the charts %q, want one with the factor in its title", kind, factor, titles)
			}
			if axes := v.texts(t, "section.measure .role-axis-title"); kind == "tuning" && !slices.Contains(axes, "change of "+factor) {
				t.Errorf("the axes of tuning curves along the %s are %q, want %q among them", factor, axes, "change of "+factor)
			}
		}
		v.do(t, script(`(() => { const s = document.querySelector("select[name=data]"); s.value = "clips"; s.dispatchEvent(new Event("change")) })()`), until(complete))
		if n := evaluate[int](t, v, `document.querySelectorAll("main figure .role-mark path").length`); n == 0 || len(v.texts(t, "select[name=factor]")) != 0 {
			t.Errorf("the kind %s of clips, which have no factor: %d marks and a choice of factors %q, want marks and no choice", kind, n, v.texts(t, "select[name=factor]"))
		}
		v.do(t, script(`(() => { const s = document.querySelector("select[name=data]"); s.value = "gratings"; s.dispatchEvent(new Event("change")) })()`), until(complete))
	}
	// The unit of a tuning curve reaches its threshold at one of three steps of the factor.
	sentences := v.texts(t, "main figure .sentences")
	if len(sentences) != 1 || !strings.Contains(sentences[0], "33 % of the steps") {
		t.Errorf("the tuning curves have the sentences %q, want one with 33 %% of the steps", sentences)
	}
	// The histogram is of the third layer, whose 40 units have the values 40 to 79.
	v.do(t, script(`document.querySelector("input[value=distribution]").click()`), until(complete))
	if sentences = v.texts(t, "main figure .sentences"); len(sentences) != 1 || !strings.Contains(sentences[0], "net has its mean at 59.50, and half of its units lie between") || strings.Contains(sentences[0], "most") {
		t.Errorf("the histogram has the sentences %q, want one on the mean 59.50 of net and the middle half of its units", sentences)
	}
	v.quiet(t)
}

// TestFactorsInTheTable checks that the table has a column of factors, empty in the rows of data
// without one, and that a table of scores by class has a column of classes.
func TestFactorsInTheTable(t *testing.T) {
	t.Parallel()
	v := openAt(t, firingRun(t, scores.LayerRecord{Name: "first", Depth: 1}, scores.LayerRecord{Name: "second", Depth: 2}), 1280, 900, "")
	v.do(t, unfolded...) // opens the tables
	headers := v.texts(t, ".scores thead th")
	column := slices.IndexFunc(headers, func(h string) bool { return strings.HasPrefix(h, "factor") })
	if column < 0 || slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "class") }) {
		t.Fatalf("the table has the columns %q, want one of factors and none of classes", headers)
	}
	count := map[string]int{}
	for _, cell := range v.texts(t, fmt.Sprintf(".scores tbody td:nth-child(%d)", column+1)) {
		count[cell]++
	}
	// Two layers with two statistics each.
	if count["phase"] != 4 || count["orientation"] != 4 || count[""] != 4 {
		t.Errorf("rows by factor: %v, want 4 of phase, of orientation and of no factor", count)
	}
	v.quiet(t)

	// A generated run with scores of three classes. Section 0 of its page is that of accuracy.
	rows, rec := reporttest.FakeRun{Models: 1, Layers: 1, Transforms: 1, Classes: 3}.Rows()
	v = openAt(t, Run{Rows: rows, Record: rec}, 1280, 900, "#accuracy.every=1") // every class too
	v.do(t, unfolded...)
	if headers = v.texts(t, "section[data-measure='0'] .scores thead th"); !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "class") }) {
		t.Errorf("a table of scores by class has the columns %q, want one of classes", headers)
	}
}

// TestLayersOfEqualDepth checks that layers of a branching network, several at each depth, are
// drawn as points without lines, and of the deepest layers only one is drawn as bars.
func TestLayersOfEqualDepth(t *testing.T) {
	t.Parallel()
	var layers []scores.LayerRecord
	for depth := range 3 {
		for branch := range 4 {
			layers = append(layers, scores.LayerRecord{Name: fmt.Sprintf("branch%d/layer%d", branch, depth), Depth: depth})
		}
	}
	v := openAt(t, firingRun(t, layers...), 1280, 900, "")
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-line").length`); n != 0 {
		t.Errorf("%d lines join layers of equal depth, want none", n)
	}
	if sentences := v.texts(t, "main figure .sentences"); len(sentences) != 1 || !strings.Contains(sentences[0], "is highest at branch3/layer2 (41) and lowest at branch0/layer0 (30)") {
		t.Errorf("the chart over depth has the sentences %q, want one on branch3/layer2 (41) and branch0/layer0 (30)", sentences)
	}
	if explanation := v.texts(t, "main .reading"); !strings.HasPrefix(explanation[0], "A point for each layer, a tick for what chance gives.") {
		t.Errorf("the chart over depth is explained by %q, want points and ticks", explanation)
	}
	v.do(t, script(`document.querySelector("input[value=bars]").click()`), until(complete))
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .layer_0_marks path").length`); n != 2 {
		t.Errorf("%d bars of the deepest layer, want 2, one for each factor", n)
	}
	v.quiet(t)
}

// TestNothingToDraw checks that a page whose filters leave nothing to draw says so and is marked as
// complete, for which openAt waits. UsualRun is a generated run of the models resnet20 and
// resnet56.
func TestNothingToDraw(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	v := openAt(t, Run{Rows: rows, Record: rec}, 1280, 900, "#layers=nolayer")
	if n := evaluate[int](t, v, `document.querySelectorAll("section.measure .none").length`); n == 0 {
		t.Error("no section says that the filters hide all")
	}
	v = openAt(t, Run{Rows: rows, Record: rec}, 1280, 900, "#hide.model=resnet20&hide.model=resnet56")
	if n := evaluate[int](t, v, `[...document.querySelectorAll("section.measure")].filter(s => !s.querySelector(".none")).length`); n != 0 {
		t.Errorf("%d sections do not say that the filters hide all", n)
	}
	v.quiet(t)
}
