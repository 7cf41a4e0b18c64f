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

// enough is the time limit of a browser test, which takes seconds, or minutes on a busy machine.
const enough = 5 * time.Minute

// newTab starts a browser. Requests to other addresses than url are errors.
func newTab(t *testing.T, url string) *tab {
	t.Helper()
	path := chromium(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(enough))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	ctx, cancel := context.WithTimeout(ctx, enough)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) { b.hear(url, event) }); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) hear(url string, event any) {
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

func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		if err := chromedp.Do(b.ctx, a); err != nil {
			t.Fatal(err)
		}
	}
}

func evaluate[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// quiet fails a test whose browser has recorded errors.
func (b *tab) quiet(t *testing.T) {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.problems) > 0 {
		t.Errorf("errors in the browser: %q", b.problems)
	}
}

// TestInABrowser checks in a real browser that the list is filtered, an unfinished run is followed
// and its scores appear, two runs are compared, and the content security policy blocks nothing.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "alpha"), "net").finish()
	newFolder(t, filepath.Join(dir, "beta"), "net").finish()
	going := newFolder(t, filepath.Join(dir, "gamma"), "vgg")
	url := site(t, Options{Dirs: []string{dir}})
	b := newTab(t, url)
	visible := `[...document.querySelectorAll('table.runs tbody tr')].filter((r) => !r.hidden).length`
	b.do(t, chromedp.Navigate(url), until(visible+" === 3"))
	b.do(t, chromedp.SendKeys("#q", "vgg"), until(visible+" === 1"))
	going.do(0)
	b.do(t, until(`document.querySelector('.state.running .said').textContent === 'running, 1 of 2 cells, 50 %'`))
	b.do(t, until(`[...document.querySelectorAll('.overview th[scope=row]')].some((t) => t.textContent === 'vgg')`)) // without a reload
	if on := evaluate[string](t, b, `document.querySelector('#q').value`); on != "vgg" {
		t.Errorf("the search is %q after scores came, want %q", on, "vgg")
	}
	going.finish()
	b.do(t, until(`document.querySelectorAll('.state.finished').length === 3`))
	b.do(t, until(`document.readyState === 'complete' && document.querySelector('#q').value === ''`)) // the page has reloaded
	b.do(t, chromedp.Click(`input[aria-label$="/alpha"]`), chromedp.Click(`input[aria-label$="/beta"]`), chromedp.Click(".act button"), until(`location.pathname === '/compare'`))
	b.do(t, until(`document.body.textContent.includes('0 of 4 scores differ')`))
	b.quiet(t)
}
