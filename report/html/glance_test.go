package html

// The first screen of a report shows, in the element .glance, a matrix of a score of each model
// under each transformation (.matrix), curves of statistics over depth (.curves), and a strip of
// sample images (.strip). The column of the matrix with the focus or the pointer selects the
// transformation of the curves and the strip.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// studyOfThree is a run of three models with contact sheets (images that show samples side by side)
// of two transformations. A sheet has a row for each of three samples, and a column for the sample
// as it is and for each of two values of the transformation's parameter; its images are 32 pixels
// wide and high, with gaps of 4 pixels around them. For two of the models the first sheet has
// scores of its samples.
func studyOfThree() Run {
	rows, rec := reporttest.FakeRun{Models: 3, Layers: 20, Transforms: 4}.Rows()
	run := Run{Rows: rows, Record: rec}
	for _, name := range []string{"quarter", "gray"} {
		run.Images = append(run.Images, report.Image{
			ImageText: report.ImageText{Title: name, Sheet: &scores.Sheet{Data: "cifar10", Transform: name, Parameters: []string{"90", "180"}, Samples: []int{4, 1, 7}, Gap: 4}},
			Width:     3*36 + 4, Height: 3*36 + 4, PNG: reporttest.Checkerboard(3*36+4, 3*36+4),
		})
	}
	for _, model := range rec.Models[:2] {
		for _, sample := range []int{4, 1, 7} {
			run.SheetValues = append(run.SheetValues, report.SheetValue{Model: model.Name, Data: "cifar10", Transform: "quarter", Parameter: "180",
				Measure: "effective-invariance", Statistic: "ei", Sample: sample, Value: 0.25 * float64(sample%4)},
				report.SheetValue{Model: model.Name, Data: "cifar10", Transform: "quarter", Parameter: "180", Measure: "accuracy", Statistic: "correct-moved", Sample: sample, Value: float64(sample % 2)})
		}
	}
	return run
}

// TestFirstScreen checks that the matrix, the curves and the images are in view without scrolling,
// in the window of a computer and of a phone. At the end, as in other tests, v.quiet checks that
// the browser reported no error and requested no other file.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			v := openAt(t, studyOfThree(), size[0], size[1], "")
			if n := evaluate[int](t, v, `document.querySelectorAll(".matrix tbody button.cell").length`); n != 3*4 {
				t.Errorf("%d cells, want %d, one for each model and transformation", n, 3*4)
			}
			if n := evaluate[int](t, v, `document.querySelectorAll(".curves svg").length`); n != 4 {
				t.Errorf("%d charts of curves, want 4, two statistics of each of SEIS and distance", n)
			}
			if n := evaluate[int](t, v, `document.querySelectorAll(".strip canvas").length`); n != 6 {
				t.Errorf("%d images, want 6: three samples as they are and transformed", n)
			}
			for _, part := range []string{".findings", ".matrix", ".strip", ".curves figure .chart"} {
				if bottom := evaluate[float64](t, v, fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().bottom", part)); bottom > float64(size[1]) {
					t.Errorf("%s ends at %.0f pixels, below the first screen", part, bottom)
				}
			}
			// The samples 4, 1 and 7 of two models; the models classify sample 4 wrongly.
			if got := strings.Join(v.texts(t, ".strip .value"), " "); got != "✗ 0.00 0.25 0.75 ✗ 0.00 0.25 0.75" {
				t.Errorf("the images have the values %q, want %q", got, "✗ 0.00 0.25 0.75 ✗ 0.00 0.25 0.75")
			}
			if key := v.texts(t, ".strip .key"); len(key) != 1 || !strings.Contains(key[0], "✗ not its label") {
				t.Errorf("the key of the images is %q, want one that explains ✗", key)
			}
			// The key of the score says what the ends of its range mean. The axes give depth in per cent,
			// as the sentences (.findings) do.
			if got := v.texts(t, ".scorebox .key"); len(got) != 2 || got[0] != "1 if every prediction keeps its class with probability 1, 0 if every class changes." {
				t.Errorf("the matrix has the keys %q, want two, of which the first says what 1 and 0 mean", got)
			}
			if ends := evaluate[bool](t, v, `[...document.querySelectorAll(".curves svg")].every(s => [...s.querySelectorAll(".role-axis-label text")].some(e => e.textContent === "100%"))`); !ends {
				t.Error("an axis of the curves is not in per cent of depth")
			}
			if n := evaluate[int](t, v, `document.querySelectorAll(".strip .value.chance").length`); n != 2 {
				t.Errorf("%d values are hatched as the worst, want 2, those of sample 4", n)
			}
			if n := evaluate[int](t, v, `document.querySelectorAll(".findings li").length`); n < 1 || n > 3 {
				t.Errorf("%d sentences, want 1 to 3", n)
			}
			if text := strings.Join(v.texts(t, ".findings"), ""); strings.Contains(text, "/layer") || strings.Contains(text, "_output_0") {
				t.Errorf("the sentences have names of tensors: %s", text)
			}
			baselines := evaluate[[]float64](t, v, `[...document.querySelectorAll(".glance h3, .curves figure:nth-child(-n+2) button")].map(e => {
				const end = document.createElement("span"); end.style.display = "inline-block"; e.append(end);
				const y = end.getBoundingClientRect().bottom; end.remove(); return y })`)
			if size[0] > 1000 && (len(baselines) != 3 || slices.Max(baselines)-slices.Min(baselines) > 1) {
				t.Errorf("the titles of three neighbouring panels end at %.1f pixels, want the same height", baselines)
			}
			v.quiet(t)
		})
	}
}

