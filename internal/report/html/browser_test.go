package html

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// A visit is a page opened in a browser, with the problems that it reported and its requests.
type visit struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
	requests []string
}

// open shows a run's page in headless Chromium and waits until its charts are drawn. Without a
// Chromium the test is skipped.
func open(t *testing.T, rows []scores.Row, rec scores.Record, width, height int64) *visit {
	t.Helper()
	return openAt(t, Run{Rows: rows, Record: rec}, width, height, "")
}

// openAt shows a run's page at an address with a fragment, the part from # on. It waits for
// complete, the condition that all charts are drawn.
func openAt(t *testing.T, run Run, width, height int64, fragment string) *visit {
	t.Helper()
	return openUntil(t, run, width, height, fragment, complete)
}

// openUntil shows a run's page and waits until a condition, a JavaScript expression, is true.
func openUntil(t *testing.T, run Run, width, height int64, fragment, condition string) *visit {
	t.Helper()
	chromium(t)
	return openPage(t, renderRun(t, run), width, height, fragment, condition)
}

// openPage shows a page that has been rendered.
func openPage(t *testing.T, page string, width, height int64, fragment, condition string) *visit {
	t.Helper()
	chromium(t)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(theBrowser())
	t.Cleanup(cancel)
	v := &visit{ctx: ctx}
	if err := chromedp.Listen(ctx, v.record); err != nil {
		t.Fatal(err)
	}
	v.do(t, chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+path+fragment), until(condition))
	return v
}

// patience limits each wait for the browser or a page. They take seconds on an idle machine, and
// may take minutes on a busy one.
const patience = 5 * time.Minute

// until waits until a condition, a JavaScript expression, is true.
func until(condition string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Poll[bool](condition, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience))(ctx, target)
		return chromedp.Void{}, err
	}
}

// chromium skips a test where there is no Chromium.
func chromium(t *testing.T) {
	t.Helper()
	if chromiumPath() == "" {
		t.Skip("no Chromium found: the page is not tried in a browser")
	}
}

func chromiumPath() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// theBrowser is one browser for all tests, each of which opens a tab. TestMain closes it.
var theBrowser = sync.OnceValue(func() context.Context {
	profile, err := os.MkdirTemp("", "noether-browser")
	if err != nil {
		panic(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromiumPath()), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, leave := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		panic(err)
	}
	closeBrowser = func() { leave(); stop(); os.RemoveAll(profile) }
	return ctx
})

var closeBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// record records an event of the browser: a request, or what the page logs, throws or shows in a
// dialog, which is a problem.
func (v *visit) record(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests = append(v.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		args := []string{}
		for _, a := range e.Args {
			args = append(args, string(a.Value))
		}
		v.problems = append(v.problems, fmt.Sprintf("console.%s %q", e.Type, args))
	case *runtime.EventExceptionThrown:
		v.problems = append(v.problems, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *log.EventEntryAdded:
		v.problems = append(v.problems, e.Entry.Text)
	case *cdpage.EventJavascriptDialogOpening:
		v.problems = append(v.problems, "dialog: "+e.Message)
	}
}

// do executes actions in the browser. If one fails, the test ends.
func (v *visit) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(v.ctx, steps...); err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		t.Fatalf("%v; the browser reported %q", err, v.problems)
	}
}

// unfolded are actions that open the tables of all sections and wait for their rows.
var unfolded = []chromedp.Action[chromedp.Void]{script(`for (const d of document.querySelectorAll("details.scores")) d.open = true`),
	until(`![...document.querySelectorAll("section.measure:not([hidden]) details.scores")].some(d => !d.querySelector("tbody tr"))`)}

// script evaluates a JavaScript expression for its effect.
func script(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](t *testing.T, v *visit, expression string) T {
	t.Helper()
	value, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// texts returns the texts of all elements that a CSS selector finds.
func (v *visit) texts(t *testing.T, selector string) []string {
	t.Helper()
	return evaluate[[]string](t, v, fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.textContent)", selector))
}

// quiet checks that the page reported no problem and requested nothing but itself.
func (v *visit) quiet(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.problems {
		t.Errorf("the browser reported: %s", p)
	}
	v.requests = slices.DeleteFunc(v.requests, func(url string) bool { return strings.HasPrefix(url, "data:image/png;base64,") })
	for _, url := range v.requests {
		if !strings.HasPrefix(url, "file://") || !strings.HasSuffix(url, "/report.html") {
			t.Errorf("the page requested %s", url)
		}
	}
	if len(v.requests) != 1 {
		t.Errorf("%d requests, want 1", len(v.requests))
	}
}

// TestChartsAreDrawn opens the page of UsualRun, a generated run of 2 models with 20 layers each
// and 3 transformations, and counts its charts.
func TestChartsAreDrawn(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.UsualRun.Rows()
	v := open(t, rows, rec, 1280, 900)
	// Bars for each of three measures of predictions, and curves for each of three transformations
	// for each of two measures of layers.
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .chart svg").length`); n != 3+2*3 {
		t.Errorf("%d charts, want %d", n, 3+2*3)
	}
	if n := evaluate[int](t, v, `[...document.querySelectorAll("main figure .chart")].filter(c => c.querySelectorAll("path").length < 4).length`); n > 0 {
		t.Errorf("%d charts have fewer than 4 paths, want none", n)
	}
	if n := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
		t.Errorf("the page is %d pixels wider than the window", n)
	}
	v.quiet(t)
}

