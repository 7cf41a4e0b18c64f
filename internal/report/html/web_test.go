package html

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
)

// complete is the condition that all charts of the page are drawn (JavaScript).
const complete = "document.documentElement.dataset.complete === 'true'"

// call runs a command of the Chrome DevTools Protocol on the page.
func call[P any](command func(context.Context, P) error, params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		return chromedp.Void{}, command(ctx, params)
	}
}

// media emulates a medium, "screen" or "print", and the reader's preference, "light" or "dark".
func media(medium, scheme string) chromedp.Action[chromedp.Void] {
	return call(func(ctx context.Context, p emulation.SetEmulatedMediaParams) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, p)
		return err
	}, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// JavaScript expressions for the sections of SEIS (a measure of layers with the statistics
// equivariance, invariance and rank) and of effective invariance (ei: do predictions stay the
// same?) in the page of a run that FakeRun generates. Sections are numbered from 0 in the order of
// the page.
const (
	seisSection = `document.querySelector("section.measure[data-measure='3']")`
	eiSection   = `document.querySelector("section.measure[data-measure='1']")`
)

// TestFilters sets each filter of the filter bar, and checks that charts, tables and the page's
// address change accordingly. quiet, here and below, checks that the browser reported no problem
// and that the page requested nothing but itself.
func TestFilters(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 3, Layers: 12, Transforms: 3, Data: 2}.Rows()
	v := open(t, rows, rec, 1280, 900)
	// A condition below counts 648 rows of SEIS: 3 models, 12 layers, 3 transformations, 2 data
	// sets and 3 statistics.
	lines := seisSection + `.querySelectorAll("figure:first-child .mark-line path").length`
	// filtered hides a value by a filter, waits for the condition, and shows the value again.
	filtered := func(filter, value, condition string) {
		t.Helper()
		box := fmt.Sprintf(`[...document.querySelectorAll("details[data-filter=%s] input")].find(i => i.value === %q)`, filter, value)
		v.do(t, script(box+".click()"), until(condition+" && "+complete))
		if hash := evaluate[string](t, v, "location.hash"); !strings.Contains(hash, "hide."+filter+"="+value) {
			t.Errorf("the address is %q, want the hidden value in it", hash)
		}
		v.do(t, script(box+".click()"), until(fmt.Sprintf("!(%s) && %s", condition, complete)))
	}
	tableOf := func(section, word string) string {
		return section + fmt.Sprintf(`.querySelector("tbody").textContent.includes(%q)`, word)
	}
	v.do(t, unfolded...) // opens the tables
	before := evaluate[int](t, v, lines)
	if before == 0 {
		t.Fatal("the first chart has no lines")
	}
	filtered("model", "resnet20", "!"+tableOf(eiSection, "resnet20"))
	filtered("transform", "quarter", "!"+tableOf(eiSection, "quarter"))
	filtered("data", "cifar10", `document.querySelectorAll("details[data-filter=data] .tally")[0].textContent === "1 of 2" && !`+seisSection+`.querySelector(".pager span").textContent.includes("648")`)
	filtered("statistic", "effective-invariance.ei", eiSection+".hidden")
	v.do(t, script(`{ const i = document.querySelector(".filters input[type=search]"); i.value = "layer2"; i.dispatchEvent(new Event("input")) }`),
		until("location.hash.includes('layers=layer2') && "+complete))
	if got := v.texts(t, "section.measure[data-measure='3'] .score-table tbody"); len(got) != 1 || strings.Contains(got[0], "layer1/") || !strings.Contains(got[0], "layer2/") {
		t.Errorf("the table has the rows %q, want those of layer2 and not of layer1", got)
	}
	v.do(t, script(`[...document.querySelectorAll(".filters button")].at(-1).click()`), until("location.hash === '' && "+complete))
	if after := evaluate[int](t, v, lines); after != before {
		t.Errorf("%d lines after all filters were removed, want %d, as before", after, before)
	}
	v.quiet(t)
}

