package serve

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium returns the path of Chromium or Chrome. Without one the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium found: the pages are not tried in a browser")
	return ""
}

// until waits for a condition, across reloads of the page.
func until(condition string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		for {
			if holds, err := chromedp.Evaluate[bool](condition)(ctx, target); err == nil && holds {
				return chromedp.Void{}, nil
			}
			select {
			case <-ctx.Done():
				return chromedp.Void{}, fmt.Errorf("waiting for %s: %w", condition, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// A tab is a page in a real browser that records errors.
type tab struct {
	ctx      context.Context
	mutex    sync.Mutex
	problems []string
}

// testTimeout is the time limit of a test that waits for a browser or the server. Such a test takes
// seconds, or minutes on a busy machine.
const testTimeout = 5 * time.Minute

// newTab starts a browser. A request to an address that does not start with url is a problem.
func newTab(t *testing.T, url string) *tab {
	t.Helper()
	path := chromium(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(testTimeout))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) { b.record(url, event) }); err != nil {
		t.Fatal(err)
	}
	return b
}

// record records an event as a problem if the page logs or throws, or requests an address that does
// not start with url.
func (b *tab) record(url string, event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, url) && !strings.HasPrefix(e.Request.URL, "data:") {
			b.problems = append(b.problems, "a request for "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprintf("an exception: %+v", e.ExceptionDetails))
	case *log.EventEntryAdded:
		b.problems = append(b.problems, e.Entry.Text)
	}
}

// do performs actions in order.
func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		if err := chromedp.Do(b.ctx, a); err != nil {
			t.Fatal(err)
		}
	}
}

// evaluate returns the value of a JavaScript expression in the page.
func evaluate[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkNoProblems fails the test if problems were recorded.
func (b *tab) checkNoProblems(t *testing.T) {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.problems) > 0 {
		t.Errorf("problems in the browser: %q", b.problems)
	}
}

// TestRunsInABrowser checks in a real browser that a search filters the list of runs, that the
// scores of an unfinished run appear, that two runs are compared, and that the content security
// policy blocks nothing. newFolder creates the folder of a run with two cells for each named model.
// A cell is one measure of the model under one transformation; finishCell writes its scores.
func TestRunsInABrowser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "alpha"), "net").finish()
	newFolder(t, filepath.Join(dir, "beta"), "net").finish()
	unfinished := newFolder(t, filepath.Join(dir, "gamma"), "vgg")
	url := startServer(t, Options{Dirs: []string{dir}})
	b := newTab(t, url)
	visible := `[...document.querySelectorAll('table.runs tbody tr')].filter((r) => !r.hidden).length`
	b.do(t, chromedp.Navigate(url), until(visible+" === 3"))
	b.do(t, chromedp.SendKeys("#q", "vgg"), until(visible+" === 1"))
	unfinished.finishCell(0)
	b.do(t, until(`document.querySelector('.state.running .progress-text').textContent === 'running, 1 of 2 cells, 50 %'`))
	b.do(t, until(`[...document.querySelectorAll('.overview th[scope=row]')].some((t) => t.textContent === 'vgg')`)) // without a reload
	if key := evaluate[string](t, b, `document.querySelector('.key').textContent.trim()`); strings.HasPrefix(key, ".") || strings.Contains(key, "..") {
		t.Errorf("the legend of the matrix is %q, want no empty sentence", key)
	}
	if search := evaluate[string](t, b, `document.querySelector('#q').value`); search != "vgg" {
		t.Errorf("the search is %q after scores appeared, want %q", search, "vgg")
	}
	unfinished.finish()
	b.do(t, until(`document.querySelectorAll('.state.finished').length === 3`))
	b.do(t, until(`document.readyState === 'complete' && document.querySelector('#q').value === ''`)) // the page has reloaded
	b.do(t, chromedp.Click(`input[aria-label$="/alpha"]`), chromedp.Click(`input[aria-label$="/beta"]`), chromedp.Click(".actions button"), until(`location.pathname === '/compare'`))
	b.do(t, until(`document.body.textContent.includes('0 of 4 scores differ')`))
	b.checkNoProblems(t)
}

// TestComparisonIsShort compares two runs with thousands of scores that differ. The page draws a
// bounded number of them, the largest relative to their intervals. It contains all marks when it is
// loaded, and no script adds any. Replicates are the values of a score without one group of
// samples, from which the jackknife computes intervals. ids returns the ids of runs by name.
func TestComparisonIsShort(t *testing.T) {
	t.Parallel()
	// columns is the number of columns of the table. Each row has a forest plot of one line, with
	// three marks: the line of no difference, the interval and the value.
	const layers, columns, marks = 2000, 8, 3
	dir := t.TempDir()
	for i, name := range []string{"a", "b"} {
		f := newFolder(t, filepath.Join(dir, name), "net")
		for c := range f.cells {
			first := f.cells[c].Layers[0]
			f.cells[c].Layers = nil
			for l := range layers {
				layer := first
				layer.Name, layer.Depth = fmt.Sprintf("/stage%d/block%d/relu/Relu_output_0", l/100, l), l
				layer.Scores = slices.Clone(first.Scores[:1])
				shift := float64(i) * (0.05 + 0.0001*float64(l))
				layer.Scores[0].Value += shift
				layer.Scores[0].Replicates = slices.Clone(layer.Scores[0].Replicates)
				for g := range layer.Scores[0].Replicates {
					layer.Scores[0].Replicates[g].Value += shift
				}
				f.cells[c].Layers = append(f.cells[c].Layers, layer)
			}
		}
		f.finish()
	}
	url := startServer(t, Options{Dirs: []string{dir}})
	found, base := ids(t, url, ""), filepath.Base(dir)
	page := url + "/compare?run=" + found[base+"/a"] + "&run=" + found[base+"/b"]
	b := newTab(t, url)
	for _, address := range []string{page, page + "&all=1"} {
		start := time.Now()
		text := getPage(t, address)
		answered := time.Since(start)
		if n := strings.Count(text, `<svg class="forest"`); n != maxDifferences {
			t.Errorf("%s: %d forest plots in the page, want %d", address, n, maxDifferences)
		}
		b.do(t, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address), until(`document.readyState === "complete"`))
		t.Logf("%d scores of each run: answered after %v, %d bytes, drawn after %.0f ms", 2*layers, answered.Round(time.Millisecond), len(text), evaluate[float64](t, b, "performance.now()"))
		if n := evaluate[int](t, b, `document.querySelectorAll("svg.forest *").length`); n != maxDifferences*marks {
			t.Errorf("%d marks are drawn, want %d", n, maxDifferences*marks)
		}
		if n := evaluate[int](t, b, `document.querySelectorAll("section.measure td").length`); n != maxDifferences*columns {
			t.Errorf("the table has %d cells, want %d", n, maxDifferences*columns)
		}
		if height := evaluate[int](t, b, `document.documentElement.scrollHeight`); height > 4000 {
			t.Errorf("the page is %d pixels high, want at most 4000", height)
		}
		if !strings.Contains(text, fmt.Sprintf("%d of %d scores differ", 2*layers, 2*layers)) || !strings.Contains(text, "more, in the JSON") {
			t.Errorf("the page does not say how many differ: %.600s", text[strings.Index(text, "<main"):])
		}
	}
	b.checkNoProblems(t)
}
