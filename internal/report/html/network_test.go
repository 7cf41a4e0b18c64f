package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// withNetworks sets the graph of each model of a run to the generated graph of f: a first
// operation, blocks of three measured layers, and two last operations.
func withNetworks(run Run, f reporttest.FakeRun) Run {
	for i := range run.Record.Models {
		run.Record.Models[i].Graph = f.Graph()
	}
	return run
}

// networkSection is a JavaScript expression for the section that draws the graphs of the models,
// the networks.
const networkSection = `document.getElementById("network")`

// boxes is a JavaScript expression for the number of boxes of the first network: one for each block
// of operations and, in an unfolded block of several, one for each operation.
const boxes = networkSection + `.querySelector("[role=tree]")?.querySelectorAll("[role=treeitem]").length`

// TestNetwork unfolds a block and chooses a layer by mouse and by keyboard. The markers in charts
// over depth and the chart of the representation space (projections of samples' representations)
// must then show that layer. studyOfThree is a generated run of three models with 20 layers, and
// threeModels its FakeRun, whose first transformation is quarter, rotations by multiples of 90
// degrees; withSamples adds predictions and representations of single samples. seisSection is the
// section of SEIS, a measure of layers. complete is the condition that all charts are drawn, and
// quiet checks that the browser reported no problem and that the page requested no other file.
func TestNetwork(t *testing.T) {
	t.Parallel()
	v := openAt(t, withNetworks(withSamples(studyOfThree(), threeModels, false), threeModels), 1440, 900, "")
	if n := evaluate[int](t, v, networkSection+`.querySelectorAll("[role=tree]").length`); n != 3 {
		t.Errorf("%d networks, want 3", n)
	}
	// The first operation, 7 blocks of at most three of the 20 layers, and the last two operations
	// together. A full block has 7 operations: two for each layer and an addition.
	const groups = 1 + 7 + 1
	if n := evaluate[int](t, v, boxes); n != groups {
		t.Fatalf("%d boxes, want %d", n, groups)
	}
	if got, want := v.texts(t, "#network .sentences")[0], "50 operations in 9 blocks, 20 of them measured: from "; !strings.HasPrefix(got, want) {
		t.Errorf("the text is %q, want %q at its start", got, want)
	}
	second := networkSection + `.querySelectorAll("[role=treeitem]")[1]`
	if got, want := evaluate[string](t, v, second+`.getAttribute("aria-label")`), "7 operations, equivariance 0."; !strings.Contains(got, want) {
		t.Errorf("the second box is %q, want %q in it", got, want)
	}
	markers := seisSection + `.querySelectorAll("figure:first-child .mark-rule.role-mark line:not([opacity='0'])").length`
	if n := evaluate[int](t, v, markers); n != 0 {
		t.Errorf("%d markers before a layer is chosen, want none", n)
	}
	click := func(e string) chromedp.Action[chromedp.Void] {
		return script(e + `.dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	}
	v.do(t, click(second), until(fmt.Sprintf("%s === %d", boxes, groups+7)), until(markers+" === 1"))
	if got, want := evaluate[string](t, v, "new URLSearchParams(location.hash.slice(1)).get('layer.name') + ' ' + new URLSearchParams(location.hash.slice(1)).get('network.open')"), "/layer1/layer1.1/relu1/Relu_output_0 resnet20/1"; got != want {
		t.Errorf("the address holds %q, want %q", got, want)
	}
	if n := evaluate[int](t, v, networkSection+`.querySelectorAll("[aria-selected=true]").length`); n != 2 { // the block, and the layer in it
		t.Errorf("%d boxes are selected, want 2", n)
	}

	// Two steps to the right and Enter: the first measured layer of the block.
	v.do(t, script(second+`.focus()`), chromedp.SendKeys(chromedp.CSS("#network [role=treeitem][tabindex='0']"), kb.ArrowRight+kb.ArrowRight+"\r"),
		until(`location.hash.includes("layer.name=%2Flayer1%2Flayer1.0%2Frelu1%2F")`))
	if got, want := evaluate[string](t, v, "document.activeElement.getAttribute('aria-label')"), "Relu, "; !strings.HasPrefix(got, want) {
		t.Errorf("the focus is on %q, want %q at its start", got, want)
	}
	v.do(t, script(`document.querySelector("#space summary").click()`), until(complete))
	if got, want := v.texts(t, "#space figcaption span:first-child")[0], "/layer1/layer1.0/relu1/Relu:"; !strings.Contains(got, want) {
		t.Errorf("the representation space shows %q, want %q in it", got, want)
	}
	v.do(t, press("network-score", "distance.cosine"), until(complete))
	if got, want := v.texts(t, "#network figcaption span:first-child")[0], "resnet20: cosine distance under quarter"; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	v.do(t, click(second), until(fmt.Sprintf("%s === %d", boxes, groups)))
	v.quiet(t)
}

// TestLayersAreChosen chooses a layer in three ways: by a click on a point of a curve on the first
// screen, on one in the section of the measure SEIS, and on a layer's name in a sentence. All
// charts over depth must mark it. A second click on a point unmarks it.
func TestLayersAreChosen(t *testing.T) {
	t.Parallel()
	v := openAt(t, withNetworks(studyOfThree(), threeModels), 1440, 900, "")
	chosen := `new URLSearchParams(location.hash.slice(1)).get("layer.name")`
	// markers returns the condition that a chart of the first screen and one of SEIS have n
	// markers.
	markers := func(n int) string {
		return fmt.Sprintf(`[".curves figure:first-child", "section.measure[data-measure='3'] figure:first-child"].every(s => document.querySelectorAll(s + " .mark-rule.role-mark line:not([opacity='0'])").length === %d)`, n)
	}
	for _, chart := range []string{".curves figure:first-child", "section.measure[data-measure='3'] figure:first-child"} {
		// The chart library Vega assigns a click to the nearest point. The click is sent to
		// whichever element of the chart is on top at the first point.
		click := script(fmt.Sprintf(`{ const p = document.querySelector("%s .mark-symbol path"), b = p.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;
			for (const type of ["mousemove", "pointerdown", "mousedown", "click"]) document.elementFromPoint(x, y).dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: x, clientY: y})) }`, chart))
		scroll := script(fmt.Sprintf(`document.querySelector("%s").scrollIntoView({block: "center", behavior: "instant"})`, chart))
		v.do(t, scroll, until(complete), click, until(chosen+` === "/layer1/layer1.0/relu1/Relu_output_0"`), until(markers(1)), until(complete))
		if n := evaluate[int](t, v, networkSection+`.querySelectorAll("[aria-selected=true]").length`); n == 0 {
			t.Errorf("no box of the networks is selected after a click in %s", chart)
		}
		v.do(t, scroll, until(complete), click, until(chosen+" === null"), until(markers(0)), until(complete))
	}
	nameButton := `document.querySelector(".findings button.name")`
	layer := evaluate[string](t, v, nameButton+".title")
	v.do(t, script(nameButton+".click()"), until(fmt.Sprintf("%s === %q && %s.getAttribute('aria-pressed') === 'true'", chosen, layer, nameButton)), until(markers(1)))
	v.quiet(t)
}

// TestNetworkIsSaved saves a network as SVG and PNG, and shows its data.
func TestNetworkIsSaved(t *testing.T) {
	t.Parallel()
	run := Run{}
	run.Rows, run.Record = attackedRun() // its names contain markup or scripts
	v := openAt(t, withNetworks(run, attacked), 1280, 900, "")
	// What would be downloaded is kept in window.saved.
	v.do(t, script(`window.saved = []; HTMLAnchorElement.prototype.click = () => {}; URL.createObjectURL = b => { b.text().then(t => window.saved.push(t)); return "#" }`))
	for i := range 2 {
		v.do(t, script(fmt.Sprintf(`%s.querySelectorAll(".actions button")[%d].click()`, networkSection, i)), until(fmt.Sprintf("window.saved.length === %d", i+1)))
	}
	text := evaluate[string](t, v, "window.saved[0]")
	if !strings.HasPrefix(text, "<svg") || strings.Contains(text, "var(--") || strings.Contains(text, "tabindex") || strings.Count(text, "<rect") < 4 {
		t.Errorf("the SVG begins with %.200s, want 4 rectangles or more, and no variables or tabindex", text)
	}
	if n := evaluate[int](t, v, "window.saved[1].length"); n < 1000 {
		t.Errorf("the PNG, read as text, has %d characters, want 1000 or more", n)
	}
	v.do(t, script(networkSection+`.querySelector("button[aria-expanded]").click()`))
	if rows := v.texts(t, "#network tbody tr"); len(rows) == 0 || !strings.HasPrefix(rows[0], "1") {
		t.Errorf("the table of data has the rows %q, want the first with the number 1", rows)
	}
}

// TestLargeNetwork draws a network of 300 layers and unfolds one of its 102 groups, then all: 100
// blocks and the two ends. They have 703 operations: 2 for each layer, 1 more for each block, and 3
// at the ends.
func TestLargeNetwork(t *testing.T) {
	t.Parallel()
	large := reporttest.FakeRun{Models: 1, Layers: 300, Transforms: 1}
	run := Run{}
	run.Rows, run.Record = large.Rows()
	v := openAt(t, withNetworks(run, large), 1440, 900, "")
	const groups, operations = 102, 703 // the first group has one operation, which is not drawn again
	if n := evaluate[int](t, v, boxes); n != groups {
		t.Errorf("%d groups, want %d", n, groups)
	}
	v.do(t, script(networkSection+`.querySelectorAll("[role=treeitem]")[50].dispatchEvent(new MouseEvent("click", {bubbles: true}))`),
		until(fmt.Sprintf("%s === %d", boxes, groups+7)))
	open := ""
	for g := range groups {
		open += fmt.Sprintf("&network.open=resnet20/%d", g)
	}
	v.do(t, script(fmt.Sprintf("location.hash = %q", "#"+open[1:])), until(fmt.Sprintf("%s === %d", boxes, groups+operations-1)))
	if wide := evaluate[int](t, v, "document.documentElement.scrollWidth"); wide > 1440 {
		t.Errorf("the page is %d pixels wide, and the window 1440", wide)
	}
	v.quiet(t)
}

// mapSheet returns a drawing of feature maps of a model for a sample x and a transformation T: a
// tile (a small image) each for x and T(x), and four tiles for each of three channels of two
// layers f: f(x), f(T(x)), T(f(x)), and the difference of the last two.
func mapSheet(of reporttest.FakeRun, model, transform int) report.MapSheet {
	const side = 64
	s := report.MapSheet{MapSheet: scores.MapSheet{Model: of.Name("model", model), Data: of.Name("data", 0), Transform: of.Name("transform", transform), Parameter: "90",
		Measure: "seis", Sample: 4, Name: of.Name("sample", 4), HasInput: true, Tile: scores.SheetTile{Width: side, Height: side, Right: side, Down: side}}}
	for l := range 2 {
		layer := scores.MapLayer{Layer: of.Name("layer", l), Depth: 3 + 5*l, Height: 8, Width: 8}
		for c := range 3 {
			layer.Channels = append(layer.Channels, scores.MapChannel{Channel: 5 * c, Low: -1, High: 2, Error: 0.125 * float32(c+1)})
		}
		s.Layers = append(s.Layers, layer)
	}
	s.Type, s.Image = "image/png", reporttest.Checkerboard(4*side, 7*side)
	return s
}

// mapsPart is a JavaScript expression for the first measure's fold-out part with feature maps.
const mapsPart = `document.querySelector("details.maps")`

// TestFeatureMaps unfolds the feature maps of a measure. They must be those of the chosen
// transformation and, after a layer is chosen, of that layer.
func TestFeatureMaps(t *testing.T) {
	t.Parallel()
	run := withNetworks(studyOfThree(), threeModels)
	for model := range 3 {
		for transform := range 2 {
			run.MapSheets = append(run.MapSheets, mapSheet(threeModels, model, transform))
		}
	}
	v := openAt(t, run, 1440, 900, "")
	images := mapsPart + `.querySelectorAll("image").length`
	if n := evaluate[int](t, v, images); n != 0 {
		t.Errorf("%d images before the maps are unfolded, want none", n)
	}
	const each = 2 + 2*3*4 // tiles of one mapSheet: x, T(x), and two layers with three channels of four
	v.do(t, script(mapsPart+`.querySelector("summary").click()`), until(fmt.Sprintf("%s === %d && %s", images, 3*each, complete)),
		until(fmt.Sprintf(`%s.querySelectorAll("image[href^='data:image/png']").length === %d`, mapsPart, 3*each)))
	if got, want := v.texts(t, ".maps figcaption span:first-child")[0], "resnet20 under quarter 90"; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	v.do(t, press("maps", "gray 90"), until(mapsPart+`.querySelector("figcaption span").textContent === "resnet20 under gray 90" && `+complete))
	if !evaluate[bool](t, v, `location.hash.includes("seis.maps=gray+90")`) {
		t.Error("the address lacks the transformation of the maps")
	}
	// Of the model with the chosen layer the maps of that layer alone are left.
	v.do(t, script(networkSection+`.querySelectorAll("[role=treeitem]")[1].dispatchEvent(new MouseEvent("click", {bubbles: true}))`),
		script(networkSection+`.querySelectorAll("[role=treeitem]")[3].dispatchEvent(new MouseEvent("click", {bubbles: true}))`),
		until(fmt.Sprintf("%s === %d", images, 2+3*4+2*each)))
	v.do(t, script(mapsPart+`.querySelector("button[aria-expanded]").click()`))
	// The cells of the last row: size 8 × 8, channel 10, lowest -1, highest 2, error 0.375.
	if rows := v.texts(t, ".maps tbody tr"); len(rows) != 3 || !strings.HasSuffix(rows[2], "8 × 810-1.0002.0000.375") {
		t.Errorf("the table of data has the rows %q, want three, the last of channel 10 with the error 0.375", rows)
	}
	v.quiet(t)
}

// TestNetworkViews shows networks and feature maps on a screen of a phone's size, in dark colours
// and in print, with ordinary names and with names that contain markup or scripts (hostile).
// axe-core, which readAxe reads, checks accessibility.
func TestNetworkViews(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	run := Run{}
	run.Rows, run.Record = attackedRun()
	for name, c := range map[string]struct {
		run Run
		of  reporttest.FakeRun
	}{"ordinary": {studyOfThree(), threeModels}, "hostile": {run, attacked}} {
		t.Run(name, func(t *testing.T) {
			run := withNetworks(c.run, c.of)
			run.MapSheets = []report.MapSheet{mapSheet(c.of, 0, 0)}
			v := openAt(t, run, 390, 844, "#seis.maps=x")
			v.do(t, media("screen", "dark"), script(networkSection+`.querySelectorAll("[role=treeitem]")[1].dispatchEvent(new MouseEvent("click", {bubbles: true}))`), until(complete))
			if wide := evaluate[int](t, v, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("the page is %d pixels wide, and the window 390", wide)
			}
			if n := evaluate[int](t, v, `document.querySelectorAll("script:not([type]), iframe, svg[onload], img[onerror], [onmouseover]").length`); n != 1 {
				t.Errorf("%d elements can run code, want 1, the script of the page", n)
			}
			v.do(t, script(string(axe)))
			v.accessible(t)
			v.do(t, media("print", "light"))
			if n := evaluate[float64](t, v, `Math.max(...[...document.querySelectorAll("#network svg")].map(s => s.getBoundingClientRect().right)) - innerWidth`); n > 0 {
				t.Errorf("in print a network is %.0f pixels too wide", n)
			}
			v.quiet(t)
		})
	}
}