// TestLegend hides and shows a model by the legend of one measure, which applies to all measures.
func TestLegend(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 2}.Rows()
	v := open(t, rows, rec, 1280, 900)
	points := func(section string) int {
		return evaluate[int](t, v, section+`.querySelectorAll(".mark-symbol path").length`)
	}
	seis, ei := points(seisSection), points(eiSection)
	button := seisSection + `.querySelector(".legend button")`
	v.do(t, script(button+".click()"), until(button+`.getAttribute("aria-pressed") === "false" && `+complete))
	if points(seisSection) != seis/2 || points(eiSection) != ei/2 {
		t.Errorf("%d of %d and %d of %d points are left after one of two models is hidden, want half", points(seisSection), seis, points(eiSection), ei)
	}
	if focused := evaluate[string](t, v, "document.activeElement.textContent"); focused != "resnet20" {
		t.Errorf("the focus is on %q, want %q", focused, "resnet20")
	}
	v.do(t, script(button+".click()"), until(button+`.getAttribute("aria-pressed") === "true" && `+complete))
	if points(seisSection) != seis {
		t.Errorf("%d points after the model is shown again, want %d, as before", points(seisSection), seis)
	}
	v.quiet(t)
}

// TestDeepLink opens the page at an address that sets a section and a reader's choices, and checks
// that the page shows them.
func TestDeepLink(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 20, Transforms: 3, Classes: 2}.Rows()
	v := openAt(t, Run{Rows: rows, Record: rec}, 1280, 900,
		"#at=measure-3&seis.statistic=invariance&seis.by=transform&seis.x=relative&hide.transform=gray&seis.find=resnet56&seis.sort=-value&effective-invariance.chart=heat")
	for what, condition := range map[string]string{
		"the section is in view": `Math.abs(` + seisSection + `.getBoundingClientRect().top) < 200`,
		"the statistic":          seisSection + `.querySelector("input[value=invariance]").checked`,
		"a panel for each model": `[...` + seisSection + `.querySelectorAll("figcaption > span:first-child")].map(e => e.textContent).join() === "resnet20,resnet56"`,
		// Joins a button's text and aria-pressed: grayfalse is the hidden gray.
		"lines for transformations":  `[...` + seisSection + `.querySelectorAll(".legend button")].map(e => e.textContent + e.ariaPressed).join() === "quartertrue,grayfalse,jittertrue"`,
		"relative depth":             `[...` + seisSection + `.querySelectorAll("figure:first-child .role-axis-label text")].some(e => e.textContent === "100%")`,
		"the table is filtered":      seisSection + `.querySelector(".score-table input[type=search]").value === "resnet56"`,
		"the table is sorted":        seisSection + `.querySelectorAll("th[aria-sort=descending]").length === 1`,
		"another measure's heat map": eiSection + `.querySelectorAll(".mark-rect path").length > 0`,
	} {
		if !evaluate[bool](t, v, condition) {
			t.Errorf("the page does not follow the link: %s", what)
		}
	}
	v.do(t, script(`location.hash = "#seis.statistic=rank"`), until(seisSection+`.querySelector("input[value=rank]").checked && `+complete))
	if !evaluate[bool](t, v, eiSection+`.querySelector("input[value=bars]").checked`) {
		t.Error("the heat map of the previous address is still shown")
	}
	v.quiet(t)
}

// TestSaving saves a chart as SVG and as PNG, and a table as CSV. The browser writes the files some
// time after the click.
func TestSaving(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 1}.Rows()
	v := open(t, rows, rec, 1280, 900)
	dir := t.TempDir()
	v.do(t, call(func(ctx context.Context, p browser.SetDownloadBehaviorParams) error {
		_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, p)
		return err
	}, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir}))
	saved := func(button, name string) string {
		t.Helper()
		v.do(t, script(button+".click()"))
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && len(data) > 0 {
				return string(data)
			}
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		t.Fatalf("no file %s; the browser said %q", name, v.problems)
		return ""
	}
	button := func(n int) string { return fmt.Sprintf(`%s.querySelectorAll(".actions button")[%d]`, seisSection, n) }
	svg := saved(button(0), "equivariance-quarter.svg")
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
		t.Errorf("the SVG is no XML: %v", err)
	}
	if !strings.HasPrefix(svg, "<svg") || strings.Contains(svg, "var(--") || !strings.Contains(svg, "#0072b2") {
		t.Errorf("the SVG begins with %.300s, want colours in it and no variables", svg)
	}
	if png := saved(button(1), "equivariance-quarter.png"); !strings.HasPrefix(png, "\x89PNG") || len(png) < 5000 {
		t.Errorf("the PNG has %d bytes and begins with %.8q, want 5000 or more and the signature of PNG", len(png), png)
	}
	v.do(t, script(button(2)+".click()"), until(seisSection+`.querySelectorAll("main figure .data tbody tr").length > 0`))
	csv := saved(seisSection+`.querySelectorAll("main figure .data .tools button")[1]`, "Data-of-the-chart-equivariance-quarter.csv")
	lines := strings.Split(strings.TrimSpace(csv), "\r\n")
	if len(lines) != 1+2*4 || !strings.HasPrefix(lines[0], "model,layer,depth,other_model,") || !strings.HasPrefix(lines[1], "resnet20,/layer1/layer1.0/relu1/Relu_output_0,3,,,cifar10,quarter,,0,seis,,,equivariance,") {
		t.Errorf("the CSV has the lines %q, want a header and a line for each of 4 layers of 2 models", lines)
	}
}

