package serve

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core, an accessibility checker that npm installs with the front end
// of the report. If it is missing, the test is skipped, or fails where the environment variable
// NOETHER_TESTDATA is set.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../html/web/node_modules/axe-core/axe.min.js")
	switch {
	case err == nil:
		return string(source)
	case os.Getenv("NOETHER_TESTDATA") != "":
		t.Fatal("axe-core is not installed: npm ci --ignore-scripts in internal/report/html/web")
	}
	t.Skip("axe-core is not installed: npm ci --ignore-scripts in internal/report/html/web")
	return ""
}

// act runs statements of JavaScript on the page, and discards their result.
func act(code string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[any]("(() => {"+code+"})()")(ctx, target)
		return chromedp.Void{}, err
	}
}

// preferScheme sets the colour scheme that the browser prefers, light or dark.
func preferScheme(scheme string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}
}

// TestPagesAreAccessible checks that every page fits its screen and that axe-core finds no serious
// issue, on a wide screen in the light colour scheme and on that of a phone in the dark one. The
// cells of a run folder are its results, each of one measure of one model on one data set.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	source := axe(t)
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "alpha"), "net", "a-model-whose-name-is-so-long-that-it-cannot-fit-a-phone").finish()
	other := newFolder(t, filepath.Join(dir, "beta"), "net")
	other.cells[0].Layers[0].Scores[0].Value += 0.3
	for i := range other.cells[0].Layers[0].Scores[0].Replicates {
		other.cells[0].Layers[0].Scores[0].Replicates[i].Value += 0.3
	}
	other.finish()
	newFolder(t, filepath.Join(dir, "gamma"), "vgg").finishCell(0) // an unfinished run
	url := startServer(t, Options{Dirs: []string{dir}})
	runIDs := ids(t, url, "")
	base := filepath.Base(dir)
	pair := "run=" + runIDs[base+"/alpha"] + "&run=" + runIDs[base+"/beta"]
	b := newTab(t, url)
	// all=1: a comparison with the scores that do not differ too
	for _, page := range []string{"/", "/?q=nothing", "/runs/" + runIDs[base+"/alpha"], "/runs/" + runIDs[base+"/gamma"], "/compare?" + pair, "/compare?" + pair + "&all=1"} {
		for scheme, width := range map[string]int64{"light": 1280, "dark": 360} {
			b.do(t, chromedp.EmulateViewport(width, 800), preferScheme(scheme), chromedp.Navigate(url+page), until("document.readyState === 'complete'"), act(source))
			if wide := evaluate[int64](t, b, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d pixels wide on a screen of %d", page, wide, width)
			}
			b.do(t, act(`axe.run(document, {resultTypes: ["violations"]}).then(r => { window.found =
				r.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary).join(", ")) })`),
				until("window.found !== undefined"))
			for _, issue := range evaluate[[]string](t, b, "window.found") {
				t.Errorf("%s, %d pixels wide, %s: %s", page, width, scheme, issue)
			}
		}
	}
	b.checkNoProblems(t)
}