// TestChoosing checks that the charts change with the chosen statistic and value of the parameter.
// A FakeRun generates a run of the given size. seisSection is a JavaScript expression for the
// section of SEIS, a measure of layers with the statistics equivariance, invariance and rank.
// quarter is a rotation by 90, 180 or 270 degrees.
func TestChoosing(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 2, Classes: 2}.Rows()
	v := open(t, rows, rec, 1280, 900)
	if got := evaluate[string](t, v, seisSection+`.querySelector(".chart [role=graphics-document], .chart[role=graphics-document]").getAttribute("aria-label") ?? ""`); got != "equivariance, quarter" {
		t.Errorf("at first the chart is of %q, want %q", got, "equivariance, quarter")
	}
	v.do(t, script(seisSection+`.querySelector("input[value=rank]").click()`),
		until(seisSection+`.querySelector(".chart [role=graphics-document], .chart[role=graphics-document]")?.getAttribute("aria-label") === "rank, quarter"`))
	v.do(t, script(`{ const s = `+seisSection+`.querySelector("select[name=parameter]"); s.value = "180"; s.dispatchEvent(new Event("change")) }`),
		until(seisSection+`.querySelector("figcaption span")?.textContent === "quarter 180" && `+seisSection+`.querySelectorAll("figure svg").length === 1`))
	v.quiet(t)
}

func TestTableSortsAndFilters(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 20, Transforms: 2, Classes: 3}.Rows()
	v := open(t, rows, rec, 1280, 900)
	v.do(t, unfolded...)
	root := "section.measure[data-measure='3'] .score-table " // of SEIS, section 3 from 0
	headers := v.texts(t, root+"th")
	value := slices.Index(headers, "value")
	if value < 0 {
		t.Fatalf("no column named value: %q", headers)
	}
	column := func() []float64 {
		var numbers []float64
		for _, s := range v.texts(t, fmt.Sprintf("%stbody td:nth-child(%d)", root, value+1)) {
			n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	click := fmt.Sprintf(`document.querySelector("%sth:nth-child(%d) button").click()`, root, value+1)
	if slices.IsSorted(column()) {
		t.Fatal("the values are sorted before a click, so the test shows nothing")
	}
	v.do(t, script(click))
	if up := column(); !slices.IsSorted(up) {
		t.Errorf("after one click the column is %v, want ascending values", up)
	}
	v.do(t, script(click))
	if down := column(); slices.IsSorted(down) || !slices.IsSortedFunc(down, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("after two clicks the column is %v, want descending values", down)
	}
	if sort := evaluate[int](t, v, fmt.Sprintf(`document.querySelectorAll("%sth[aria-sort=descending]").length`, root)); sort != 1 {
		t.Errorf("%d headers are marked as sorted in descending order, want 1", sort)
	}
	v.do(t, chromedp.SendKeys(chromedp.CSS(root+"input[type=search]"), "resnet56 gray invariance"))
	// The first page of a table has 12 rows; the filter leaves one for each of the 20 layers.
	if at := v.texts(t, root+".pager span"); len(at) != 1 || at[0] != "1 to 12 of 20" {
		t.Errorf("the filtered table shows %q, want %q", at, "1 to 12 of 20")
	}
	v.quiet(t)
}

// TestAttackedPageStaysQuiet draws a run whose names contain HTML and JavaScript, which must be
// shown as text.
func TestAttackedPageStaysQuiet(t *testing.T) {
	t.Parallel()
	rows, rec := attackedRun()
	v := open(t, rows, rec, 1280, 900)
	if n := evaluate[int](t, v, `document.querySelectorAll("script:not([type])").length`); n != 1 {
		t.Errorf("%d scripts, want the page's own alone", n)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("img, svg[onload], iframe").length`); n != 0 {
		t.Errorf("%d elements were made from names, want none", n)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .chart svg").length`); n == 0 {
		t.Error("no chart is drawn")
	}
	v.quiet(t)
}

// TestRunsOfAnySize draws empty, small and large runs in a window as wide as a phone.
func TestRunsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		run    reporttest.FakeRun
		charts bool
	}{
		{"empty", reporttest.FakeRun{}, false},
		{"one layer of one model", reporttest.FakeRun{Models: 1, Layers: 1, Transforms: 1, Unfinished: true}, true},
		{"many", reporttest.FakeRun{Models: 12, Layers: 40, Transforms: 3, Data: 2, Classes: 10}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, rec := c.run.Rows()
			v := open(t, rows, rec, 390, 844)
			if n := evaluate[int](t, v, `document.querySelectorAll("main figure .chart svg").length`); (n > 0) != c.charts {
				t.Errorf("%d charts, want some: %t", n, c.charts)
			}
			if n := evaluate[int](t, v, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
				t.Errorf("the page is %d pixels wider than the window", n)
			}
			v.quiet(t)
		})
	}
}