// TestFullScreen shows a chart on the full screen by the keyboard, checks that it is higher, and
// leaves the full screen again.
func TestFullScreen(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 1}.Rows()
	v := open(t, rows, rec, 1280, 900)
	height := seisSection + `.querySelector("figure svg").getBoundingClientRect().height`
	before := evaluate[float64](t, v, height)
	button := "section.measure[data-measure='3'] figure .actions button[aria-label^='Full screen']"
	v.do(t, chromedp.SendKeys(chromedp.CSS(button), "\r"), until(`document.fullscreenElement === `+seisSection+`.querySelector("figure")`), until(fmt.Sprintf("%s > %f", height, before+200)))
	if over := evaluate[float64](t, v, `document.fullscreenElement.scrollHeight - innerHeight`); over > 1 {
		t.Errorf("the figure is %.0f pixels higher than the screen", over)
	}
	v.do(t, chromedp.SendKeys(chromedp.CSS(button), "\r"), until("document.fullscreenElement === null"), until(fmt.Sprintf("Math.abs(%s - %f) < 2", height, before)))
	v.quiet(t)
}

// TestHover points at a mark of a chart, and checks that the tooltip shows the fields of its row. A
// field's name and value have no space between them in the text.
func TestHover(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 1, Layers: 4, Transforms: 1}.Rows()
	v := open(t, rows, rec, 1280, 900)
	v.do(t, script(seisSection+`.querySelector("figure").scrollIntoView({block: "center", behavior: "instant"})`), until(complete+` && `+seisSection+`.querySelector("figure").getBoundingClientRect().top < innerHeight / 2`),
		script(`{ const p = `+seisSection+`.querySelector(".mark-symbol path"), b = p.getBoundingClientRect();
		for (const type of ["pointerover", "pointermove", "mousemove", "mouseover"]) document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2).dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: b.x + b.width / 2, clientY: b.y + b.height / 2})) }`),
		until(`document.querySelector(".tooltip")?.hidden === false`))
	said := strings.Join(v.texts(t, ".tooltip div"), "; ")
	for _, want := range []string{"modelresnet20", "layer/layer1/layer1.0/relu1/Relu_output_0", "depth3", "transformationquarter", "equivariance0.", "n32,000", "warningpooled from 112 x 112"} {
		if !strings.Contains(said, want) {
			t.Errorf("the tooltip says %q, want %q in it", said, want)
		}
	}
	v.quiet(t)
}

// readAxe returns the source of axe-core, a JavaScript library that checks accessibility. If it is
// not installed, the test fails where NOETHER_TESTDATA is set, as in continuous integration, and is
// skipped elsewhere.
func readAxe(t *testing.T) []byte {
	t.Helper()
	axe, err := os.ReadFile("web/node_modules/axe-core/axe.min.js")
	const lacking = "axe-core is not installed: npm ci --ignore-scripts in internal/report/html/web"
	if err != nil && os.Getenv("NOETHER_TESTDATA") != "" {
		t.Fatal(lacking)
	}
	if err != nil {
		t.Skip(lacking)
	}
	return axe
}

