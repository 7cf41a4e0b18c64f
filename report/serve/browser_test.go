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

// until waits for a condition to hold, through pages that load themselves again.
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

// In a real browser the list narrows down, a run that goes on is followed, two runs are compared, and the policy stops nothing.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	path := chromium(t)
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "alpha"), "net").finish()
	newFolder(t, filepath.Join(dir, "beta"), "net").finish()
	going := newFolder(t, filepath.Join(dir, "gamma"), "vgg")
	url := site(t, Options{Dirs: []string{dir}})

	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var mutex sync.Mutex
	var problems []string
	hear := func(event any) {
		mutex.Lock()
		defer mutex.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, url) && !strings.HasPrefix(e.Request.URL, "data:") {
				problems = append(problems, "a request for "+e.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			problems = append(problems, fmt.Sprintf("an exception: %+v", e.ExceptionDetails))
		case *log.EventEntryAdded:
			problems = append(problems, e.Entry.Text)
		}
	}
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		for _, a := range actions {
			if err := chromedp.Do(ctx, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := chromedp.Listen(ctx, hear); err != nil {
		t.Fatal(err)
	}
	visible := `[...document.querySelectorAll('table.runs tbody tr')].filter((r) => !r.hidden).length`
	do(chromedp.Navigate(url), until(visible+" === 3"))
	do(chromedp.SendKeys("#q", "vgg"), until(visible+" === 1"))
	going.do(0)
	do(until(`document.querySelector('.state.running .said').textContent === 'running, 1 of 2 cells'`))
	going.finish()
	do(until(`document.querySelectorAll('.state.finished').length === 3`))
	do(until(`document.readyState === 'complete' && document.querySelector('#q').value === ''`)) // the page has loaded itself again
	do(chromedp.Click(`input[aria-label$="/alpha"]`), chromedp.Click(`input[aria-label$="/beta"]`), chromedp.Click(".act button"), until(`location.pathname === '/compare'`))
	do(until(`document.body.textContent.includes('0 of 4 scores differ')`))
	mutex.Lock()
	defer mutex.Unlock()
	if len(problems) > 0 {
		t.Errorf("the browser complains: %q", problems)
	}
}
