package html

import (
	"fmt"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestEachKindOfChart selects every kind of chart of every measure in turn, and checks that each
// figure has drawn marks, a title and a sentence. The classes mark-... and role-... are those that
// Vega gives to the elements of a chart; the class segments is of a row of buttons.
// runWithAllCharts returns a run of 6 models. quiet, at the end of each test, checks that the
// browser reported no problem and that the page requested no other file.
func TestEachKindOfChart(t *testing.T) {
	t.Parallel()
	v := openAt(t, runWithAllCharts(t), 1280, 900, "")
	seen := map[string]bool{}
	for m := range evaluate[int](t, v, `document.querySelectorAll("section.measure").length`) {
		section := fmt.Sprintf("section.measure[data-measure='%d'] ", m)
		kinds := evaluate[[]string](t, v, fmt.Sprintf("[...document.querySelectorAll(%q)].map(i => i.value)", section+".segments:first-child input"))
		for _, kind := range kinds {
			seen[kind] = true
			v.do(t, script(fmt.Sprintf("document.querySelector(%q)?.click()", section+".segments input[value="+kind+"]")),
				until("document.documentElement.dataset.complete === 'true'"))
			figures := evaluate[int](t, v, fmt.Sprintf("document.querySelectorAll(%q).length", section+"figure"))
			correct := evaluate[int](t, v, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(f => f.querySelector(".sentences").textContent.length > 40 && f.querySelector("figcaption span").textContent && f.querySelectorAll(".role-mark path, .role-mark text").length > 2).length`, section+"figure"))
			if figures == 0 || correct != figures {
				t.Errorf("measure %d, %s: %d of %d figures have marks, a title and a sentence", m, kind, correct, figures)
			}
		}
	}
	for _, kind := range []string{"depth", "bars", "parameter", "heat", "distribution"} {
		if !seen[kind] {
			t.Errorf("no measure has a chart of kind %s", kind)
		}
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("#relations .mark-symbol path").length`); n != 6 {
		t.Errorf("the plots of scores against accuracy have %d points, want 6, one for each model", n)
	}
	v.do(t, script(`document.querySelector("#pictures img").scrollIntoView()`), until(`document.querySelector("#pictures img").naturalWidth === 64`))
	if n := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
		t.Errorf("the page is %d pixels wider than the window", n)
	}
	v.quiet(t)
}

// TestFactorsByTransformations checks that the first chart of disentanglement is a matrix of
// factors (properties of samples) by transformations, with colours that diverge at 0. The score is
// how much the error of a network that predicts a factor from a layer grows under a transformation.
func TestFactorsByTransformations(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i, factor := range []string{"hue", "speed", "size"} {
		for j, transform := range []string{"shift", "stretch"} {
			rows = append(rows, scores.Row{Model: "m", Layer: "pooled", Depth: 9, Data: "d", Transform: transform, Measure: "disentanglement", Statistic: "rmse-change",
				Factor: factor, Value: 0.1*float64(i) - 0.15*float64(j), Low: nan, High: nan, Null: nan, N: 50})
		}
	}
	v := open(t, rows, scores.Record{Study: "s", Measures: reporttest.Measures()}, 1280, 900)
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-rect.role-mark path").length`); n != 6 {
		t.Errorf("%d tiles, want 6", n)
	}
	if said := v.texts(t, "main figure .sentences"); len(said) != 1 || said[0] != "It is highest for size under shift (0.200) and lowest for hue under stretch (-0.150)." {
		t.Errorf("the matrix has the sentences %q, want one: highest for size under shift, lowest for hue under stretch", said)
	}
	if said := v.texts(t, "main .reading"); len(said) != 1 || said[0] != "Orange is above 0, blue below." {
		t.Errorf("the text on how to read the matrix is %q, want one on orange and blue", said)
	}
	if kinds, want := v.texts(t, ".segments:first-child label"), []string{"Heat map", "Bars"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
	v.quiet(t)
}

// TestCurveOverConfidence checks that the chart of scores against confidence shows only those of
// the factor confidence (of detected boxes with at least that confidence), not those of classes or
// of all samples. The null is the score by chance.
func TestCurveOverConfidence(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for _, transform := range []string{"turn", "shift"} {
		for i, factor := range []string{"", "class=cat", "class=owl", "confidence=0.3", "confidence=0.5", "confidence=0.7"} {
			rows = append(rows, scores.Row{Model: "net", Data: "d", Transform: transform, Measure: "dense-equivariance", Statistic: "matched", Factor: factor,
				Value: 0.4 + 0.1*float64(i), Low: nan, High: nan, Null: 0.1, N: 50})
		}
	}
	v := open(t, rows, scores.Record{Study: "s"}, 1280, 900)
	v.do(t, script(`document.querySelector(".segments input[value=confidence]").click()`), until("document.documentElement.dataset.complete === 'true'"))
	if n := evaluate[int](t, v, `document.querySelectorAll("section.measure figure").length`); n != 2 {
		t.Errorf("%d panels, want one for each transformation", n)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("section.measure figure .mark-symbol.role-mark path").length`); n != 6 {
		t.Errorf("%d points, want 6: 3 values of confidence in 2 panels", n)
	}
	if axis, want := evaluate[string](t, v, `document.querySelector("section.measure figure .role-axis-title text").textContent`), "least confidence"; axis != want {
		t.Errorf("the axis is called %q, want %q", axis, want)
	}
	v.quiet(t)
}

// TestHeatMapOfOneTile checks that a heat map is drawn for a statistic of only one factor and one
// transformation, too.
func TestHeatMapOfOneTile(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	add := func(statistic, factor, transform string) {
		rows = append(rows, scores.Row{Model: "m", Layer: "pooled", Depth: 9, Data: "d", Transform: transform, Measure: "disentanglement", Statistic: statistic,
			Factor: factor, Value: 0.5, Low: nan, High: nan, Null: nan, N: 50})
	}
	add("rmse-change", "level", "noise")
	for _, factor := range []string{"label", "speaker"} {
		add("accuracy-change", factor, "noise")
		add("accuracy-change", factor, "room")
	}
	v := open(t, rows, scores.Record{Study: "s", Measures: reporttest.Measures()}, 1280, 900)
	for _, statistic := range []string{"accuracy-change", "rmse-change"} {
		v.do(t, script(fmt.Sprintf(`document.querySelector("input[value=heat]")?.click(); document.querySelector("input[value=%s]").click()`, statistic)), until("document.documentElement.dataset.complete === 'true'"))
		if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-rect.role-mark path").length`); n == 0 {
			t.Errorf("no tile of %s", statistic)
		}
	}
	v.quiet(t)
}