// TestAccessibility asks axe-core for serious issues, in light and dark, with filters and details
// open, and on a phone: in a run with all kinds of charts, in one of probes (networks trained on
// the vectors of a layer), and in one of three models with contact sheets (images that show samples
// side by side).
func TestAccessibility(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	v := openAt(t, runWithAllCharts(t), 1280, 900, "#at=measure-3&hide.model=resnet56&effective-invariance.chart=distribution")
	v.do(t, script(`document.querySelector("details[data-filter=model]").open = true`), script(seisSection+`.querySelector("button[aria-expanded]").click()`), script(string(axe)))
	v.accessible(t)
	for _, run := range []Run{probeRun(), studyOfThree()} {
		v = openAt(t, run, 390, 844, "")
		v.do(t, script(string(axe)))
		v.accessible(t)
	}
}

// accessible asks axe-core, which the page has loaded, for serious issues: with all rules in light,
// and with the rules for colours in dark, where nothing else differs.
func (v *visit) accessible(t *testing.T) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		rules := ""
		if scheme == "dark" {
			rules = `runOnly: ["color-contrast", "link-in-text-block"], `
		}
		v.do(t, media("screen", scheme), script(`delete window.found; axe.run(document, {`+rules+`resultTypes: ["violations"]}).then(r => { window.found =
			r.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary).join(", ")) })`),
			until("window.found !== undefined"))
		for _, issue := range evaluate[[]string](t, v, "window.found") {
			t.Errorf("%s: %s", scheme, issue)
		}
	}
}

// TestHostileAddress opens a page whose names are hostile (such as tags of HTML with scripts), in
// its images and distributions too, at an address of such values.
func TestHostileAddress(t *testing.T) {
	t.Parallel()
	rows, rec := attackedRun()
	run := Run{Rows: rows, Record: rec}
	for i, name := range hostile {
		run.Images = append(run.Images, report.Image{ImageText: report.ImageText{Title: name, Caption: name, Alt: name, Model: name}, Width: 8, Height: 4, PNG: reporttest.Checkerboard(8, 4)})
		run.Distributions = append(run.Distributions, report.Distribution{Subject: report.Subject{Of: name, Model: rec.Models[i%2].Name, Transform: name, Measure: "effective-invariance", Statistic: "ei"},
			High: 1, Counts: []int{1, 2}})
	}
	address := url.Values{"at": {hostile[0]}, "seis.statistic": {hostile[2]}, "seis.by": {"tag:" + hostile[0]}, "hide.model": hostile, "layers": {hostile[3]},
		"effective-invariance.chart": {"distribution"}, "effective-invariance.find": {hostile[2]}, "__proto__": {"x"}, "seis.chart": {"__proto__"}}
	v := openAt(t, run, 1280, 900, "#"+address.Encode())
	if n := evaluate[int](t, v, `document.querySelectorAll("script:not([type]), iframe, svg[onload], img[onerror], [onmouseover]").length`); n != 1 {
		t.Errorf("%d elements that may run code, want 1, the script of the page", n)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("#pictures img").length`); n == 0 {
		t.Error("the page has no images")
	}
	v.do(t, script(`location.hash = "#"+"a=%zz&&=="`), until(complete))
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .chart svg").length`); n == 0 {
		t.Error("no chart is drawn")
	}
	v.quiet(t)
}

// TestColours chooses what the lines of a panel stand for: the values of a tag, of the parameter,
// the transformations or the models. A tag is a study's own property of a model.
func TestColours(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 4, Layers: 4, Transforms: 2}.Rows()
	for i := range rec.Models {
		rec.Models[i].Tags = map[string]string{"epoch": []string{"1", "2"}[i/2]}
	}
	v := open(t, rows, rec, 1280, 900)
	for _, c := range []struct {
		by            string
		entries       string // of the legend
		panels, lines int    // lines of values in the first panel
	}{
		{"tag:epoch", "1,2", 2, 4},
		{"parameter", "90,180,270", 4, 3},
		{"transform", "quarter,gray", 4, 2},
		{"model", "resnet20,resnet56,vit-tiny,convnext-s", 2, 4},
	} {
		v.do(t, script(fmt.Sprintf(`{ const s = %s.querySelector("select[name=by]"); s.value = %q; s.dispatchEvent(new Event("change")) }`, seisSection, c.by)), until(complete))
		if got := evaluate[string](t, v, `[...`+seisSection+`.querySelectorAll(".legend button")].map(e => e.textContent).join()`); got != c.entries {
			t.Errorf("by %s the legend has %s, want %s", c.by, got, c.entries)
		}
		if got := evaluate[int](t, v, seisSection+`.querySelectorAll("main figure").length`); got != c.panels {
			t.Errorf("by %s there are %d panels, want %d", c.by, got, c.panels)
		}
		// Each has a dotted line beside it for the null (the score of shuffled pairs).
		if got := evaluate[int](t, v, seisSection+`.querySelectorAll("figure:first-child .mark-line path").length`); got != 2*c.lines {
			t.Errorf("by %s there are %d lines in the first panel, want %d", c.by, got, 2*c.lines)
		}
	}
	v.quiet(t)
}