// TestMatrixFocus moves the focus over the matrix by the keyboard: the curves and the images
// follow. It opens the section of a measure by a cell.
func TestMatrixFocus(t *testing.T) {
	t.Parallel()
	v := openAt(t, studyOfThree(), 1440, 900, "")
	// titles is the condition that all four curves are drawn, for the transformation name.
	titles := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".curves figcaption")].every(c => c.textContent.endsWith("under %s")) && document.querySelectorAll(".curves .drawn").length === 4`, name)
	}
	if !evaluate[bool](t, v, titles("quarter")) {
		t.Errorf("at first the curves are %q, want all under quarter", v.texts(t, ".curves figcaption"))
	}
	cell := func(column int) string {
		return fmt.Sprintf(`document.querySelector(".matrix tbody tr:nth-child(2) td:nth-child(%d) button")`, column)
	}
	// The curves follow the focus, and the strip shows the images of that transformation.
	v.do(t, script(cell(3)+".focus()"), until(titles("gray")))
	if what, want := v.texts(t, ".strip .what"), []string{"as it is", "gray 180"}; !slices.Equal(what, want) {
		t.Errorf("the strip shows %q, want %q", what, want)
	}
	v.do(t, script(cell(4)+".focus()"), until(titles("jitter")))
	if !evaluate[bool](t, v, `document.querySelector(".strip").hidden`) {
		t.Error("a strip is shown of a transformation without images")
	}
	v.do(t, chromedp.SendKeys(chromedp.CSS(".matrix tbody tr:nth-child(2) td:nth-child(3) button"), "\r"),
		until(`document.activeElement.id === "measure-1-title"`))
	if hash := evaluate[string](t, v, "location.hash"); !strings.Contains(hash, "at=measure-1") || !strings.Contains(hash, "glance.at=gray") {
		t.Errorf("the address is %q, want the section measure-1 and the column gray in it", hash)
	}
	// Another score; then a model and a transformation are hidden, which leaves 2 x 3 cells.
	v.do(t, script(`{ const s = document.querySelector("select[name=glance-score]"); s.value = "distance"; s.dispatchEvent(new Event("change")) }`),
		until(`document.querySelector(".glance h3").textContent === "cosine distance, at the last layer"`))
	v.do(t, script(`location.hash = "#hide.model=resnet20&hide.transform=gray"`), until(`document.querySelectorAll("button.cell").length === 6 && `+complete))
	v.quiet(t)
}

// TestOrderOfModels sorts the models of the matrix by the selected column, and then selects another
// column.
func TestOrderOfModels(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 6, Layers: 2, Transforms: 2}.Rows()
	value := map[string]float64{"quarter": 0.9, "gray": 0.1}
	for i := range rows {
		if r := &rows[i]; r.Statistic == "ei" && value[r.Transform] > 0 && r.Parameter == "" {
			model := slices.IndexFunc(rec.Models, func(m scores.ModelRecord) bool { return m.Name == r.Model })
			r.Value = value[r.Transform] + map[string]float64{"quarter": -0.1, "gray": 0.1}[r.Transform]*float64(model)
		}
	}
	v := openAt(t, Run{Rows: rows, Record: rec}, 1440, 900, "")
	names := func() []string { return v.texts(t, ".matrix tbody th") }
	study := names()
	v.do(t, script(`{ const s = document.querySelector("select[name=glance-order]"); s.value = "best"; s.dispatchEvent(new Event("change")) }`), until("location.hash.includes('glance.order=best')"))
	if got := names(); !slices.Equal(got, study) {
		t.Errorf("under quarter the order is %q, want %q", got, study)
	}
	v.do(t, script(`document.querySelector(".matrix th[data-column=gray] button").click()`), until("location.hash.includes('glance.at=gray')"))
	slices.Reverse(study)
	if got := names(); !slices.Equal(got, study) {
		t.Errorf("under gray the order is %q, want %q", got, study)
	}
	if on := evaluate[string](t, v, "document.activeElement.textContent"); on != "gray" {
		t.Errorf("the focus is on %q, want %q", on, "gray")
	}
	v.quiet(t)
}

// TestLength checks that the page of a study of three models is not too long when it is opened.
func TestLength(t *testing.T) {
	t.Parallel()
	v := openAt(t, withNetworks(withSamples(studyOfThree(), threeModels, true), threeModels), 1440, 900, "")
	if n := evaluate[int](t, v, "document.documentElement.scrollHeight"); n > 6000 {
		t.Errorf("the page is %d pixels long, want at most 6000", n)
	}
	// The list of contents stays in view.
	v.do(t, script("window.scrollTo({top: 3000, behavior: 'instant'})"), until("window.scrollY > 2000"))
	if top := evaluate[float64](t, v, `document.querySelector("nav.contents").getBoundingClientRect().top`); top < 0 || top > 100 {
		t.Errorf("the list of contents is at %.0f pixels, want it within the first 100 of the window", top)
	}
	v.quiet(t)
}

// TestManyModels checks that one model is highlighted, and the others are grey, if there are more
// models than colours.
func TestManyModels(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 40, Layers: 4, Transforms: 2}.Rows()
	v := open(t, rows, rec, 1440, 900)
	strokes := func() []string {
		return evaluate[[]string](t, v, `[...`+seisSection+`.querySelectorAll("figure:first-child .mark-line path")].map(p => p.getAttribute("stroke"))`)
	}
	count := func(all []string, colour string) (n int) {
		for _, s := range all {
			if s == colour {
				n++
			}
		}
		return n
	}
	// Each model has a line for the statistic and one for its null, the value at chance.
	if all := strokes(); count(all, "var(--series-0)") != 2 || count(all, "var(--control)") != 2*39 {
		t.Errorf("of %d lines %d are highlighted and %d grey, want 2 and %d", len(all), count(all, "var(--series-0)"), count(all, "var(--control)"), 2*39)
	}
	v.do(t, script(seisSection+`.querySelectorAll(".legend button")[7].click()`), until("location.hash.includes('highlight.model=') && "+complete))
	if n := evaluate[int](t, v, seisSection+`.querySelectorAll(".legend button[aria-pressed=true]").length`); n != 1 {
		t.Errorf("%d models are highlighted, want 1", n)
	}
	v.quiet(t)
}

// TestParametersOfSeveralTransformations checks that the list of parameter values names the
// transformation of each.
func TestParametersOfSeveralTransformations(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 2, Transforms: 2}.Rows()
	for i := range rows {
		if rows[i].Transform == "gray" {
			second := rows[i]
			rows[i].Parameter, second.Parameter = "0.5", "1"
			rows = append(rows, second)
		}
	}
	rec.Transforms = []scores.TransformRecord{{Name: "quarter", Parameter: "angle (degrees)"}, {Name: "gray", Parameter: "amount"}}
	v := openAt(t, Run{Rows: rows, Record: rec}, 1440, 900, "#effective-invariance.chart=parameter")
	options := v.texts(t, "section[data-measure='3'] select[name=parameter] option")
	if want := []string{"mean", "quarter 90", "quarter 180", "quarter 270", "gray 0.5", "gray 1"}; !slices.Equal(options, want) {
		t.Errorf("the values are %q, want %q", options, want)
	}
	if titles := v.texts(t, "section[data-measure='1'] .role-axis-title"); !slices.Contains(titles, "angle (degrees)") || !slices.Contains(titles, "amount") || !slices.Contains(titles, "effective invariance") {
		t.Errorf("the axes are %q, want angle (degrees), amount and effective invariance among them", titles)
	}
	// Transformations stand in the order of the study.
	if titles := v.texts(t, "section[data-measure='3'] figcaption > span:first-child"); len(titles) == 0 || !strings.HasPrefix(titles[0], "quarter") {
		t.Errorf("the panels are %q, want that of quarter first", titles)
	}
	v.quiet(t)
}

// TestPrintingWaits prints before all charts are drawn: the page draws them first.
func TestPrintingWaits(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 6, Layers: 40, Transforms: 4}.Rows()
	v := openUntil(t, Run{Rows: rows, Record: rec}, 1280, 900, "", "document.documentElement.dataset.drawn === 'true'")
	v.do(t, script(`window.print = () => { document.documentElement.dataset.printed = document.querySelectorAll("main .chart:not(.drawn)").length };
		window.dispatchEvent(new KeyboardEvent("keydown", { key: "p", ctrlKey: true, cancelable: true }))`),
		until("document.documentElement.dataset.printed !== undefined || "+complete))
	if n := evaluate[string](t, v, `document.documentElement.dataset.printed ?? "0"`); n != "0" {
		t.Errorf("printed with %s charts missing, want none", n)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("main .chart:not(.drawn)").length`); n != 0 {
		t.Errorf("%d charts are missing when the page says that it is complete", n)
	}
	v.quiet(t)
}