// TestMissingNumbers draws a run in which numbers are missing in three of four rows (scores), and
// all values of the measure distance, whose section has the number 4.
func TestMissingNumbers(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 6, Transforms: 2, Unfinished: true}.Rows()
	for i := range rows {
		switch i % 4 {
		case 0:
			rows[i].Value, rows[i].Low, rows[i].High, rows[i].Null = nan, nan, nan, nan
		case 1:
			rows[i].Low, rows[i].High = nan, nan
		case 2:
			rows[i].Null = nan
		}
		if rows[i].Measure == "distance" {
			rows[i].Value = nan
		}
	}
	v := open(t, rows, rec, 1280, 900)
	if n := evaluate[int](t, v, `[...document.querySelectorAll("main figure")].filter(f => !f.querySelector(".sentences").textContent).length`); n > 0 {
		t.Errorf("%d figures without a sentence", n)
	}
	if said, want := strings.Join(v.texts(t, "section.measure[data-measure='4'] .sentences"), " "), "There is no number to show."; !strings.Contains(said, want) {
		t.Errorf("a measure without a number says %q, want %q in it", said, want)
	}
	if text := evaluate[string](t, v, "document.body.innerText"); strings.Contains(text, "NaN") || strings.Contains(text, "undefined") {
		t.Error("the page says NaN or undefined")
	}
	v.quiet(t)
}

// TestPrinting checks that the page in print is white, has no controls and fits the paper, for a
// reader who prefers dark.
func TestPrinting(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	v := open(t, rows, rec, 800, 1100)
	v.do(t, media("print", "dark"))
	for _, gone := range []string{"nav", ".controls", ".filters", ".actions", ".tools"} {
		if n := evaluate[int](t, v, fmt.Sprintf("[...document.querySelectorAll(%q)].filter(e => e.getClientRects().length).length", gone)); n > 0 {
			t.Errorf("%d elements %s are printed, want none", n, gone)
		}
	}
	if background := evaluate[string](t, v, "getComputedStyle(document.body).backgroundColor"); background != "rgb(255, 255, 255)" {
		t.Errorf("the background is %s, want %s", background, "rgb(255, 255, 255)")
	}
	v.do(t, chromedp.EmulateViewport(700, 990)) // an A4 page without its margins
	if wider := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); wider > 0 {
		t.Errorf("the page is %d pixels wider than the paper", wider)
	}
}

// large is a generated run of more than 100,000 scores.
var large = reporttest.FakeRun{Models: 12, Layers: 60, Transforms: 4, Data: 3}

// TestHundredThousandScores opens the page of large and unfolds its tables.
func TestHundredThousandScores(t *testing.T) {
	t.Parallel()
	rows, rec := large.Rows()
	if len(rows) < 100_000 {
		t.Fatalf("the run has %d rows, want 100,000 or more", len(rows))
	}
	page := render(t, rows, rec)
	if len(page) > 15e6 {
		t.Errorf("the page has %d bytes, want at most 15 million", len(page))
	}
	// data-drawn says that all that is in the window is drawn.
	v := openPage(t, page, 1280, 900, "", "document.documentElement.dataset.drawn === 'true'")
	t.Logf("%d scores, %d bytes, the first view after %.0f ms", len(rows), len(page), evaluate[float64](t, v, "performance.now()"))
	v.do(t, unfolded...)
	// Each table of the five measures shows a page of 12 rows.
	if n := evaluate[int](t, v, `document.querySelectorAll("section.measure .score-table tbody tr").length`); n != 5*12 {
		t.Errorf("%d rows of tables, want %d", n, 5*12)
	}
	v.quiet(t)
}