// TestTablesFit checks that tables with long layer names and warnings are not wider than their
// section, so that their last column is in view.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 6, Transforms: 2}.Rows()
	for i := range rows {
		rows[i].Warning = "8 of 64 units are constant on the reference inputs and are left out of the score of the layer"
	}
	v := open(t, rows, rec, 1440, 900)
	v.do(t, unfolded...)
	if n := evaluate[int](t, v, `Math.max(...[...document.querySelectorAll("section.measure .score-table .scroll")].map(e => e.scrollWidth - e.clientWidth))`); n > 0 {
		t.Errorf("a table is %d pixels wider than its place", n)
	}
	v.quiet(t)
}

// TestTwoQuestionsOfSimilarity checks that the similarity of x and T(x) is drawn as curves, and
// that of two models as heat maps, in two sections.
func TestTwoQuestionsOfSimilarity(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 5, PairedLayers: 5}.Rows()
	for m := range 2 {
		for l := range 5 {
			rows = append(rows, scores.Row{Study: rec.Study, Model: rec.Models[m].Name, Data: "cifar10", Transform: "quarter", Layer: rec.Models[m].Layers[l].Name, Depth: 3 + 5*l,
				Measure: "similarity", Statistic: "linear-cka", Value: 0.9 - 0.1*float64(l), Low: nan, High: nan, Null: 0.1, N: 2000})
		}
	}
	v := open(t, rows, rec, 1440, 900)
	if titles := v.texts(t, "section.measure h2"); len(titles) != 2 || !strings.HasSuffix(titles[0], "x against T(x)") || !strings.HasSuffix(titles[1], "between models") {
		t.Fatalf("the sections are %q, want x against T(x) and between models", titles)
	}
	of := func(section int, selector string) int {
		return evaluate[int](t, v, fmt.Sprintf(`document.querySelectorAll("section[data-measure='%d'] %s").length`, section, selector))
	}
	if of(0, "figure") != 1 || of(0, ".mark-line path") == 0 || of(0, ".mark-rect path") != 0 {
		t.Errorf("x against T(x) has %d charts, %d lines and %d tiles, want 1, some and none", of(0, "figure"), of(0, ".mark-line path"), of(0, ".mark-rect path"))
	}
	if of(1, "figure") != 2 || of(1, ".mark-rect.role-mark path") != 2*25 {
		t.Errorf("between models there are %d charts and %d tiles, want 2 and %d", of(1, "figure"), of(1, ".mark-rect.role-mark path"), 2*25)
	}
	v.quiet(t)
}
